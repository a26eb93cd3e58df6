"""Bounds, multiples and number formats, with the texts of the OpenAPI validator."""

import math
from typing import Any

from kubewright.api import problems
from kubewright.schema.correlation import Correlation
from kubewright.schema.findings import Finding, violated
from kubewright.schema.nodes import Schema
from kubewright.schema.values import INT64_MAX, INT64_MIN, is_json_integer, plain_float

_FLOAT32_MAX = 3.4028235677973366e38
_INT_RANGES = {"int32": (-(2**31), 2**31 - 1)}


class NumberCheck:
    """Check one number against what a schema says of numbers."""

    def __init__(self, schema: Schema, schema_type: str, number_format: str) -> None:
        self._type = schema_type
        self._format = number_format
        self._multiple: float | None = schema.get("multipleOf")
        self._maximum: float | None = schema.get("maximum")
        self._minimum: float | None = schema.get("minimum")
        self._below = bool(schema.get("exclusiveMaximum"))
        self._above = bool(schema.get("exclusiveMinimum"))

    def may_refuse(self, kind: type) -> bool:
        """Tell whether any number of this Python type could be refused."""
        if any(bound is not None for bound in (self._multiple, self._maximum, self._minimum)):
            return True
        return self._format in ("int32", "float") or (self._type == "integer" and kind is float)

    def __call__(self, value: Any, correlation: Correlation | None, path: str, found: list[Finding]) -> int:
        """Report what is wrong with the number."""
        self._in_range(value, "Checked", path, found)
        if self._multiple is not None:
            self._check_multiple(value, self._multiple, path, found)
        if self._minimum is not None:
            self._check_minimum(value, self._minimum, path, found)
        if self._maximum is not None:
            self._check_maximum(value, self._maximum, path, found)
        return 0

    def _in_range(self, value: float, role: str, path: str, found: list[Finding]) -> bool:
        """Report a number that the declared type and format cannot hold."""
        if self._type == "integer":
            low, high = _INT_RANGES.get(self._format, (INT64_MIN, INT64_MAX))
            fits = (
                isinstance(value, int) or plain_float(value).lstrip("-").isdigit()
            ) and low <= value <= high
        else:
            fits = self._format != "float" or abs(value) < _FLOAT32_MAX
        if not fits:
            kind = (
                f"{self._type} with format {self._format}"
                if self._format
                else f"{self._type} (default format)"
            )
            found.append(Finding("general", path, f"{role} value must be of type {kind} in {path}"))
        return fits

    def _compared(
        self, value: float, bound: float, role: str, path: str, found: list[Finding]
    ) -> tuple[float, float]:
        """Return value and bound as they are compared: whole numbers where the value is one."""
        if self._in_range(bound, role, path, found) and isinstance(value, int):
            return value, math.trunc(bound)
        return float(value), float(bound)

    def _check_maximum(self, value: float, maximum: float, path: str, found: list[Finding]) -> None:
        value, bound = self._compared(value, maximum, "Maximum boundary", path, found)
        if value > bound or (self._below and value == bound):
            words = "should be less than" if self._below else "should be less than or equal to"
            found.append(violated(path, f"{words} {problems.number(bound)}", value))

    def _check_minimum(self, value: float, minimum: float, path: str, found: list[Finding]) -> None:
        value, bound = self._compared(value, minimum, "Minimum boundary", path, found)
        if value < bound or (self._above and value == bound):
            words = "should be greater than" if self._above else "should be greater than or equal to"
            found.append(violated(path, f"{words} {problems.number(bound)}", value))

    def _check_multiple(self, value: float, multiple: float, path: str, found: list[Finding]) -> None:
        value, factor = self._compared(value, multiple, "MultipleOf", path, found)
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {problems.number(factor)}"
            found.append(Finding("value", path, text, factor))
        elif isinstance(factor, int):
            if value % factor:
                found.append(violated(path, f"should be a multiple of {problems.number(factor)}", value))
        elif not is_json_integer(1 / factor * value if factor < 1 else value / factor):
            found.append(violated(path, f"should be a multiple of {problems.number(factor)}", value))
