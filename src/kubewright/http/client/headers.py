"""The headers of one message: found by name in any case, in the order in which they came."""

from collections.abc import Iterator, Sequence

Field = tuple[bytes, bytes]


class Headers:
    """What a message says about itself; a name that comes more than once gives its first value."""

    __slots__ = ("_fields", "_first")

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        self._fields = fields
        # Asked for by two or three names a message, so values become text only then.
        self._first: dict[bytes, bytes] = {}
        for name, value in fields:
            self._first.setdefault(name.lower(), value)

    def __getitem__(self, name: str) -> str:
        return self._first[name.lower().encode("latin-1")].decode("utf-8", "replace")

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name, or else the default."""
        value = self._first.get(name.lower().encode("latin-1"))
        return default if value is None else value.decode("utf-8", "replace")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower().encode("latin-1") in self._first

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __repr__(self) -> str:
        return f"Headers({list(self)})"

    def all(self, name: str) -> list[str]:
        """Return every value of a name, in order."""
        wanted = name.lower().encode("latin-1")
        return [value.decode("utf-8", "replace") for key, value in self._fields if key.lower() == wanted]
