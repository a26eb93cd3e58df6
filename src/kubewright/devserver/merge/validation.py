"""Check that an applied configuration fits its merge schema, with kube-apiserver's texts."""

from typing import Any

from kubewright.devserver.merge.elements import element_text, item_element, value_text
from kubewright.devserver.merge.schema import ApplyError, ListSchema, MapSchema, MergeSchema
from kubewright.devserver.merge.values import LIST, MAP, SCALAR, view
from kubewright.devserver.objects import is_list, is_object


def check_fits(value: Any, schema: MergeSchema) -> None:
    """Raise `ApplyError` for undeclared fields, values of the wrong type, and repeated keys."""
    problems = _problems(value, schema)
    if len(problems) == 1:
        raise ApplyError(problems[0])
    if problems:
        raise ApplyError("\n".join(["errors:", *(f"  {problem}" for problem in problems)]))


def _problems(value: Any, schema: MergeSchema) -> list[str]:
    if value is None:
        return []
    how = view(schema, value)
    if how == MAP and schema.mapping is not None:
        if is_object(value):
            return _object_problems(value, schema.mapping)
        return [f"expected map, got {_shown(value)}"]
    if how == LIST and schema.sequence is not None:
        if is_list(value):
            return _list_problems(value, schema.sequence)
        return [f"expected list, got {_shown(value)}"]
    return _scalar_problems(value, schema.scalar) if how == SCALAR else []


def _scalar_problems(value: Any, scalar: str) -> list[str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        return [f"expected numeric (int or float), got {_go_type(value)}"]
    if scalar == "string" and not isinstance(value, str):
        return [f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"]
    if scalar == "boolean" and not isinstance(value, bool):
        return [f"expected boolean, got {_shown(value)}"]
    if scalar == "untyped" and isinstance(value, dict | list):
        return [f"expected any scalar, got {_shown(value)}"]
    return []


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def _object_problems(value: dict[str, Any], schema: MapSchema) -> list[str]:
    found: list[str] = []
    for key, item in value.items():
        inner = schema.fields.get(key) or schema.item
        if inner is None:
            return [*found, f".{key}: field not declared in schema"]
        if problems := _problems(item, inner):
            found += _below(f".{key}", problems)
    return found


def _list_problems(value: list[Any], schema: ListSchema) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        if not schema.associative:
            if problems := _problems(item, schema.item):
                found += _below(f"[{index}]", problems)
            continue
        try:
            element = item_element(schema, item)
        except ApplyError as problem:
            return [*found, f"element {index}: {problem}"]
        if element in seen:
            found.append(f"duplicate entries for key {element_text(element)}")
        seen.add(element)
        if problems := _problems(item, schema.item):
            found += _below(element_text(element), problems)
    return found


def _below(place: str, problems: list[str]) -> list[str]:
    return [place + problem if problem[:1] in {".", "["} else f"{place}: {problem}" for problem in problems]


def _shown(value: Any) -> str:
    """Print a value as Go's %v does through a pointer."""
    if is_object(value):
        inner = " ".join(f"{key}:{_plain(item)}" for key, item in sorted(value.items()))
        return f"&{{map[{inner}]}}"
    return f"&{{{_plain(value)}}}"


def _plain(value: Any) -> str:
    if is_list(value):
        return "[" + " ".join(_plain(item) for item in value) + "]"
    if is_object(value):
        return "map[" + " ".join(f"{key}:{_plain(item)}" for key, item in sorted(value.items())) + "]"
    return value if isinstance(value, str) else ("<nil>" if value is None else value_text(value))


def _go_syntax(value: Any) -> str:
    """Print a value as Go's %#v does."""
    if is_list(value):
        return "[]interface {}{" + ", ".join(_go_syntax(item) for item in value) + "}"
    if is_object(value):
        inner = ", ".join(f'"{key}":{_go_syntax(item)}' for key, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    return "interface {}(nil)" if value is None else value_text(value)
