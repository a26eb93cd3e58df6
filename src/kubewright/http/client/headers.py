"""Message heads: the headers of a response, and the bytes of a request that precede its body (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

HeaderField = tuple[bytes, bytes]


class Headers:
    """The headers of one message: case-insensitive names, in order; a repeated name gives its first value."""

    __slots__ = ("_fields", "_first")

    def __init__(self, fields: Sequence[HeaderField] = ()) -> None:
        self._fields = fields
        # Two or three names are looked up in each message: values are decoded only then.
        self._first: dict[bytes, bytes] = {name.lower(): value for name, value in fields}
        if len(self._first) != len(fields):
            for name, value in reversed(fields):
                self._first[name.lower()] = value

    def __getitem__(self, name: str) -> str:
        return self._first[_lowered(name)].decode("utf-8", "replace")

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name, or the default."""
        value = self._first.get(_lowered(name))
        return default if value is None else value.decode("utf-8", "replace")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _lowered(name) in self._first

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __repr__(self) -> str:
        return f"Headers({list(self)})"

    def all(self, name: str) -> list[str]:
        """Return every value of a name, in order."""
        wanted = _lowered(name)
        return [value.decode("utf-8", "replace") for key, value in self._fields if key.lower() == wanted]


@lru_cache(maxsize=256)
def _lowered(name: str) -> bytes:
    """Return a name as `Headers` holds it; the same few are looked up in each response."""
    return name.lower().encode("latin-1")


class RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    target: str
    headers: list[tuple[str, str]]


def encode_headers(fields: Iterable[tuple[str, str]]) -> bytes:
    """Encode header lines; raise ValueError, without the value, if a value contains a line break or NUL."""
    lines: list[str] = []
    for name, value in fields:
        if "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f"the value of header {name} contains a line break or NUL")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


def encode_request(method: str, target: str, head: bytes, body: bytes) -> bytes:
    """Return everything of a request that precedes its body; `head` are encoded header lines."""
    if not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError("the request target is not percent-encoded")
    line = f"{method} {target} HTTP/1.1\r\n".encode()
    if body or method not in ("GET", "DELETE"):
        return line + head + f"Content-Length: {len(body)}\r\n\r\n".encode()
    return line + head + b"\r\n"


def decode_request(head: bytes) -> RequestHead:
    """Return the parts of a head that `encode_request` made, for exchanges that do not send it as it is."""
    line, *lines = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    headers = [(name, value) for name, colon, value in (line.partition(": ") for line in lines) if colon]
    return RequestHead(method, target, headers)
