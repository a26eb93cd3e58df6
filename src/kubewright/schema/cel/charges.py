"""What calls cost when they are evaluated, in the API server's units."""

import math
from collections.abc import Callable
from typing import Any

from kubewright.schema.cel.values import Value, size

Charge = Callable[[tuple[Any, ...], Any], int]

STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
AUTHORIZATION_CHECK = 350_000


def charge_for(function: str, overload: str) -> Charge:
    """Return the function that tells what a call costs, given its arguments and its result."""
    if overload == "cidr_ip":
        return _one
    if function in ("sort", "@sortByAssociatedKeys"):
        return _self_compared(0 if function == "sort" else 1)
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload) or _one


def _one(args: tuple[Any, ...], result: Any) -> int:
    return 1


def _part(length: float, factor: float = STRING_FACTOR) -> int:
    return math.ceil(length * factor)


def _first(args: tuple[Any, ...], result: Any) -> int:
    return _part(size(args[0]))


def _first_twice(args: tuple[Any, ...], result: Any) -> int:
    return _part(size(args[0]) * 2)


def _result_twice(args: tuple[Any, ...], result: Any) -> int:
    return _part(size(result) * 2)


def _pattern(args: tuple[Any, ...], result: Any) -> int:
    return _part(1 + size(args[0])) * _part(size(args[1]), REGEX_FACTOR)


def _shorter(args: tuple[Any, ...], result: Any) -> int:
    return _part(min(size(args[0]), size(args[1])))


def _both(args: tuple[Any, ...], result: Any) -> int:
    return _part(size(args[0]) + size(args[1]))


def _contains(args: tuple[Any, ...], result: Any) -> int:
    return _part(size(args[0])) * _part(size(args[1]))


def _listed(args: tuple[Any, ...], result: Any) -> int:
    return size(args[1])


def _traversal(args: tuple[Any, ...], result: Any) -> int:
    return _traversed(args[0])


def _traversed(value: Value) -> int:
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * STRING_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(map(_traversed, value))
    if isinstance(value, dict):
        return sum(_traversed(key) + _traversed(item) for key, item in value.items())
    return 1


def _contains_ip(args: tuple[Any, ...], result: Any) -> int:
    cost = _part(2 * size(args[0]))
    return cost + _part(size(args[1])) if isinstance(args[1], str) else cost


def _contains_cidr(args: tuple[Any, ...], result: Any) -> int:
    return _contains_ip(args, result) + _part(size(args[0])) + 1


def _validated(args: tuple[Any, ...], result: Any) -> int:
    return _part(1 + size(args[1])) * _part(args[0].regex_size, REGEX_FACTOR)


def _selector(args: tuple[Any, ...], result: Any) -> int:
    length = size(args[1])
    return 10 + _part(length) + math.ceil(math.ceil(length * 0.5) * 50)


def _check(args: tuple[Any, ...], result: Any) -> int:
    return AUTHORIZATION_CHECK


_BY_FUNCTION: dict[str, Charge] = {
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "jsonpatch.escapeKey", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": _result_twice,
    **dict.fromkeys(("find", "findAll"), _pattern),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validated,
}


def _times(factor: int) -> Charge:
    return lambda args, result: 1 + size(args[0]) * size(args[1]) * factor


def _result_list(args: tuple[Any, ...], result: Any) -> int:
    return size(result) + 11


def _flattened(args: tuple[Any, ...], result: Any) -> int:
    return size(args[0]) * (args[1] if len(args) > 1 else 1) + 11


def _self_compared(position: int) -> Charge:
    def charge(args: tuple[Any, ...], result: Any) -> int:
        listed = args[position]
        factor = 2 + STRING_FACTOR if listed and isinstance(listed[0], str | bytes) else 2.0
        return int(len(listed) ** 2 * factor) + 11

    return charge


_COMPARED = ("less", "greater", "less_equals", "greater_equals")
_BY_OVERLOAD: dict[str, Charge] = {
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _first,
    ),
    "in_list": _listed,
    **dict.fromkeys(("equals", "not_equals"), _shorter),
    **{f"{name}_{kind}": _shorter for name in _COMPARED for kind in ("string", "bytes")},
    **dict.fromkeys(("add_string", "add_bytes"), _both),
    "matches_string": _pattern,
    "contains_string": _contains,
    "list_sets_contains_list": _times(1),
    "list_sets_intersects_list": _times(1),
    "list_sets_equivalent_list": _times(2),
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _result_list),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flattened),
    "list_distinct": _self_compared(0),
}
