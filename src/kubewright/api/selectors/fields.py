"""Field selectors: `metadata.name=web,status.phase!=Running`."""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from kubewright.api.errors import SelectorError

_TERM = r"(.*?)(!=|==|=)(.*)"
_ESCAPED = frozenset("\\,=")


class FieldRequirement(NamedTuple):
    """One condition on one field."""

    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{_escape(self.value)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """All requirements combined; without any it matches everything."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, get: Callable[[str], str]) -> bool:
        """Return True if an object is selected; `get` returns the text of a field, empty when absent."""
        return all((get(item.field) == item.value) == (item.operator == "=") for item in self.requirements)

    def exact(self, field: str) -> str | None:
        """Return the value that the selector requires of a field, if it requires one."""
        return next(
            (item.value for item in self.requirements if item.field == field and item.operator == "="), None
        )

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def parse_fields(text: str) -> FieldSelector:
    """Read a field selector; a backslash escapes commas, equals signs and itself in values."""
    found: list[FieldRequirement] = []
    for part in sorted(_split(text)):
        if not part:
            continue
        term = re.fullmatch(_TERM, part, re.DOTALL)
        if term is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescape(term[3])
        if term[1] or value:
            found.append(FieldRequirement(term[1], "!=" if term[2] == "!=" else "=", value))
    return FieldSelector(tuple(found))


def _split(text: str) -> list[str]:
    parts: list[str] = []
    start, escaped = 0, False
    for index, sign in enumerate(text):
        if escaped:
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == ",":
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _unescape(text: str) -> str:
    found: list[str] = []
    escaped = False
    for sign in text:
        if escaped:
            if sign not in _ESCAPED:
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{sign}")
            found.append(sign)
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign in ",=":
            # The real server prints the code point.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(sign)}")
        else:
            found.append(sign)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(found)


def _escape(text: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", text)
