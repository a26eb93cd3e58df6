"""What a schema check reports, in the terms of the OpenAPI validator, and its translation to field errors."""

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from kubewright.api import FieldError, problems
from kubewright.schema.correlation import Correlation
from kubewright.schema.values import in_order

Kind = Literal["required", "enum", "too_long", "too_many", "type", "value", "general"]

NO_PATH = "<nil>"
"""What Go prints for the path of the whole object."""


class Finding(NamedTuple):
    """One violated keyword at one path; `message` tells findings apart."""

    kind: Kind
    path: str
    message: str
    value: Any = ""
    limit: Any = None

    def field_error(self, prefix: str) -> FieldError:
        """Return the error the API server makes of this finding, below `prefix`."""
        if self.kind == "general":
            return problems.invalid(prefix or NO_PATH, "", self.message)
        field = _join(prefix, self.path.removeprefix("."))
        if self.kind == "required":
            return problems.required(field)
        if self.kind == "enum":
            return problems.not_supported(
                field, in_order(self.value), [_enum_text(value) for value in self.limit]
            )
        if self.kind == "too_long":
            return problems.too_long(field, self.limit)
        if self.kind == "too_many":
            return problems.too_many(field, self.value, self.limit)
        value = "" if self.value is None else in_order(self.value)
        if self.kind == "type":
            return problems.type_invalid(field, value, self.message)
        return problems.invalid(field, value, self.message)


Check = Callable[[Any, Correlation | None, str, list[Finding]], int]
"""Report on a value, given what it was before, its path and the list to add to; return how many checks were reached."""


def wrong_type(path: str, expected: str, actual: str) -> Finding:
    """Report a value of the wrong JSON type."""
    return Finding(
        "type", path, f"{path} in body must be of type {expected}: {problems.quoted(actual)}", actual
    )


def violated(path: str, text: str, value: Any) -> Finding:
    """Report a violated bound, pattern or similar."""
    return Finding("value", path, f"{path} in body {text}", value)


def field_errors(findings: list[Finding], prefix: str) -> list[FieldError]:
    """Translate findings to field errors, each message once."""
    once: dict[str, Finding] = {}
    for finding in findings:
        once.setdefault(finding.message, finding)
    return [finding.field_error(prefix) for finding in once.values()]


def _join(prefix: str, path: str) -> str:
    return (f"{prefix}.{path}" if path else prefix) if prefix else (path or NO_PATH)


def _enum_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
