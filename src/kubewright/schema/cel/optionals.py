"""Values that may be absent: `optional.of`, `orValue` and their kin."""

from typing import Any

from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.standard import index_list, index_map
from kubewright.schema.cel.types import BOOL, INT, list_of, map_of, optional_of, param
from kubewright.schema.cel.values import NONE, Optional, Value

_T, _K = param("T"), param("K")
_OPTIONAL = optional_of(_T)


def optional_library() -> Library:
    """Return the functions on optional values; `.?` and macros are the parser's."""
    library = Library()
    library.add("optional.of", "optional_of", (_T,), _OPTIONAL, Optional)
    library.add("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_T,), _OPTIONAL, _non_zero)
    library.add("optional.none", "optional_none", (), _OPTIONAL, lambda: NONE)
    library.add("optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), list_of(_T), _unwrap)
    library.method("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), list_of(_T), _unwrap)
    library.method("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda value: value.present)
    library.method("value", "optional_value", (_OPTIONAL,), _T, _value)
    library.method(
        "or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, lambda a, b: a if a.present else b
    )
    library.method(
        "orValue", "optional_orValue_value", (_OPTIONAL, _T), _T, lambda a, b: a.value if a.present else b
    )
    library.add("_[?_]", "list_optindex_optional_int", (list_of(_T), INT), _OPTIONAL, index)
    library.add(
        "_[?_]", "optional_list_optindex_optional_int", (optional_of(list_of(_T)), INT), _OPTIONAL, index
    )
    library.add("_[?_]", "map_optindex_optional_value", (map_of(_K, _T), _K), _OPTIONAL, index)
    library.add(
        "_[?_]", "optional_map_optindex_optional_value", (optional_of(map_of(_K, _T)), _K), _OPTIONAL, index
    )
    library.add("_[_]", "optional_list_index_int", (optional_of(list_of(_T)), INT), _OPTIONAL, index)
    library.add("_[_]", "optional_map_index_value", (optional_of(map_of(_K, _T)), _K), _OPTIONAL, index)
    library.method(
        "first",
        "list_first",
        (list_of(_T),),
        _OPTIONAL,
        lambda listed: Optional(listed[0]) if listed else NONE,
    )
    library.method(
        "last",
        "list_last",
        (list_of(_T),),
        _OPTIONAL,
        lambda listed: Optional(listed[-1]) if listed else NONE,
    )
    return library


def index(container: Value, key: Any) -> Optional:
    """Return an element or entry, if it is there."""
    if isinstance(container, Optional):
        return index(container.value, key) if container.present else NONE
    try:
        if isinstance(container, list):
            return Optional(index_list(container, key))
        return Optional(index_map(container, key)) if isinstance(container, dict) else NONE
    except EvaluationError:
        return NONE


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _non_zero(value: Any) -> Optional:
    return Optional(value) if value else NONE


def _unwrap(listed: list[Optional]) -> list[Any]:
    return [item.value for item in listed if item.present]
