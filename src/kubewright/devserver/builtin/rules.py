"""Validation and defaults from rows, for the kinds whose rules are regular.

A row is a path and the rules that hold there. A path is made of JSON names:

    spec.handler                 a missing object counts as empty, like a Go struct
    spec.service?.port           `?`: go on only if the field is set, like a Go pointer
    spec.drivers[].name          every item of a list
    subjects[kind=User].user     the items whose field has this value
    spec{type=Limited}.limited   go on only if the field of the object has this value, with `!=` only if not
    spec{!service}.caBundle      go on only if the field is missing or empty; `{service}`: only if it is not

Rows are compiled to functions for the first object of a kind, so that no path is parsed for every request. They run in
the order in which they are written, because clients see errors in that order. Neighbouring rows that start with the
same list run item by item.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

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


def changes(*checks: ChangeCheck) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    """Join checks of an update, which run in this order."""
    return lambda new, old: [error for found in checks for error in found(new, old)]


def immutable(*paths: str, missing: Any = None) -> ChangeCheck:
    """Make the check that fields keep their values; a missing one has this value."""
    readers = [(path, path.split(".")) for path in paths]

    def run(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
        for path, names in readers:
            after, before = (_read(obj, names) for obj in (new, old))
            yield from check.unchanged(
                path, missing if after is None else after, missing if before is None else before
            )

    return run


def defaults(*rows: tuple[str, Any]) -> Callable[[JsonObject], None]:
    """Compile rows of a path and the value that a missing field or an empty list gets.

    A path that ends with `!` names a field that is not a pointer in Go: there zero and "" count as missing, too.
    """
    compiled = [_default(path, value) for path, value in rows]

    def run(obj: JsonObject) -> None:
        for fill in compiled:
            fill(obj)

    return run


def _default(path: str, value: Any) -> Callable[[JsonObject], None]:
    *parents, last = path.split(".")
    name = last.removesuffix("!")
    missing: tuple[Any, ...] = (None, [], "", 0) if last.endswith("!") else (None, [])
    steps = [_parsed(parent) for parent in parents]

    def fill(holder: Any, depth: int = 0) -> None:
        if depth == len(steps):
            if holder.get(name) in missing:
                holder[name] = copy(value)
            return
        step = steps[depth]
        found = holder.get(step["name"])
        if step["items"] is not None:
            for item in found or ():
                fill(item, depth + 1)
        elif found is not None:
            fill(found, depth + 1)
        elif not step["optional"]:
            fill(holder.setdefault(step["name"], {}), depth + 1)

    return fill


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
    conditions = [_condition(text) for text in (parts["conditions"] or "")[1:-1].split("}{") if text]
    if chosen is not None:
        inner = _every(_condition(chosen) if chosen else None, inner)

    def run(path: str, value: Any, errors: list[FieldError]) -> None:
        found = value if value is None or not name else value.get(name)
        if optional and found is None:
            return
        for holds in conditions:
            if not holds(found or {}):
                return
        inner(f"{path}.{name}" if path and name else path or name, found, errors)

    return run


def _every(selects: Callable[[JsonObject], bool] | None, inner: _Step) -> _Step:
    def run(path: str, value: Any, errors: list[FieldError]) -> None:
        for index, item in enumerate(value or ()):
            if selects is None or selects(item):
                inner(f"{path}[{index}]", item, errors)

    return run


def _condition(text: str) -> Callable[[JsonObject], bool]:
    name, equals, expected = text.partition("=")
    if name.endswith("!"):
        return lambda obj: obj.get(name[:-1]) != expected
    if equals:
        return lambda obj: obj.get(name) == expected
    if name.startswith("!"):
        return lambda obj: obj.get(name[1:]) in _UNSET
    return lambda obj: obj.get(name) not in _UNSET


def required(text: str = "") -> FieldRule:
    """Make the rule that a value is set and not empty."""
    return lambda path, value: () if value else [problems.required(path, text)]


def absent(text: str) -> FieldRule:
    """Make the rule that a value is not set."""
    return lambda path, value: () if value is None else [problems.forbidden(path, text)]


def unset(text: str) -> FieldRule:
    """Make the rule that a value is not set, which shows the value that is."""
    return lambda path, value: () if value is None else [problems.invalid(path, value, text)]


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


def unique(field: str, *, before: FieldRule | None = None, after: FieldRule | None = None) -> FieldRule:
    """Make the rule that no two items of a list have the same value in a field.

    `before` and `after` are rules for each item, which run before and after this check of the same item.
    """

    def run(path: str, value: Sequence[JsonObject] | None) -> Iterator[FieldError]:
        seen: set[Any] = set()
        for index, item in enumerate(value or ()):
            where, found = f"{path}[{index}]", item.get(field) or ""
            if before is not None:
                yield from before(where, item)
            if found in seen:
                yield problems.duplicate(f"{where}.{field}", found)
            seen.add(found)
            if after is not None:
                yield from after(where, item)

    return run


def distinct(path: str, value: Sequence[Any] | None) -> Iterator[FieldError]:
    """Check that no item of a list occurs twice."""
    for index, item in enumerate(value or ()):
        if item in (value or ())[:index]:
            yield problems.duplicate(f"{path}[{index}]", item)
