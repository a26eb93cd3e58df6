"""Field errors with the messages of the API server."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal, cast

import msgspec

ProblemType = Literal[
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
    "FieldValueNotFound",
    "InternalError",
]
_TITLES: dict[str, str] = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "InternalError": "Internal error",
}
_WITHOUT_VALUE = frozenset(
    {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"}
)
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Any = _Omitted()


def quoted(text: str) -> str:
    """Quote text as Go's %q does."""
    return (
        '"'
        + "".join(_ESCAPES.get(sign) or (sign if sign.isprintable() else _escaped(sign)) for sign in text)
        + '"'
    )


def _escaped(sign: str) -> str:
    code = ord(sign)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """Write a number as Go's %v does."""
    if isinstance(value, int):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    exact = Decimal(repr(value)).normalize()
    power = exact.adjusted()
    if value and not -4 <= power < 6:
        digits = "".join(map(str, exact.as_tuple().digits))
        mantissa = digits[0] + (f".{digits[1:]}" if digits[1:] else "")
        return f"{'-' if value < 0 else ''}{mantissa}e{power:+03d}"
    return f"{exact:f}"


def shown(value: Any) -> str:
    """Show a value as the server puts it into messages.

    Keys stay in their order: that of Go's type for built-in kinds, sorted where there is none.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case str():
            return quoted(value)
        case _:
            text = json.dumps(_as_json(value), ensure_ascii=False, separators=(",", ":"), default=str)
            return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _as_json(value: Any) -> Any:
    """Write whole floats without a point, as Go's JSON does."""
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < 1e21 else value
        case dict():
            return {key: _as_json(item) for key, item in cast(dict[str, Any], value).items()}
        case list():
            return [_as_json(item) for item in cast(list[Any], value)]
        case _:
            return value


class FieldError(msgspec.Struct, frozen=True):
    """One validation error: its type, the field and the value."""

    type: ProblemType
    field: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def message(self) -> str:
        """Return the text without the field."""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def cause(self) -> dict[str, Any]:
        """Return the entry of `Status.details.causes`."""
        return {"reason": self.type, "message": self.message, "field": self.field}

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Report a value that is malformed or out of bounds."""
    return FieldError("FieldValueInvalid", field, value, detail)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    """Report a value of the wrong type."""
    return FieldError("FieldValueTypeInvalid", field, value, detail)


def required(field: str, detail: str = "") -> FieldError:
    """Report a value that must be given."""
    return FieldError("FieldValueRequired", field, "", detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Report a value that must be unique."""
    return FieldError("FieldValueDuplicate", field, value)


def not_supported(field: str, value: Any, supported: Sequence[Any] = ()) -> FieldError:
    """Report a value that is none of the listed ones."""
    listed = ", ".join(quoted(str(item)) for item in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}" if listed else "")


def forbidden(field: str, detail: str) -> FieldError:
    """Report a value that may not be given here."""
    return FieldError("FieldValueForbidden", field, "", detail)


def not_found(field: str, value: Any) -> FieldError:
    """Report a value that refers to nothing."""
    return FieldError("FieldValueNotFound", field, value)


def internal(field: str, detail: str) -> FieldError:
    """Report an internal error."""
    return FieldError("InternalError", field, OMITTED, detail)


def too_long(field: str, limit: int, *, unit: str = "byte") -> FieldError:
    """Report text that is too long; the value itself is not repeated."""
    detail = f"may not be more than {_count(limit, unit)}" if limit >= 0 else "value is too long"
    return FieldError("FieldValueTooLong", field, OMITTED, detail)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Report a list with too many items."""
    detail = f"must have at most {_count(limit, 'item')}" if limit >= 0 else "has too many items"
    return FieldError("FieldValueTooMany", field, count if count >= 0 else OMITTED, detail)


def _count(limit: int, unit: str) -> str:
    return f"{limit} {unit}{'' if limit == 1 else 's'}"


def aggregate(errors: Sequence[FieldError]) -> str:
    """Return all errors in one text, each once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_message(kind_group: str, name: str, errors: Sequence[FieldError]) -> str:
    """Return the message of a 422: `Foo.example.com "x" is invalid: spec.a: Required value`."""
    text = f"{kind_group} {quoted(name)} is invalid"
    return f"{text}: {aggregate(errors)}" if errors else text
