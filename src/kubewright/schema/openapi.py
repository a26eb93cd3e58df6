"""Validation of the OpenAPI keywords of a schema, with the messages of the API server.

`compile_check` turns each schema node into a closure, once. A closure dispatches on the JSON type of the value to the
steps that can report anything for that type, so a keyword that does not apply costs nothing. Steps append findings
(`KeywordViolation`); `field_errors` translates them to field errors at the end.

Each check returns how many of the API server's validators it reached, whether they passed or not. The server uses that
number to choose which failed alternative of anyOf and oneOf it reports, so the numbers must match its own.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from kubewright.api import FieldError, problems
from kubewright.schema.formats import FormatCheck, is_known_format, string_format
from kubewright.schema.json_tree import (
    INT64_MAX,
    INT64_MIN,
    NO_PATH,
    Schema,
    additional,
    identity,
    in_order,
    is_json_integer,
    items,
    plain_float,
    properties,
    same,
)
from kubewright.schema.patterns import PatternError, compile_pattern
from kubewright.schema.ratcheting import Correlation

FindingKind = Literal["required", "enum", "too_long", "too_many", "type", "value", "general"]


class KeywordViolation(NamedTuple):
    """One violated keyword at one path; findings with the same message are duplicates."""

    kind: FindingKind
    path: str
    message: str
    value: Any = ""
    limit: Any = None

    def field_error(self, prefix: str) -> FieldError:
        """Return the field error that the API server reports, with a path below `prefix`."""
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


KeywordCheck = Callable[[Any, Correlation | None, str, list[KeywordViolation]], int]
"""Validate a value, given its correlation with the old one, its path and the list to append to.

Return how many validators were reached.
"""


def wrong_type(path: str, expected: str, actual: str) -> KeywordViolation:
    """Return the finding for a value of the wrong JSON type."""
    return KeywordViolation(
        "type", path, f"{path} in body must be of type {expected}: {problems.quoted(actual)}", actual
    )


def violated(path: str, text: str, value: Any) -> KeywordViolation:
    """Return the finding for a violated bound, pattern or similar."""
    return KeywordViolation("value", path, f"{path} in body {text}", value)


def field_errors(findings: list[KeywordViolation], prefix: str) -> list[FieldError]:
    """Translate findings to field errors, without duplicates."""
    unique: dict[str, KeywordViolation] = {}
    for finding in findings:
        unique.setdefault(finding.message, finding)
    return [finding.field_error(prefix) for finding in unique.values()]


def _join(prefix: str, path: str) -> str:
    return (f"{prefix}.{path}" if path else prefix) if prefix else (path or NO_PATH)


def _enum_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_JSON_TYPES: dict[type, tuple[str, str]] = {
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    bool: ("boolean", ""),
    list: ("array", ""),
    dict: ("object", ""),
}


def compile_check(schema: Schema) -> KeywordCheck:
    """Compile one schema node and everything below it."""
    types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else _declared_types(schema)
    single = types[0] if len(types) == 1 else ""
    text_format = str(schema.get("format", ""))
    value_format = text_format if is_known_format(text_format, single) else ""
    plans = {kind: _plan(schema, kind, types, single, value_format) for kind in _JSON_TYPES}
    null_check = _null_check(schema, types)

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if value is None:
            return null_check(value, correlation, path, found)
        kind: type[Any] = value.__class__
        if kind is int and not INT64_MIN <= value <= INT64_MAX:
            kind, value = float, float(value)
        steps, reached = plans[kind]
        for step in steps:
            reached += step(value, correlation, path, found)
        return reached

    return check


def ratcheted(
    check: KeywordCheck, value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]
) -> int:
    """Run a check and drop its findings if the value did not change."""
    before = len(found)
    reached = check(value, correlation, path, found)
    if correlation is not None and len(found) > before and correlation.unchanged:
        del found[before:]
    return reached


def _declared_types(schema: Schema) -> list[str]:
    return [schema["type"]] if schema.get("type") else []


def _plan(
    schema: Schema, kind: type, types: list[str], single: str, value_format: str
) -> tuple[tuple[KeywordCheck, ...], int]:
    """Return the steps for values of one JSON type, and how many validators are always reached."""
    steps: list[KeywordCheck] = []
    # The schema itself, the composition check (twice) and the enumeration check always count.
    reached = 4
    if types or value_format:
        reached += 1
        type_step = _type_step(kind, types, value_format)
        if type_step is None:
            reached += 1
        else:
            steps.append(type_step)
    steps += _composition_steps(schema)
    if kind is str:
        reached += 1
        steps += _string_steps(schema)
        format_check = string_format(value_format) if value_format else None
        if format_check is not None:
            reached += 1
            steps.append(_format_step(value_format, format_check))
    elif kind in (int, float):
        reached += 2
        number = NumberCheck(schema, single, value_format)
        if number.can_fail(kind):
            steps.append(number)
    elif kind is list:
        reached += 2
        steps += _list_steps(schema)
    if schema.get("enum"):
        steps.append(_enum_step(schema["enum"]))
    if kind is dict:
        reached += 1
        steps += _object_steps(schema)
    return tuple(steps), reached


def _null_check(schema: Schema, types: list[str]) -> KeywordCheck:
    enum = _enum_step(schema["enum"]) if schema.get("enum") else None
    rejected = bool(types) and not schema.get("nullable")

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if rejected:
            found.append(wrong_type(path, ",".join(types), "null"))
        if enum is not None:
            enum(value, correlation, path, found)
        return 0 if rejected else 1

    return check


def _type_step(kind: type, types: list[str], value_format: str) -> KeywordCheck | None:
    """Return the type check for one JSON type, or None if it always passes."""
    name, natural_format = _JSON_TYPES[kind]
    if name in types or (name == "integer" and "number" in types):
        return None
    textual = kind in (str, list)
    if textual and value_format and "number" not in types and "integer" not in types:
        return None
    if not textual and value_format and value_format != natural_format:
        expected, actual = value_format, natural_format
    elif types:
        expected, actual = ",".join(types), name
    else:
        return None
    whole_floats = kind is float and "integer" in types

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if whole_floats and is_json_integer(value):
            return 1
        found.append(wrong_type(path, expected, actual))
        return 0

    return check


def _string_steps(schema: Schema) -> list[KeywordCheck]:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern", "")
    if longest is None and shortest is None and not pattern:
        return []
    search, pattern_text = _pattern(pattern)

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if longest is not None and len(value) > longest:
            found.append(
                KeywordViolation(
                    "too_long", path, f"{path} in body should be at most {longest} chars long", "", longest
                )
            )
        elif shortest is not None and len(value) < shortest:
            found.append(violated(path, f"should be at least {shortest} chars long", value))
        elif pattern and not search(value):
            found.append(violated(path, f"should match '{pattern_text}'", value))
        return 0

    return [check]


def _pattern(pattern: str) -> tuple[Callable[[str], bool], str]:
    try:
        return compile_pattern(pattern).search, pattern
    except PatternError as error:
        return lambda text: False, f"{pattern}, but pattern is invalid: {error}"


def _format_step(name: str, accepts: FormatCheck) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if not accepts(value):
            found.append(wrong_type(path, name, value))
        return 0

    return check


def _enum_step(allowed: list[Any]) -> KeywordCheck:
    names = "[" + " ".join(item if isinstance(item, str) else str(item) for item in allowed) + "]"
    strings = frozenset(item for item in allowed if isinstance(item, str))

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        if type(value) is str:
            if value in strings:
                return 0
        elif any(_is_enum_value(value, item) for item in allowed):
            return 0
        found.append(
            KeywordViolation("enum", path, f"{path} in body should be one of {names}", value, allowed)
        )
        return 0

    return check


def _is_enum_value(value: Any, allowed: Any) -> bool:
    if value is None or allowed is None:
        return False
    # Go converts the number to the type of the allowed one, which cuts off fractions.
    if type(allowed) is int and type(value) is float:
        return int(value) == allowed
    if type(allowed) is float and type(value) is int:
        return float(value) == allowed
    return same(value, allowed)


def _list_steps(schema: Schema) -> list[KeywordCheck]:
    steps: list[KeywordCheck] = []
    element = items(schema)
    if element is not None:
        steps.append(_items_step(compile_check(element)))
    least, most, unique = schema.get("minItems"), schema.get("maxItems"), schema.get("uniqueItems", False)
    if least is None and most is None and not unique:
        return steps

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        size = len(value)
        if least is not None and size < least:
            found.append(violated(path, f"should have at least {least} items", size))
        if most is not None and size > most:
            found.append(
                KeywordViolation(
                    "too_many", path, f"{path} in body should have at most {most} items", size, most
                )
            )
        if unique and len({identity(item) for item in value}) < size:
            found.append(violated(path, "shouldn't contain duplicates", ""))
        return 0

    return [*steps, check]


def _items_step(item: KeywordCheck) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        reached = 0
        if correlation is None:
            for position, element in enumerate(value):
                reached += item(element, None, f"{path}[{position}]", found)
        else:
            for position, element in enumerate(value):
                reached += ratcheted(item, element, correlation.index(position), f"{path}[{position}]", found)
        return reached

    return check


def _object_steps(schema: Schema) -> list[KeywordCheck]:
    steps: list[KeywordCheck] = []
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None or most is not None:
        steps.append(_size_step(least, most))
    fields = {name: compile_check(sub) for name, sub in properties(schema).items()}
    others = additional(schema)
    if others is not None:
        steps.append(_additional_step(frozenset(fields), compile_check(others)))
    elif schema.get("additionalProperties") is False:
        steps.append(_closed_step(frozenset(fields)))
    if fields:
        steps.append(_properties_step(fields))
    required: list[str] = schema.get("required", [])
    if required:
        steps.append(_required_step(required))
    return steps


def _size_step(least: int | None, most: int | None) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        size = len(value)
        if least is not None and size < least:
            found.append(violated(path, f"should have at least {least} properties", size))
        if most is not None and size > most:
            text = f"{path} in body should have at most {most} properties"
            found.append(KeywordViolation("too_many", path, text, size, most))
        return 0

    return check


def _closed_step(known: frozenset[str]) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        for name in value.keys() - known:
            found.append(
                KeywordViolation("value", path, f"{path}.{name} in body is a forbidden property", name)
            )
        return 0

    return check


def _additional_step(known: frozenset[str], other: KeywordCheck) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        reached = 0
        for name, item in value.items():
            if name not in known:
                child = correlation.key(name) if correlation is not None else None
                reached += ratcheted(other, item, child, f"{path}.{name}", found)
        return reached

    return check


def _properties_step(fields: dict[str, KeywordCheck]) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        reached = 0
        if correlation is None:
            for name, item in fields.items():
                if name in value:
                    reached += item(value[name], None, f"{path}.{name}" if path else name, found)
            return reached
        for name, item in fields.items():
            if name in value:
                # Both versions were converted to the same kind, so kind and apiVersion never ratchet.
                child = None if not path and name in ("kind", "apiVersion") else correlation.key(name)
                reached += ratcheted(item, value[name], child, f"{path}.{name}" if path else name, found)
        return reached

    return check


def _required_step(required: list[str]) -> KeywordCheck:
    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        for name in required:
            if name not in value:
                found.append(
                    KeywordViolation("required", f"{path}.{name}", f"{path}.{name} in body is required")
                )
        return 0

    return check


def _composition_steps(schema: Schema) -> list[KeywordCheck]:
    steps: list[KeywordCheck] = []
    for keyword, step in (("anyOf", any_of), ("oneOf", one_of), ("allOf", all_of)):
        if schema.get(keyword):
            steps.append(step([compile_check(sub) for sub in schema[keyword]]))
    if isinstance(schema.get("not"), dict):
        steps.append(none_of(compile_check(schema["not"])))
    return steps


_FLOAT32_MAX = 3.4028235677973366e38
_INT_RANGES = {"int32": (-(2**31), 2**31 - 1)}


class NumberCheck:
    """Check of one number against type, format, bounds and multipleOf."""

    def __init__(self, schema: Schema, schema_type: str, number_format: str) -> None:
        self._type = schema_type
        self._format = number_format
        self._multiple: float | None = schema.get("multipleOf")
        self._maximum: float | None = schema.get("maximum")
        self._minimum: float | None = schema.get("minimum")
        self._below = bool(schema.get("exclusiveMaximum"))
        self._above = bool(schema.get("exclusiveMinimum"))

    def can_fail(self, kind: type) -> bool:
        """Return True if the check can fail for a number of this Python type."""
        if any(bound is not None for bound in (self._multiple, self._maximum, self._minimum)):
            return True
        return self._format in ("int32", "float") or (self._type == "integer" and kind is float)

    def __call__(
        self, value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]
    ) -> int:
        """Append the findings for the number."""
        self._in_range(value, "Checked", path, found)
        if self._multiple is not None:
            self._check_multiple(value, self._multiple, path, found)
        if self._minimum is not None:
            self._check_minimum(value, self._minimum, path, found)
        if self._maximum is not None:
            self._check_maximum(value, self._maximum, path, found)
        return 0

    def _in_range(self, value: float, role: str, path: str, found: list[KeywordViolation]) -> bool:
        """Return True if the declared type and format can hold the number; append a finding if not."""
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
            found.append(KeywordViolation("general", path, f"{role} value must be of type {kind} in {path}"))
        return fits

    def _compared(
        self, value: float, bound: float, role: str, path: str, found: list[KeywordViolation]
    ) -> tuple[float, float]:
        """Return the value and the bound to compare: as integers if the value is one."""
        if self._in_range(bound, role, path, found) and isinstance(value, int):
            return value, math.trunc(bound)
        return float(value), float(bound)

    def _check_maximum(self, value: float, maximum: float, path: str, found: list[KeywordViolation]) -> None:
        value, bound = self._compared(value, maximum, "Maximum boundary", path, found)
        if value > bound or (self._below and value == bound):
            text = "should be less than" if self._below else "should be less than or equal to"
            found.append(violated(path, f"{text} {problems.number(bound)}", value))

    def _check_minimum(self, value: float, minimum: float, path: str, found: list[KeywordViolation]) -> None:
        value, bound = self._compared(value, minimum, "Minimum boundary", path, found)
        if value < bound or (self._above and value == bound):
            text = "should be greater than" if self._above else "should be greater than or equal to"
            found.append(violated(path, f"{text} {problems.number(bound)}", value))

    def _check_multiple(
        self, value: float, multiple: float, path: str, found: list[KeywordViolation]
    ) -> None:
        value, factor = self._compared(value, multiple, "MultipleOf", path, found)
        if factor <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {problems.number(factor)}"
            found.append(KeywordViolation("value", path, text, factor))
        elif isinstance(factor, int):
            if value % factor:
                found.append(violated(path, f"should be a multiple of {problems.number(factor)}", value))
        elif not is_json_integer(1 / factor * value if factor < 1 else value / factor):
            found.append(violated(path, f"should be a multiple of {problems.number(factor)}", value))


def any_of(options: Sequence[KeywordCheck]) -> KeywordCheck:
    """Return the check that at least one option passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        best: tuple[int, list[KeywordViolation]] = (-1, [])
        for option in options:
            inner: list[KeywordViolation] = []
            reached = option(value, correlation, path, inner)
            if not inner:
                return reached
            if reached > best[0]:
                best = (reached, inner)
        found.append(_general(path, "must validate at least one schema (anyOf)"))
        found += best[1]
        return best[0]

    return check


def one_of(options: Sequence[KeywordCheck]) -> KeywordCheck:
    """Return the check that exactly one option passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        best: tuple[int, list[KeywordViolation]] = (-1, [])
        passed: list[int] = []
        for option in options:
            inner: list[KeywordViolation] = []
            reached = option(value, correlation, path, inner)
            if not inner:
                passed.append(reached)
            elif reached > best[0]:
                best = (reached, inner)
        if len(passed) == 1:
            return passed[0]
        suffix = f"Found {len(passed)} valid alternatives" if passed else "Found none valid"
        found.append(_general(path, f"must validate one and only one schema (oneOf). {suffix}"))
        if passed:
            return 0
        found += best[1]
        return best[0]

    return check


def all_of(parts: Sequence[KeywordCheck]) -> KeywordCheck:
    """Return the check that every part passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        reached = passed = 0
        for part in parts:
            inner: list[KeywordViolation] = []
            reached += part(value, correlation, path, inner)
            passed += not inner
            found += inner
        if passed != len(parts):
            suffix = "" if passed else ". None validated"
            found.append(_general(path, f"must validate all the schemas (allOf){suffix}"))
        return reached

    return check


def none_of(part: KeywordCheck) -> KeywordCheck:
    """Return the check that a part does not pass."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[KeywordViolation]) -> int:
        inner: list[KeywordViolation] = []
        part(value, correlation, path, inner)
        if not inner:
            found.append(_general(path, "must not validate the schema (not)"))
        return 0

    return check


def _general(path: str, text: str) -> KeywordViolation:
    return KeywordViolation("general", path, f"{problems.quoted(path)} {text}")
