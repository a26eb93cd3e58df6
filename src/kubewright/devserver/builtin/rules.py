"""Validation and defaults from rows, for the kinds whose rules are regular.

A row is a path and the rules that hold there. A path is made of JSON names:

    spec.handler                 a missing object counts as empty, like a Go struct
    spec.service?.port           `?`: go on only if the field is set, like a Go pointer
    spec.drivers[].name          every item of a list
    subjects[kind=User].user     the items whose field has this value
    spec{type=A|B}.limited       go on only if the field of the object has one of these values, with `!=` only if not
    spec{!service}.caBundle      go on only if the field is missing or empty; `{service}`: only if it is not
    spec.rules[]{!verbs}         likewise for every item of a list

Rows are compiled to functions for the first object of a kind, so that no path is parsed for every request. They run in
the order in which they are written, because clients see errors in that order. Neighbouring rows that start with the
same list run item by item.

kube-apiserver runs the rules that tags of its Go types declare (`+k8s:required`) after those that are written in Go.
Rows of such rules are marked as declared and stand last, in the order of the fields in the Go type. Declared errors have
the same texts for all kinds, and that of an immutable field shows no value.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypedDict

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, copy

FieldRule = Callable[[str, Any], Iterable[FieldError]]
"""Check the value at a path; a missing value is None."""
Row = tuple[str, *tuple[FieldRule, ...]]
ChangeCheck = Callable[[JsonObject, JsonObject], Iterable[FieldError]]
"""Check what changed from the second object to the first."""

_SEGMENT = re.compile(
    r"(?P<name>\w*)(?:\[(?P<items>[^]]*)\])?(?P<optional>\??)(?P<conditions>(?:\{[^}]*\})*)"
)
_UNSET: tuple[Any, ...] = (None, "", [])


_Step = Callable[[str, Any, list[FieldError]], None]
"""Check the value at a path and add the errors to a list, which costs less than generators that are nested."""


_Fill = Callable[[JsonObject], None]
"""Fill in the defaults of an object."""


class Rules:
    """Rows as a rule for the value that their paths start from."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @cached_property
    def run(self) -> _Step:
        """Return the compiled rows; most kinds are never used, so this waits for the first object."""
        return _compile([(path.split(".") if path else [], found) for path, *found in self._rows])

    def __call__(self, path: str, value: Any) -> list[FieldError]:
        """Check a value that is found at a path."""
        errors: list[FieldError] = []
        self.run(path, value, errors)
        return errors

    def validate(self, obj: JsonObject) -> list[FieldError]:
        """Check a whole object."""
        return self("", obj)

    def validate_update(self, new: JsonObject, old: JsonObject) -> list[FieldError]:
        """Check the new object of an update as if it were created."""
        return self("", new)


def rules(*rows: Row) -> Rules:
    """Make a rule from rows of a path and its rules."""
    return Rules(rows)


class Validated(TypedDict):
    """The validation of a kind, as arguments of its strategy."""

    validate: Callable[[JsonObject], list[FieldError]]
    validate_update: Callable[[JsonObject, JsonObject], list[FieldError]]


def validated(
    checks: Rules | Callable[[JsonObject], list[FieldError]],
    *more: ChangeCheck,
    first: Sequence[ChangeCheck] = (),
) -> Validated:
    """Check an object in the same way when it is created and when it is updated; pass the result with `**`.

    An update has more checks, which follow, except those that come `first`.
    """
    validate = checks.validate if isinstance(checks, Rules) else checks

    def update(new: JsonObject, old: JsonObject) -> list[FieldError]:
        errors = [error for check in first for error in check(new, old)]
        errors += validate(new)
        return errors + [error for check in more for error in check(new, old)]

    return {"validate": validate, "validate_update": update}


def changes(*checks: ChangeCheck) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    """Join checks of an update, which run in this order."""
    return lambda new, old: [error for found in checks for error in found(new, old)]


def fixed(*paths: str, text: str) -> ChangeCheck:
    """Make the check that fields keep their values, which a missing or empty one does not have; `{}` is the path."""

    def run(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
        for path in paths:
            after, before = (_read(obj, path.split(".")) or None for obj in (new, old))
            if after != before:
                yield problems.forbidden(path, text.format(path))

    return run


def immutable(*paths: str, missing: Any = None, shown: bool = True) -> ChangeCheck:
    """Make the check that fields keep their values; a missing one has this value.

    Without `shown` the error has no value, as that of a declared rule.
    """
    readers = [(path, path.split(".")) for path in paths]

    def run(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
        for path, names in readers:
            after, before = (_read(obj, names) for obj in (new, old))
            errors = check.unchanged(
                path, missing if after is None else after, missing if before is None else before
            )
            yield from errors if shown else (problems.invalid(path, None, check.IMMUTABLE) for _ in errors)

    return run


def defaults(*rows: tuple[str, Any]) -> _Fill:
    """Compile rows of a path and the value that a missing field or an empty list gets.

    A path that ends with `!` names a field that is not a pointer in Go: there zero and "" count as missing, too. Rows run
    in this order, so a condition sees what the rows before filled in.
    """
    return _compile_defaults([(path.split("."), value) for path, value in rows])


def _compile_defaults(rows: Sequence[tuple[Sequence[str], Any]]) -> _Fill:
    fills: list[_Fill] = []
    for (start, leaf), group in itertools.groupby(rows, key=lambda row: (row[0][0], len(row[0]) == 1)):
        members = list(group)
        if leaf:
            fills += [_fill_field(start, value) for _, value in members]
        else:
            fills.append(
                _fill_within(start, _compile_defaults([(path[1:], value) for path, value in members]))
            )
    if len(fills) == 1:
        return fills[0]

    def run(obj: JsonObject) -> None:
        for fill in fills:
            fill(obj)

    return run


def without(*paths: str) -> Callable[[JsonObject], None]:
    """Compile paths of fields to remove: fields whose feature gate is off, which kube-apiserver drops."""
    compiled = [[_parsed(segment) for segment in path.split(".")] for path in paths]

    def remove(holder: JsonObject, steps: Sequence[dict[str, str | None]]) -> None:
        name = steps[0]["name"] or ""
        if len(steps) == 1:
            holder.pop(name, None)
        elif (found := holder.get(name)) is not None:
            for item in found if steps[0]["items"] is not None else (found,):
                remove(item, steps[1:])

    def run(obj: JsonObject) -> None:
        for steps in compiled:
            remove(obj, steps)

    return run


def _fill_field(last: str, value: Any) -> _Fill:
    name = last.removesuffix("!")
    missing: tuple[Any, ...] = (None, [], "", 0) if last.endswith("!") else (None, [])
    shared = not isinstance(value, dict | list)

    def run(obj: JsonObject) -> None:
        if obj.get(name) in missing:
            obj[name] = value if shared else copy(value)

    return run


def _fill_within(segment: str, inner: _Fill) -> _Fill:
    parts = _parsed(segment)
    name, optional, conditions = parts["name"] or "", bool(parts["optional"]), _conditions(parts)

    def fill(item: JsonObject) -> None:
        for holds in conditions:
            if not holds(item):
                return
        inner(item)

    checked = fill if conditions else inner

    def fill_items(obj: JsonObject) -> None:
        for item in obj.get(name) or ():
            checked(item)

    def fill_object(obj: JsonObject) -> None:
        found = obj.get(name)
        if found is None:
            if optional:
                return
            found = obj[name] = JsonObject()
        checked(found)

    return fill_object if parts["items"] is None else fill_items


def _read(obj: Any, names: Sequence[str]) -> Any:
    for name in names:
        obj = None if obj is None else obj.get(name)
    return obj


@cache
def _parsed(segment: str) -> dict[str, str | None]:
    found = _SEGMENT.fullmatch(segment)
    if found is None:
        raise ValueError(f"{segment!r} is not a segment of a path")
    return found.groupdict()


def _compile(rows: Sequence[tuple[Sequence[str], Sequence[FieldRule]]]) -> _Step:
    steps: list[_Step] = []
    for start, group in itertools.groupby(rows, key=lambda row: list(row[0][:1])):
        members = list(group)
        if not start:
            steps += [_leaf(rule) for _, found in members for rule in found]
        else:
            steps.append(_enter(start[0], _compile([(path[1:], found) for path, found in members])))
    if len(steps) == 1:
        return steps[0]

    def run(path: str, value: Any, errors: list[FieldError]) -> None:
        for step in steps:
            step(path, value, errors)

    return run


def _leaf(rule: FieldRule) -> _Step:
    if isinstance(rule, Rules):
        return rule.run
    return lambda path, value, errors: errors.extend(rule(path, value))


def _enter(segment: str, inner: _Step) -> _Step:
    parts = _parsed(segment)
    name, chosen, optional = parts["name"] or "", parts["items"], bool(parts["optional"])
    conditions = _conditions(parts)
    if chosen is not None:
        inner, conditions = _every(conditions, inner), []

    def run(path: str, value: Any, errors: list[FieldError]) -> None:
        found = value if value is None or not name else value.get(name)
        if optional and found is None:
            return
        for holds in conditions:
            if not holds(found or {}):
                return
        inner(f"{path}.{name}" if path and name else path or name, found, errors)

    return run


def _every(conditions: Sequence[Callable[[JsonObject], bool]], inner: _Step) -> _Step:
    def run(path: str, value: Any, errors: list[FieldError]) -> None:
        for index, item in enumerate(value or ()):
            for holds in conditions:
                if not holds(item):
                    break
            else:
                inner(f"{path}[{index}]", item, errors)

    def run_for_all(path: str, value: Any, errors: list[FieldError]) -> None:
        for index, item in enumerate(value or ()):
            inner(f"{path}[{index}]", item, errors)

    return run if conditions else run_for_all


def _conditions(segment: Mapping[str, str | None]) -> list[Callable[[JsonObject], bool]]:
    texts = [segment["items"] or "", *(segment["conditions"] or "")[1:-1].split("}{")]
    return [_condition(text) for text in texts if text]


def _condition(text: str) -> Callable[[JsonObject], bool]:
    name, equals, expected = text.partition("=")
    values = (expected == "true",) if expected in ("true", "false") else tuple(expected.split("|"))
    if name.endswith("!"):
        return lambda obj: obj.get(name[:-1]) not in values
    if equals:
        return lambda obj: obj.get(name) in values
    if name.startswith("!"):
        return lambda obj: obj.get(name[1:]) in _UNSET
    return lambda obj: obj.get(name) not in _UNSET


def required(text: str = "") -> FieldRule:
    """Make the rule that a value is set and not empty."""
    return lambda path, value: () if value else [problems.required(path, text)]


def absent(text: str = "") -> FieldRule:
    """Make the rule that a value is not set."""
    return lambda path, value: () if value is None else [problems.forbidden(path, text)]


def unset(text: str) -> FieldRule:
    """Make the rule that a value is not set, which shows the value that is."""
    return lambda path, value: () if value is None else [problems.invalid(path, value, text)]


def missing(text: str = "") -> FieldRule:
    """Report a value as missing; the path says when."""
    return lambda path, value: [problems.required(path, text)]


def given(rule: FieldRule, text: str = "") -> FieldRule:
    """Make the rule for a value that must be set, where an empty one counts as set."""
    return lambda path, value: [problems.required(path, text)] if value is None else rule(path, value)


def first(*found: FieldRule) -> FieldRule:
    """Apply rules until one of them reports an error."""

    def run(path: str, value: Any) -> list[FieldError]:
        return next((errors for rule in found if (errors := list(rule(path, value)))), list[FieldError]())

    return run


def fits(holds: Callable[[Any], object], text: str) -> FieldRule:
    """Make the rule that a function returns a true value for a value."""
    return lambda path, value: () if holds(value) else [problems.invalid(path, value, text)]


def in_bytes(syntax: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Make the syntax of a declared rule from that of other rules: its limits are in bytes."""
    return lambda value: [
        text.replace(" characters", " bytes") if text.startswith("must be no more than ") else text
        for text in syntax(value)
    ]


def named(
    syntax: Callable[[str], list[str]], *, required: bool | str = False, empty: bool = False
) -> FieldRule:
    """Make the rule that a text has a syntax.

    An empty text is accepted; with `required` it is reported as missing (in these words, if they are given), with
    `empty` it must have the syntax, too.
    """
    missing = required if isinstance(required, str) else ""

    def run(path: str, value: str | None) -> list[FieldError]:
        if not value and required is not False:
            return [problems.required(path, missing)]
        return check.named(path, value or "", syntax(value or "")) if value or empty else []

    return run


def one_of(*choices: str, required: bool = False) -> FieldRule:
    """Make the rule that a value is one of a few; with `required`, a missing one is reported as such."""
    if required:
        return lambda path, value: check.choice(path, value, choices)
    return lambda path, value: check.one_of(path, "" if value is None else value, choices)


def between(low: float, high: float, text: str) -> FieldRule:
    """Make the rule that a number, zero if missing, is in a range with both of its ends."""
    return lambda path, value: (
        () if low <= (value or 0) <= high else [problems.invalid(path, value or 0, text)]
    )


def at_least(low: float, text: str) -> FieldRule:
    """Make the rule that a number, zero if missing, is not lower."""
    return between(low, float("inf"), text)


def at_most(high: float, text: str) -> FieldRule:
    """Make the rule that a number, zero if missing, is not higher."""
    return between(float("-inf"), high, text)


def max_bytes(most: int) -> FieldRule:
    """Make the rule that a text is not longer."""
    return lambda path, value: [problems.too_long(path, most)] if value and len(value.encode()) > most else ()


def each(rule: FieldRule) -> FieldRule:
    """Apply a rule to the items of a list, or to the keys of a map, where errors do not show which."""
    return lambda path, value: [error for item in value or () for error in rule(path, item)]


def unique(
    field: str, *, before: FieldRule | None = None, after: FieldRule | None = None, empty: bool = True
) -> FieldRule:
    """Make the rule that no two items of a list have the same value in a field.

    `before` and `after` are rules for each item, which run before and after this check of the same item. If not `empty`,
    any number of items may have an empty value.
    """

    def run(path: str, value: Sequence[JsonObject] | None) -> Iterator[FieldError]:
        seen: set[Any] = set()
        for index, item in enumerate(value or ()):
            where, found = f"{path}[{index}]", item.get(field) or ""
            if before is not None:
                yield from before(where, item)
            if found in seen and (empty or found):
                yield problems.duplicate(f"{where}.{field}", found)
            seen.add(found)
            if after is not None:
                yield from after(where, item)

    return run


def each_once(rule: FieldRule) -> FieldRule:
    """Apply a rule to the items of a list, none of which may occur twice."""

    def run(path: str, value: Sequence[Any] | None) -> Iterator[FieldError]:
        for index, item in enumerate(value or ()):
            yield from rule(f"{path}[{index}]", item)
            if item in (value or ())[:index]:
                yield problems.duplicate(f"{path}[{index}]", item)

    return run


distinct: FieldRule = each_once(lambda path, value: ())
"""Check that no item of a list occurs twice."""
