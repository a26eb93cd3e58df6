"""Errors that show a Go struct: its fields in the order Go declares them, the unset ones included."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kubewright.api import FieldError


class StructError(FieldError, frozen=True):
    """An invalid value that is shown as it stands, not sorted by key."""

    @property
    def message(self) -> str:
        """Return the text without the field."""
        title = {"FieldValueInvalid": "Invalid value", "FieldValueDuplicate": "Duplicate value"}.get(
            self.type, "Unsupported value"
        )
        shown = json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))
        shown = shown.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        return f"{title}: {shown}: {self.detail}" if self.detail else f"{title}: {shown}"


def invalid_struct(
    field: str, value: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, detail: str
) -> FieldError:
    """Report an invalid struct, or a list of them."""
    return StructError("FieldValueInvalid", field, value, detail)


def unsupported_struct(field: str, value: Mapping[str, Any], detail: str) -> FieldError:
    """Report a struct that says something unknown."""
    return StructError("FieldValueNotSupported", field, value, detail)


def duplicate_struct(field: str, value: Mapping[str, Any]) -> FieldError:
    """Report a struct that occurs twice."""
    return StructError("FieldValueDuplicate", field, value)
