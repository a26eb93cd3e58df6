"""Mistakes inside literals that can be seen before anything is evaluated: patterns, times, mixed lists, templates."""

from collections.abc import Iterator

from kubewright.schema.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Literal,
    Select,
)
from kubewright.schema.cel.checker import Checked
from kubewright.schema.cel.errors import EvaluationError, Issue
from kubewright.schema.cel.texts import template_verbs
from kubewright.schema.cel.types import Type, is_optional
from kubewright.schema.cel.values import parse_duration, parse_timestamp
from kubewright.schema.patterns import PatternError, compile_pattern

_CONVERSIONS = ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint")
_PLAIN = (
    "bool",
    "bytes",
    "double",
    "duration",
    "int",
    "list",
    "map",
    "null",
    "string",
    "timestamp",
    "type",
    "uint",
)
_VERB_TYPES: dict[str, tuple[tuple[str, ...], str]] = {
    "s": (
        _PLAIN,
        (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
            "durations, and timestamps"
        ),
    ),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles"),
    "e": (("double", "string"), "scientific clause can only be used on doubles"),
    "d": (("int", "uint"), "decimal clause can only be used on integers"),
    "o": (("int", "uint"), "octal clause can only be used on integers"),
    "b": (("int", "uint", "bool"), "only integers and bools can be formatted as binary"),
    "x": (
        ("int", "uint", "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "X": (
        ("int", "uint", "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
}
_RUNTIME_NAMES = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def literal_issues(checked: Checked) -> list[Issue]:
    """Return the mistakes in the literals of an expression."""
    issues: list[Issue] = []
    for node, in_format in _nodes(checked.expr, in_format=False):
        if isinstance(node, Call):
            issues += _call(node)
            issues += _template(node, checked)
        elif isinstance(node, CreateList) and not in_format:
            issues += _mixed_list(node, checked)
        elif isinstance(node, CreateMap) and not in_format:
            issues += _mixed_map(node, checked)
    return issues


def evaluate_constants(checked: Checked) -> None:
    """Raise where a constant cannot be converted or a constant pattern cannot be read."""
    for node, _ in _nodes(checked.expr, in_format=False):
        if not isinstance(node, Call) or not node.args or node not in checked.overloads:
            continue
        literal, overloads = node.args[0], checked.overloads[node]
        if not isinstance(literal, Literal):
            continue
        if node.function in _CONVERSIONS and node.target is None and len(node.args) == 1:
            overloads[0].call(literal.value)
        elif node.function in ("find", "findAll") and isinstance(literal.value, str):
            try:
                compile_pattern(literal.value)
            except PatternError as error:
                raise EvaluationError(str(error)) from None


def _call(node: Call) -> Iterator[Issue]:
    literal = node.args[-1] if node.args else None
    if node.function not in ("duration", "timestamp", "matches"):
        return
    if not isinstance(literal, Literal) or not isinstance(literal.value, str):
        return
    try:
        if node.function == "duration":
            parse_duration(literal.value)
        elif node.function == "timestamp":
            parse_timestamp(literal.value)
        else:
            compile_pattern(literal.value)
    except (ValueError, EvaluationError):
        yield Issue(literal.offset, f"invalid {node.function} argument")


def _template(node: Call, checked: Checked) -> Iterator[Issue]:
    """Check a constant template against the list literal it is filled from."""
    if node.function != "format" or not isinstance(node.target, Literal) or len(node.args) != 1:
        return
    listed = node.args[0]
    if not isinstance(listed, CreateList) or not isinstance(node.target.value, str):
        return
    try:
        verbs = template_verbs(node.target.value)
    except EvaluationError as error:
        yield Issue(node.offset, str(error))
        return
    for position, verb in enumerate(verbs):
        if position >= len(listed.elements):
            yield Issue(node.offset, f"index {position} out of range")
            return
        yield from _filling(verb, listed.elements[position], checked)


def _filling(verb: str, element: Expr, checked: Checked) -> Iterator[Issue]:
    """Check what a place in a template is filled with; texts are made of whole lists and maps."""
    fitting, problem = _VERB_TYPES[verb]
    kind = checked.types[element]
    if kind.kind not in (*fitting, "dyn", "param"):
        name = _RUNTIME_NAMES.get(kind.kind) or kind.name or kind.kind
        yield Issue(element.offset, f"error during formatting: {problem}, was given {name}")
    elif verb == "s" and isinstance(element, CreateList):
        for item in element.elements:
            yield from _filling(verb, item, checked)
    elif verb == "s" and isinstance(element, CreateMap):
        for entry in element.entries:
            yield from _filling(verb, entry.key, checked)
            yield from _filling(verb, entry.value, checked)


def _mixed_list(node: CreateList, checked: Checked) -> Iterator[Issue]:
    kinds = [_content(checked.types[item], at in node.optional) for at, item in enumerate(node.elements)]
    for element, kind in zip(node.elements, kinds, strict=True):
        if not kind.same(kinds[0]):
            yield Issue(element.offset, f"expected type '{kinds[0]}' but found '{kind}'")
            return


def _mixed_map(node: CreateMap, checked: Checked) -> Iterator[Issue]:
    if not node.entries:
        return
    first = node.entries[0]
    key_type = checked.types[first.key]
    value_type = _content(checked.types[first.value], first.optional)
    for entry in node.entries[1:]:
        key, value = checked.types[entry.key], _content(checked.types[entry.value], entry.optional)
        if not key.same(key_type):
            yield Issue(entry.key.offset, f"expected type '{key_type}' but found '{key}'")
        if not value.same(value_type):
            yield Issue(entry.value.offset, f"expected type '{value_type}' but found '{value}'")


def _content(kind: Type, optional: bool) -> Type:
    return kind.params[0] if optional and is_optional(kind) else kind


def _nodes(node: Expr, *, in_format: bool) -> Iterator[tuple[Expr, bool]]:
    """Walk an expression; the flag tells what stands below a call of `format`, whose list may be mixed."""
    yield node, in_format
    below: list[Expr] = []
    if isinstance(node, Select):
        below = [node.operand]
    elif isinstance(node, Call):
        in_format = in_format or node.function == "format"
        below = [*([node.target] if node.target is not None else []), *node.args]
    elif isinstance(node, CreateList):
        below = node.elements
    elif isinstance(node, CreateMap):
        below = [part for entry in node.entries for part in (entry.key, entry.value)]
    elif isinstance(node, CreateStruct):
        below = [entry.value for entry in node.entries]
    elif isinstance(node, Comprehension):
        below = [node.range, node.init, *node.parts, *([node.result] if node.macro == "bind" else [])]
    for part in below:
        yield from _nodes(part, in_format=in_format)
