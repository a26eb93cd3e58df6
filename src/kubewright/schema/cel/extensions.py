"""Extension libraries: optional values, strings, lists and sets."""

import math
import re
from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kubewright.api import problems
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.standard import index_list, index_map, plain_or_exponent
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
    Library,
    list_of,
    map_of,
    optional_of,
    param,
)
from kubewright.schema.cel.values import (
    NONE,
    CelDuration,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    checked_duration,
    checked_int,
    checked_uint,
    compare,
    equal,
    type_name,
)
from kubewright.schema.patterns import Pattern, PatternError, compile_pattern

_T, _K = param("T"), param("K")
_OPTIONAL = optional_of(_T)
_STRINGS = list_of(STRING)
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.?))", re.DOTALL)
_LIST = list_of(_T)
_SUMMABLE = {"int": INT, "uint": UINT, "double": DOUBLE, "duration": DURATION}
_COMPARABLE = _SUMMABLE | {"bool": BOOL, "timestamp": TIMESTAMP, "string": STRING, "bytes": BYTES}


def optional_library() -> Library:
    """Return the functions on optional values; the parser implements `.?` and the macros."""
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
    """Return an element or entry as an optional value."""
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


def text_library() -> Library:
    """Return the functions on strings, with Kubernetes' `find` and `findAll`."""
    library = Library()
    method = library.method
    method("charAt", "string_char_at_int", (STRING, INT), STRING, _char_at)
    method("indexOf", "string_index_of_string", (STRING, STRING), INT, _index_of)
    method("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, _index_of)
    method("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, _last_index_of)
    method("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of)
    method("lowerAscii", "string_lower_ascii", (STRING,), STRING, _ascii(str.lower))
    method("upperAscii", "string_upper_ascii", (STRING,), STRING, _ascii(str.upper))
    method("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, str.replace)
    method("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, str.replace)
    method("split", "string_split_string", (STRING, STRING), _STRINGS, _split)
    method("split", "string_split_string_int", (STRING, STRING, INT), _STRINGS, _split)
    method("substring", "string_substring_int", (STRING, INT), STRING, _substring)
    method("substring", "string_substring_int_int", (STRING, INT, INT), STRING, _substring)
    method("trim", "string_trim", (STRING,), STRING, str.strip)
    method("join", "list_join", (_STRINGS,), STRING, _join)
    method("join", "list_join_string", (_STRINGS, STRING), STRING, _join)
    method("format", "string_format", (STRING, list_of(DYN)), STRING, formatted)
    library.add("strings.quote", "strings_quote", (STRING,), STRING, problems.quoted)
    method("find", "string_find_string", (STRING, STRING), STRING, _find)
    method("findAll", "string_find_all_string", (STRING, STRING), _STRINGS, _find_all)
    method("findAll", "string_find_all_string_int", (STRING, STRING, INT), _STRINGS, _find_all)
    return library


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if part == "":
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        pieces = list(text)
        if limit > 0 and len(pieces) > limit:
            return [*pieces[: limit - 1], "".join(pieces[limit - 1 :])]
        return pieces
    return text.split(separator, -1 if limit < 0 else limit - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise EvaluationError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    return text[start:end]


def _join(listed: list[Any], separator: str = "") -> str:
    for item in listed:
        if not isinstance(item, str):
            raise EvaluationError(f"join: invalid input: {item}")
    return separator.join(listed)


def _pattern(text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    span = _pattern(pattern).find(text)
    return text[span[0] : span[1]] if span else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _pattern(pattern).find_all(text, limit)


def formatted(template: str, args: list[Any]) -> str:
    """Format a text as `format` does."""
    pieces: list[str] = []
    at = used = 0
    for match in _CLAUSE.finditer(template):
        pieces.append(template[at : match.start()])
        at = match.end()
        if match.group() == "%%":
            pieces.append("%")
            continue
        verb = match[2]
        if not verb:
            raise EvaluationError("unexpected end of string")
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        pieces.append(_clause(verb, match[1], args[used]))
        used += 1
    pieces.append(template[at:])
    return "".join(pieces)


def template_verbs(template: str) -> list[str]:
    """Return the verbs of a format string; raise EvaluationError if one is unknown."""
    verbs = [match[2] for match in _CLAUSE.finditer(template) if match.group() != "%%"]
    for verb in verbs:
        if not verb:
            raise EvaluationError("unexpected end of string")
        if verb not in "sdfebxXo":
            raise _unknown_verb(verb)
    return verbs


def _unknown_verb(verb: str) -> EvaluationError:
    return EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


def _clause(verb: str, precision: str | None, value: Value) -> str:
    if verb == "s":
        return shown(value)
    if verb == "d":
        if isinstance(value, int) and not isinstance(value, bool):
            return str(int(value))
        raise _unfit("decimal clause can only be used on integers", value)
    if verb in ("f", "e"):
        if not isinstance(value, int | float) or isinstance(value, bool):
            what = "fixed-point" if verb == "f" else "scientific"
            raise _unfit(f"{what} clause can only be used on doubles", value)
        text = f"{float(value):.{precision or 6}{verb}}"
        return text if verb == "f" else _typeset(text)
    if verb == "b" and isinstance(value, int):
        return format(int(value), "b")
    if verb == "o" and isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), "o")
    if verb in ("x", "X"):
        return _hexadecimal(verb, value)
    if verb in ("b", "o"):
        what = (
            "only integers and bools can be formatted as binary"
            if verb == "b"
            else "octal clause can only be used on integers"
        )
        raise _unfit(what, value)
    raise _unknown_verb(verb)


def _typeset(text: str) -> str:
    """Format an exponent as the server does, with a multiplication sign and raised digits."""
    mantissa, _, exponent = text.partition("e")
    raised = exponent.removeprefix("+").translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}\u202f×\u202f10{raised}"


def _unfit(problem: str, value: Value) -> EvaluationError:
    return EvaluationError(f"error during formatting: {problem}, was given {type_name(value)}")


def _hexadecimal(verb: str, value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), verb)
    raw = value.encode() if isinstance(value, str) else value
    if not isinstance(raw, bytes):
        raise _unfit("only integers, byte buffers, and strings can be formatted as hex", value)
    return raw.hex() if verb == "x" else raw.hex().upper()


def shown(value: Value, *, nested: bool = False) -> str:
    """Format any value as `%s` does."""
    if isinstance(value, str):
        return problems.quoted(value) if nested else value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _shown_double(value, nested)
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        return f"b{problems.quoted(text)}" if nested else text
    if isinstance(value, Timestamp):
        return f'timestamp("{value}")' if nested else str(value)
    if isinstance(value, CelDuration):
        return f'duration("{value}")' if nested else str(value)
    if isinstance(value, list):
        return "[" + ", ".join(shown(item, nested=True) for item in value) + "]"
    if isinstance(value, dict):
        entries = sorted(
            f"{shown(key, nested=True)}:{shown(item, nested=True)}" for key, item in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, TypeValue):
        return value.name
    raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")


def _shown_double(value: float, nested: bool) -> str:
    if math.isnan(value):
        return '"NaN"' if nested else "NaN"
    if math.isinf(value):
        text = "+Infinity" if value > 0 else "-Infinity"
        return f'"{text}"' if nested else text
    return f"{value:.6f}" if nested else plain_or_exponent(value)


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
    method("indexOf", "list_a_index_of_int", (_LIST, _T), INT, _position)
    method("lastIndexOf", "list_a_last_index_of_int", (_LIST, _T), INT, _last_position)
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
            checked_duration(sum(item.nanoseconds for item in listed)) if listed else CelDuration(0)
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


def _position(listed: list[Any], item: Any) -> int:
    return next((at for at, known in enumerate(listed) if equal(known, item)), -1)


def _last_position(listed: list[Any], item: Any) -> int:
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
