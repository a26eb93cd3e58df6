"""Mistakes inside literals that can be seen before anything is evaluated: patterns, times, durations."""

from collections.abc import Iterator

from kubewright.schema.cel.ast import Call, Comprehension, CreateList, CreateMap, Expr, Literal, Select
from kubewright.schema.cel.checker import Checked
from kubewright.schema.cel.errors import EvaluationError, Issue
from kubewright.schema.cel.values import parse_duration, parse_timestamp
from kubewright.schema.patterns import PatternError, compile_pattern


def literal_issues(checked: Checked) -> list[Issue]:
    """Return the mistakes in the literals of an expression."""
    return [issue for node in _nodes(checked.expr) if isinstance(node, Call) for issue in _call(node)]


def _call(node: Call) -> Iterator[Issue]:
    literal = node.args[0] if node.args else None
    if node.function == "matches":
        literal = node.args[-1]
    if not isinstance(literal, Literal) or not isinstance(literal.value, str):
        return
    try:
        if node.function == "duration":
            parse_duration(literal.value)
        elif node.function == "timestamp":
            parse_timestamp(literal.value)
        elif node.function == "matches":
            compile_pattern(literal.value)
    except (ValueError, EvaluationError, PatternError):
        kind = "matches" if node.function == "matches" else node.function
        yield Issue(literal.offset, f"invalid {kind} argument")


def _nodes(node: Expr) -> Iterator[Expr]:
    yield node
    if isinstance(node, Select):
        yield from _nodes(node.operand)
    elif isinstance(node, Call):
        for part in [*([node.target] if node.target is not None else []), *node.args]:
            yield from _nodes(part)
    elif isinstance(node, CreateList):
        for element in node.elements:
            yield from _nodes(element)
    elif isinstance(node, CreateMap):
        for entry in node.entries:
            yield from _nodes(entry.key)
            yield from _nodes(entry.value)
    elif isinstance(node, Comprehension):
        for part in (node.range, node.init, *node.parts, node.result):
            yield from _nodes(part)
