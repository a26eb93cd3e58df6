"""Lists that are sets or maps: their elements and keys must be unique."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.schema.nodes import Schema, additional, items, properties
from kubewright.schema.values import Json, identity, in_order

ListCheck = Callable[[Any, str, list[FieldError]], None]
"""Report duplicates in a value, given its path and the list to add to."""


def compile_list_checks(schema: Schema) -> ListCheck | None:
    """Compile the uniqueness checks of a schema, or return None where it has none."""
    fields = _present({name: compile_list_checks(sub) for name, sub in properties(schema).items()})
    other, element = additional(schema), items(schema)
    others = None if other is None else compile_list_checks(other)
    elements = None if element is None else compile_list_checks(element)
    unique = _uniqueness(schema)
    if not fields and others is None and elements is None and unique is None:
        return None

    def check(value: Json, path: str, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            if others is not None:
                for name, item in value.items():
                    others(item, f"{path}[{name}]", errors)
            for name, inner in fields.items():
                if name in value:
                    inner(value[name], f"{path}.{name}" if path else name, errors)
        elif isinstance(value, list):
            if unique is not None:
                unique(value, path, errors)
            if elements is not None:
                for position, item in enumerate(value):
                    elements(item, f"{path}[{position}]", errors)

    return check


def _present(checks: dict[str, ListCheck | None]) -> dict[str, ListCheck]:
    return {name: check for name, check in checks.items() if check is not None}


def _uniqueness(schema: Schema) -> ListCheck | None:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return _check_set
    if kind == "map":
        return _map_check(schema.get("x-kubernetes-list-map-keys", []))
    return None


def _check_set(value: list[Any], path: str, errors: list[FieldError]) -> None:
    for position in _repeated([identity(item) for item in value]):
        errors.append(problems.duplicate(f"{path}[{position}]", in_order(value[position])))


def _map_check(names: Sequence[str]) -> ListCheck:
    def check(value: list[Any], path: str, errors: list[FieldError]) -> None:
        for position, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                text = "must be an object for an array of list-type map"
                errors.append(problems.invalid(f"{path}[{position}]", in_order(item), text))
                return
        keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
        for position in _repeated([identity(key) for key in keys]):
            errors.append(problems.duplicate(f"{path}[{position}]", in_order(keys[position])))

    return check


def _repeated(keys: list[Hashable]) -> list[int]:
    """Return the position of the second appearance of each repeated key."""
    if len(set(keys)) == len(keys):
        return []
    seen: dict[Hashable, int] = {}
    positions: list[int] = []
    for position, key in enumerate(keys):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            positions.append(position)
    return positions
