"""The cost of expressions in the units of the API server.

Costs while an expression is evaluated depend on its values. The estimate is an upper limit for all values that a schema
allows; the API server refuses rules whose estimate is too high.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubewright.schema.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    Select,
    Visitor,
)
from kubewright.schema.cel.checker import Checked
from kubewright.schema.cel.messages import MESSAGE_COST
from kubewright.schema.cel.types import DYN, DeclaredType, Type, is_optional
from kubewright.schema.cel.values import Value, size

UNBOUNDED = 2**64 - 1
STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
AUTHORIZATION_CHECK = 350_000
_ORDERED = tuple(
    f"{name}_{kind}"
    for name in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
)
_MAX_FORMAT_REGEX = 128
_TRAVERSING = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
_PARSING = ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver")
_OWN_TYPES = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
_COMPARED = ("equals", "not_equals", *_ORDERED)


class Range(NamedTuple):
    """A size or a cost between a minimum and a maximum."""

    low: int = 0
    high: int = 0

    def plus(self, other: "Range") -> "Range":
        """Add two ranges."""
        return Range(capped(self.low + other.low), capped(self.high + other.high))

    def times(self, other: "Range") -> "Range":
        """Multiply two ranges."""
        return Range(capped(self.low * other.low), capped(self.high * other.high))

    def scaled(self, factor: float) -> "Range":
        """Multiply by a factor, rounding up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Return the smallest range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def capped(number: int) -> int:
    """Limit a number to 64 bits."""
    return min(number, UNBOUNDED)


def _scaled(number: int, factor: float) -> int:
    if number > 0 and factor > 0 and float(number) > UNBOUNDED / factor:
        return UNBOUNDED
    return capped(math.ceil(float(number) * factor))


UNKNOWN = Range(0, UNBOUNDED)
ONE = Range(1, 1)


Charge = Callable[[tuple[Any, ...], Any], int]


def charge_for(function: str, overload: str) -> Charge:
    """Return the function that computes the cost of a call from its arguments and its result."""
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
    **dict.fromkeys(_ORDERED, _shorter),
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


class _CallEstimate:
    """The cost of one overload of a call."""

    def __init__(
        self, estimator: "_Estimator", node: Call, overload: str, target: Expr | None, costs: list[Range]
    ) -> None:
        self._estimator = estimator
        self._node = node
        self._overload = overload
        self._target = target
        self._costs = costs

    def estimate(self) -> tuple[Range, Range | None]:
        """Return the cost, with that of the arguments, and the size of the result if it is known."""
        known = self._library()
        if known is None:
            known = self._standard()
        if known is not None:
            cost, size, alone = known
            return (cost if alone else cost.plus(self._arguments())), size
        return ONE.plus(self._arguments()), None

    def _arguments(self) -> Range:
        total = Range()
        for cost in self._costs:
            total = total.plus(cost)
        return total

    def _size(self, position: int) -> Range:
        return self._estimator.argument_size(self._node.args[position])

    def _target_size(self) -> Range:
        return self._estimator.argument_size(self._target) if self._target is not None else UNKNOWN

    def _library(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate a function of Kubernetes or of an extension."""
        listed = self._lists()
        if listed is not None:
            return listed
        name, count = self._node.function, len(self._node.args)
        if name == "check":
            return Range(AUTHORIZATION_CHECK, AUTHORIZATION_CHECK), None, False
        if name in _TRAVERSING and self._target is not None:
            return self._traversal()
        if name in ("url", "jsonpatch.escapeKey") and count == 1:
            return self._size(0).scaled(STRING_FACTOR), self._size(0), False
        if name in ("lowerAscii", "upperAscii", "substring", "trim") and self._target is not None:
            return self._target_size().scaled(STRING_FACTOR), self._target_size(), False
        if name == "replace" and self._target is not None and count >= 2:
            return self._target_size().scaled(2 * STRING_FACTOR), self._replaced(), False
        if name == "split" and self._target is not None:
            return self._target_size().scaled(2 * STRING_FACTOR), Range(0, self._split_count()), False
        if name == "join" and self._target is not None:
            size = self._joined()
            return size.scaled(STRING_FACTOR), size, False
        if name in ("find", "findAll") and self._target is not None and count >= 1:
            size = self._target_size()
            cost = size.plus(ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
            return cost, Range(0, size.high), False
        if self._overload == "cidr_ip":
            return None
        if name in _PARSING and count >= 1:
            return self._size(0).scaled(STRING_FACTOR), None, False
        if name == "isCanonical" and count >= 1:
            return self._size(0).scaled(2 * STRING_FACTOR), None, False
        if name in ("containsIP", "containsCIDR") and count >= 1:
            return self._containment(name), None, False
        if name == "validate" and count >= 1:
            cost = self._size(0).scaled(STRING_FACTOR).scaled(_MAX_FORMAT_REGEX * REGEX_FACTOR)
            return cost, None, False
        return None

    def _lists(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate a function of the lists or sets extension."""
        overload, args = self._overload, self._node.args
        if overload.startswith("list_sets_"):
            factor = 2 if overload == "list_sets_equivalent_list" else 1
            return self._size(0).times(self._size(1)).scaled(factor).plus(ONE), None, False
        if overload == "list_distinct":
            size = self._target_size()
            return _list_call(2.0, size.times(size))
        if self._node.function in ("sort", "@sortByAssociatedKeys"):
            size = self._target_size() if self._node.function == "sort" else self._size(0)
            textual = overload.split("_")[1] in ("string", "bytes")
            return _list_call(2.0 + (STRING_FACTOR if textual else 0), size.times(size))
        if overload == "list_reverse":
            return _list_call(1, self._target_size())
        if overload in ("list_flatten", "list_flatten_int"):
            depth = _int_value(args[0], UNBOUNDED) if args else 1
            return _list_call(depth, self._target_size())
        if overload == "lists_range":
            count = _int_value(args[0], UNBOUNDED)
            return _list_call(1, Range(count, count))
        if overload == "list_slice":
            count = max(_int_value(args[1], self._target_size().high) - _int_value(args[0], 0), 0)
            return _list_call(1, Range(count, count))
        return None

    def _traversal(self) -> tuple[Range, Range | None, bool]:
        assert self._target is not None
        kind, size = self._estimator.element_size(self._target)
        if kind is None:
            return self._target_size().scaled(STRING_FACTOR), None, False
        each = ONE
        if kind.kind in ("string", "bytes"):
            each = each.plus(size.scaled(STRING_FACTOR))
        return self._target_size().times(each), None, False

    def _replaced(self) -> Range:
        text, old, new = self._target_size(), self._size(0), self._size(1)
        if old.low == 0:
            most, kept_most = capped(text.high + 1), text.high
        elif new.high <= old.low:
            most, kept_most = 0, text.high
        else:
            most, kept_most = math.ceil(text.high / old.low), 0
        if old.high == 0:
            least, kept_least = capped(text.low + 1), text.low
        elif old.high <= new.low:
            least, kept_least = 0, text.low
        else:
            least, kept_least = math.ceil(text.low / old.high), 0
        return Range(least, most).times(new).plus(Range(kept_least, kept_most))

    def _split_count(self) -> int:
        limit = self._node.args[1] if len(self._node.args) > 1 else None
        if isinstance(limit, Literal) and isinstance(limit.value, int):
            return limit.value if limit.value >= 0 else UNBOUNDED
        return self._target_size().high

    def _joined(self) -> Range:
        assert self._target is not None
        count = self._target_size()
        kind, element = self._estimator.element_size(self._target)
        size = count.times(element) if kind is not None else Range()
        if self._node.args:
            separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
            size = size.plus(self._size(0).times(separators))
        return size

    def _containment(self, name: str) -> Range:
        address = Range(4, 16)
        cost = address.plus(address).scaled(STRING_FACTOR)
        if name == "containsCIDR":
            cost = cost.plus(address.scaled(STRING_FACTOR)).plus(ONE)
        if self._overload.endswith("_string"):
            cost = cost.plus(self._size(0).scaled(STRING_FACTOR))
        return cost

    def _standard(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate an operator or a function of the language itself."""
        overload, args = self._overload, self._node.args
        if overload == "string_format":
            return self._target_size().scaled(STRING_FACTOR), None, False
        if overload in ("string_to_bytes", "bytes_to_string", "strings_quote"):
            return self._converted(overload)
        if overload in ("starts_with_string", "ends_with_string"):
            return self._size(0).scaled(STRING_FACTOR), None, False
        if overload == "in_list":
            return self._size(1), None, False
        if overload == "matches_string":
            cost = (
                self._target_size().plus(ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
            )
            return cost, None, False
        if overload == "contains_string":
            cost = self._target_size().scaled(STRING_FACTOR).times(self._size(0).scaled(STRING_FACTOR))
            return cost, None, False
        if overload in ("logical_and", "logical_or"):
            left, right = self._costs
            return Range(left.low, left.plus(right).high), None, True
        if overload == "conditional":
            self._estimator.join_entries(self._node, args[1], args[2])
            cost = self._costs[0].plus(self._costs[1].union(self._costs[2]))
            return cost, self._size(1).union(self._size(2)), True
        if overload in ("add_string", "add_bytes", "add_list"):
            size = self._size(0).plus(self._size(1))
            self._estimator.join_entries(self._node, args[0], args[1])
            return (ONE if overload == "add_list" else size.scaled(STRING_FACTOR)), size, False
        if overload in _COMPARED:
            return self._comparison(), None, False
        return None

    def _converted(self, overload: str) -> tuple[Range, Range | None, bool]:
        size = self._size(0)
        result = {
            "string_to_bytes": Range(size.low, capped(size.high * 4)),
            "bytes_to_string": Range(size.low // 4, size.high),
            "strings_quote": Range(capped(size.low + 2), capped(size.high * 2 + 2)),
        }[overload]
        return size.scaled(STRING_FACTOR), result, False

    def _comparison(self) -> Range:
        left, right = (self._estimator.type_of(arg) for arg in self._node.args)
        if self._node.function == "_==_" and left == right and left.name in _OWN_TYPES:
            return ONE
        most = min(self._size(0).high, self._size(1).high)
        return Range(1 if most > 0 else 0, most).scaled(STRING_FACTOR)


def _list_call(factor: float, size: Range) -> tuple[Range, Range | None, bool]:
    return size.scaled(factor).plus(Range(11, 11)), size, False


def _int_value(node: Expr, otherwise: int) -> int:
    return node.value if isinstance(node, Literal) and isinstance(node.value, int) else otherwise


_Path = tuple[str, ...]


class _Entry(NamedTuple):
    """Sizes of the keys and values of a list or map."""

    container: str
    key: Range
    value: Range

    def union(self, other: "_Entry | None") -> "_Entry | None":
        if other is None:
            return None
        return _Entry(self.container, self.key.union(other.key), self.value.union(other.value))


@dataclass(slots=True)
class _Local:
    path: _Path
    size: Range | None
    entry: _Entry | None


def estimate(checked: Checked, roots: dict[str, DeclaredType]) -> int:
    """Return the maximum cost of an expression, for all values that its variables may have."""
    return _Estimator(checked, roots).visit(checked.expr).high


class _Estimator(Visitor[Range]):
    """Computes costs, and stores sizes and paths of nodes on the way."""

    def __init__(self, checked: Checked, roots: dict[str, DeclaredType]) -> None:
        self._checked = checked
        self._roots = roots
        self._root = roots.get("self")
        self._paths: dict[Expr, _Path] = {}
        self._sizes: dict[Expr, Range] = {}
        self._entries: dict[Expr, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def visit_literal(self, node: Literal) -> Range:
        return Range()

    def visit_ident(self, node: Ident) -> Range:
        local = self._local(node.name)
        self._paths[node] = local.path if local is not None else (node.name,)
        return ONE

    def visit_select(self, node: Select) -> Range:
        if node in self._checked.qualified:
            self._paths[node] = (self._checked.qualified[node],)
            return ONE
        total = self.visit(node.operand)
        if node.test:
            return total
        if self._checked.types.get(node.operand, DYN).kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return total

    def visit_list(self, node: CreateList) -> Range:
        total, size = Range(), Range(UNBOUNDED if node.elements else 0, 0)
        for element in node.elements:
            total = total.plus(self.visit(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[node] = _Entry("list", ONE, size)
        return total.plus(Range(10, 10))

    def visit_map(self, node: CreateMap) -> Range:
        start = Range(UNBOUNDED if node.entries else 0, 0)
        total, keys, values = Range(), start, start
        for entry in node.entries:
            total = total.plus(self.visit(entry.key)).plus(self.visit(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[node] = _Entry("map", keys, values)
        return total.plus(Range(30, 30))

    def visit_struct(self, node: CreateStruct) -> Range:
        total = Range(MESSAGE_COST, MESSAGE_COST)
        for entry in node.entries:
            total = total.plus(self.visit(entry.value))
        return total

    def visit_comprehension(self, node: Comprehension) -> Range:
        if node.macro == "bind":
            return self._bind(node)
        total = self.visit(node.range).plus(self.visit(node.init))
        self._push(
            node.accumulator, _Local(self._path(node.init), self._size(node.init), self._entry(node.init))
        )
        variables = self._iterated(node)
        for name, local in variables:
            self._push(name, local)
        turn = self.visit(node.condition).plus(self.visit(node.step))
        for name, _ in variables:
            self._locals[name].pop()
        total = total.plus(self.visit(node.result))
        self._locals[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        total = total.plus(count.times(turn))
        if isinstance(node.init, Literal):
            self._note_size(node, self._size(node.init))
        elif isinstance(node.init, CreateList | CreateMap):
            self._sizes[node] = count
            entry = self._entry(node.step)
            if entry is not None:
                self._entries[node] = entry
        return total

    def _iterated(self, node: Comprehension) -> list[tuple[str, _Local]]:
        entry = self._entry(node.range)
        container = entry.container if entry is not None else self._checked.types[node.range].kind
        is_list = container == "list"
        path = self._path(node.range)
        key = _Local((*path, "@indices" if is_list else "@keys"), entry.key if entry else None, None)
        value = _Local((*path, "@items" if is_list else "@values"), entry.value if entry else None, None)
        if node.second:
            return [(node.variable, key), (node.second, value)]
        return [(node.variable, value if is_list else key)]

    def _bind(self, node: Comprehension) -> Range:
        total = self.visit(node.range).plus(self.visit(node.init))
        self._push(
            node.accumulator, _Local(self._path(node.init), self._size(node.init), self._entry(node.init))
        )
        total = total.plus(self.visit(node.result))
        self._locals[node.accumulator].pop()
        self._note_size(node, self._size(node.result))
        return total

    def visit_call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = self.visit(node.args[0]).plus(ONE)
            self._note_size(node, self._size(node.args[0]))
            return total
        costs = [self.visit(arg) for arg in node.args]
        overloads = self._checked.overloads.get(node)
        if node.function == "_?._":
            return costs[0].plus(ONE)
        if overloads is None:
            return Range()
        total = Range()
        target = node.target if node not in self._checked.qualified else None
        if target is not None:
            total = self.visit(target)
        spent, size = Range(UNBOUNDED, 0), None
        for overload in overloads:
            cost, found = _CallEstimate(self, node, overload.id, target, costs).estimate()
            spent = spent.union(cost)
            if found is not None:
                size = found if size is None else size.union(found)
            if overload.id in ("index_list", "index_map"):
                entry = self._entry(node.args[0])
                size = entry.value if entry is not None else None
                self._paths[node] = (
                    *self._path(node.args[0]),
                    "@items" if overload.id == "index_list" else "@values",
                )
            if size is None:
                size = self._size(node)
        self._note_size(node, size)
        return total.plus(spent)

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _local(self, name: str) -> _Local | None:
        known = self._locals.get(name)
        return known[-1] if known else None

    def _path(self, node: Expr) -> _Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(node, ())

    def _note_size(self, node: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[node] = size

    def _entry(self, node: Expr) -> _Entry | None:
        if node in self._entries:
            return self._entries[node]
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.entry if local is not None else None

    def _size(self, node: Expr) -> Range | None:
        if node in self._sizes:
            return self._sizes[node]
        literal = _literal_size(node)
        if literal is not None:
            return literal
        known = self.declared_size(self._path(node))
        if known is not None:
            self._sizes[node] = known
            return known
        if _is_scalar(self._checked.types.get(node, DYN)):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _size_or_unknown(self, node: Expr) -> Range:
        return self._size(node) or UNKNOWN

    def declared_size(self, path: _Path) -> Range | None:
        """Return the size that the schema allows at a path."""
        if not path:
            return None
        # As on the server, a rule has one root for all names, even in loops over results of calls.
        current = self._root if self._root is not None else self._roots.get(path[0])
        for name in path[1:]:
            if current is None:
                return None
            if name in ("@items", "@values"):
                current = current.element
            elif name == "@keys":
                current = current.key
            else:
                current = current.fields.get(name)
        return None if current is None else Range(0, current.max_elements)

    def argument_size(self, node: Expr) -> Range:
        """Return the size of an argument."""
        size = self._size(node)
        if size is not None:
            return size
        return self.declared_size(self._path(node)) or UNKNOWN

    def element_size(self, node: Expr) -> tuple[Type | None, Range]:
        """Return type and size of the elements of a list."""
        params = self._checked.types[node].params
        if not params:
            return None, UNKNOWN
        path = self._path(node)
        size = self.declared_size((*path, "@items")) if path else None
        return params[0], size or UNKNOWN

    def type_of(self, node: Expr) -> Type:
        """Return the type of a node."""
        return self._checked.types[node]

    def join_entries(self, node: Expr, left: Expr, right: Expr) -> None:
        """Store that a node contains the elements of two others."""
        first = self._entry(left)
        joined = first.union(self._entry(right)) if first is not None else None
        if joined is not None:
            self._entries[node] = joined


def _literal_size(node: Expr) -> Range | None:
    if isinstance(node, Literal):
        length = len(node.value) if isinstance(node.value, str | bytes) else 1
        return Range(length, length)
    if isinstance(node, CreateList):
        return Range(len(node.elements), len(node.elements))
    if isinstance(node, CreateMap):
        return Range(len(node.entries), len(node.entries))
    return None


def _is_scalar(kind: Type) -> bool:
    if is_optional(kind):
        return _is_scalar(kind.params[0])
    return kind.kind in ("bool", "double", "duration", "int", "timestamp", "uint")
