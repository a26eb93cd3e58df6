"""Functions on lists: Kubernetes' own, the lists extension, and sets."""

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    param,
)  # fmt: skip
from kubewright.schema.cel.values import (
    Duration,
    Uint,
    Value,
    checked_duration,
    checked_int,
    checked_uint,
    compare,
    equal,
    type_name,
)  # fmt: skip

_T = param("T")
_LIST = list_of(_T)
_SUMMABLE = {"int": INT, "uint": UINT, "double": DOUBLE, "duration": DURATION}
_COMPARABLE = _SUMMABLE | {"bool": BOOL, "timestamp": TIMESTAMP, "string": STRING, "bytes": BYTES}


def list_library() -> Library:
    """Return the functions on lists and sets."""
    library = Library()
    method = library.method
    for name, kind in _SUMMABLE.items():
        method("sum", f"list_{name}_sum_{name}", (list_of(kind),), kind, _sum(name))
    for name, kind in _COMPARABLE.items():
        method("isSorted", f"list_{name}_is_sorted_bool", (list_of(kind),), BOOL, _is_sorted)
        method("min", f"list_{name}_min_{name}", (list_of(kind),), kind, _extreme("min", -1))
        method("max", f"list_{name}_max_{name}", (list_of(kind),), kind, _extreme("max", 1))
        method("sort", f"list_{name}_sort", (list_of(kind),), list_of(kind), _sort)
        method(
            "@sortByAssociatedKeys",
            f"list_{name}_sortByAssociatedKeys",
            (_LIST, list_of(kind)),
            _LIST,
            _sort_by_keys,
        )
    method("indexOf", "list_a_index_of_int", (_LIST, _T), INT, _index_of)
    method("lastIndexOf", "list_a_last_index_of_int", (_LIST, _T), INT, _last_index_of)
    method("slice", "list_slice", (_LIST, INT, INT), _LIST, _slice)
    method("flatten", "list_flatten", (list_of(list_of(_T)),), _LIST, lambda listed: _flatten(listed, 1))
    method("flatten", "list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten)
    method("distinct", "list_distinct", (_LIST,), _LIST, _distinct)
    method("reverse", "list_reverse", (_LIST,), _LIST, lambda listed: listed[::-1])
    library.add("lists.range", "lists_range", (INT,), list_of(INT), lambda count: list(range(count)))
    library.add("sets.contains", "list_sets_contains_list", (_LIST, _LIST), BOOL, _contains)
    library.add(
        "sets.equivalent", "list_sets_equivalent_list", (_LIST, _LIST), BOOL,
        lambda left, right: _contains(left, right) and _contains(right, left),
    )  # fmt: skip
    library.add(
        "sets.intersects", "list_sets_intersects_list", (_LIST, _LIST), BOOL,
        lambda left, right: any(_within(item, right) for item in left),
    )  # fmt: skip
    return library


def _sum(name: str) -> Callable[[list[Any]], Any]:
    if name == "duration":
        return lambda listed: (
            checked_duration(sum(item.nanoseconds for item in listed)) if listed else Duration(0)
        )
    if name == "double":
        return lambda listed: float(sum(listed))
    if name == "uint":
        return lambda listed: checked_uint(sum(int(item) for item in listed)) if listed else Uint(0)
    return lambda listed: checked_int(sum(listed))


def _is_sorted(listed: list[Any]) -> bool:
    return all(compare(left, right) <= 0 for left, right in pairwise(listed))


def _extreme(name: str, sign: int) -> Callable[[list[Any]], Any]:
    def find(listed: list[Any]) -> Any:
        if not listed:
            raise EvaluationError(f"{name} called on empty list")
        best = listed[0]
        for item in listed[1:]:
            if compare(item, best) * sign > 0:
                best = item
        return best

    return find


def _index_of(listed: list[Any], item: Any) -> int:
    return next((at for at, known in enumerate(listed) if equal(known, item)), -1)


def _last_index_of(listed: list[Any], item: Any) -> int:
    return next((at for at in range(len(listed) - 1, -1, -1) if equal(listed[at], item)), -1)


def _slice(listed: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(listed):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(listed)}")
    return listed[start:end]


def _flatten(listed: list[Value], depth: int) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in listed:
        if isinstance(item, list) and depth > 0:
            flat += _flatten(item, depth - 1)
        else:
            flat.append(item)
    return flat


def _distinct(listed: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in listed:
        if not _within(item, kept):
            kept.append(item)
    return kept


def _sort(listed: list[Any]) -> list[Any]:
    return _sort_by_keys(listed, listed)


def _sort_by_keys(listed: list[Any], keys: list[Any]) -> list[Any]:
    if len(keys) != len(listed):
        text = "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
        raise EvaluationError(f"{text} {len(listed)} and {len(keys)} elements respectively")
    if len({type_name(key) for key in keys}) > 1:
        raise EvaluationError("list elements must have the same type")
    ordered = sorted(range(len(listed)), key=cmp_to_key(lambda a, b: compare(keys[a], keys[b])))
    return [listed[at] for at in ordered]


def _within(item: Any, listed: list[Any]) -> bool:
    return any(equal(item, known) for known in listed)


def _contains(listed: list[Any], items: list[Any]) -> bool:
    return all(_within(item, listed) for item in items)
