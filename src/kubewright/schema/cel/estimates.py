"""What an expression can cost at most, before it is ever run; the API server refuses rules by this number."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from kubewright.schema.cel.ast import Call, Comprehension, CreateList, CreateMap, Expr, Ident, Literal, Select
from kubewright.schema.cel.charges import AUTHORIZATION_CHECK, REGEX_FACTOR, STRING_FACTOR
from kubewright.schema.cel.checker import Checked
from kubewright.schema.cel.types import Declared, Type, is_optional

UNBOUNDED = 2**64 - 1
_MAX_FORMAT_REGEX = 128


class Range(NamedTuple):
    """A size or a cost between a least and a greatest value."""

    low: int = 0
    high: int = 0

    def plus(self, other: "Range") -> "Range":
        """Add two ranges."""
        return Range(_capped(self.low + other.low), _capped(self.high + other.high))

    def times(self, other: "Range") -> "Range":
        """Multiply two ranges."""
        return Range(_capped(self.low * other.low), _capped(self.high * other.high))

    def scaled(self, factor: float) -> "Range":
        """Multiply by a factor, rounding up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Return a range that covers both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def _capped(number: int) -> int:
    return min(number, UNBOUNDED)


def _scaled(number: int, factor: float) -> int:
    if number > 0 and factor > 0 and float(number) > UNBOUNDED / factor:
        return UNBOUNDED
    return _capped(math.ceil(float(number) * factor))


_UNKNOWN = Range(0, UNBOUNDED)
_ONE = Range(1, 1)
_Path = tuple[str, ...]


class _Entry(NamedTuple):
    """Sizes of what a list or map holds."""

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


def estimate(checked: Checked, roots: dict[str, Declared]) -> int:
    """Return the greatest cost an expression can have, given what its variables may hold."""
    return _Estimator(checked, roots).cost(checked.expr).high


class _Estimator:
    def __init__(self, checked: Checked, roots: dict[str, Declared]) -> None:
        self._checked = checked
        self._roots = roots
        self._root = roots.get("self")
        self._paths: dict[Expr, _Path] = {}
        self._sizes: dict[Expr, Range] = {}
        self._entries: dict[Expr, _Entry] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Expr) -> Range:
        """Return the cost of a node, and note sizes and paths on the way."""
        if isinstance(node, Literal):
            return Range()
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[node] = local.path if local is not None else (node.name,)
            return _ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CreateList):
            return self._list(node)
        if isinstance(node, CreateMap):
            return self._map(node)
        assert isinstance(node, Comprehension)
        return self._bind(node) if node.macro == "bind" else self._comprehension(node)

    def _select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test:
            return total
        if self._checked.types.get(node.operand, _DYN).kind in ("map", "struct", "param"):
            total = total.plus(_ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return total

    def _list(self, node: CreateList) -> Range:
        total, size = Range(), Range(UNBOUNDED if node.elements else 0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[node] = _Entry("list", _ONE, size)
        return total.plus(Range(10, 10))

    def _map(self, node: CreateMap) -> Range:
        start = Range(UNBOUNDED if node.entries else 0, 0)
        total, keys, values = Range(), start, start
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[node] = _Entry("map", keys, values)
        return total.plus(Range(30, 30))

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(
            node.accumulator, _Local(self._path(node.init), self._size(node.init), self._entry(node.init))
        )
        variables = self._iterated(node)
        for name, local in variables:
            self._push(name, local)
        turn = self.cost(node.condition).plus(self.cost(node.step))
        for name, _ in variables:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
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
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(
            node.accumulator, _Local(self._path(node.init), self._size(node.init), self._entry(node.init))
        )
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._note_size(node, self._size(node.result))
        return total

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = self.cost(node.args[0]).plus(_ONE)
            self._note_size(node, self._size(node.args[0]))
            return total
        costs = [self.cost(arg) for arg in node.args]
        overloads = self._checked.overloads.get(node)
        if node.function == "_?._":
            return costs[0].plus(_ONE)
        if overloads is None:
            return Range()
        total = Range()
        target = node.target if node not in self._checked.qualified else None
        if target is not None:
            total = self.cost(target)
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
        if _is_scalar(self._checked.types.get(node, _DYN)):
            return _ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    def _size_or_unknown(self, node: Expr) -> Range:
        return self._size(node) or _UNKNOWN

    def declared_size(self, path: _Path) -> Range | None:
        """Return the size that the schema allows at a path."""
        if not path:
            return None
        # A rule has one root, whatever the first name is: even for loops over results of calls, as on the server.
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
        """Return the size of an argument as the library of Kubernetes sees it."""
        size = self._size(node)
        if size is not None:
            return size
        return self.declared_size(self._path(node)) or _UNKNOWN

    def element_size(self, node: Expr) -> tuple[Type | None, Range]:
        """Return type and size of the elements of a list."""
        params = self._checked.types[node].params
        if not params:
            return None, _UNKNOWN
        path = self._path(node)
        size = self.declared_size((*path, "@items")) if path else None
        return params[0], size or _UNKNOWN

    def type_of(self, node: Expr) -> Type:
        """Return the type of a node."""
        return self._checked.types[node]

    def join_entries(self, node: Expr, left: Expr, right: Expr) -> None:
        """Note that a node holds what two others hold."""
        first = self._entry(left)
        joined = first.union(self._entry(right)) if first is not None else None
        if joined is not None:
            self._entries[node] = joined


_DYN = Type("dyn")


class _CallEstimate:
    """The cost of one form of one call."""

    def __init__(
        self, estimator: _Estimator, node: Call, overload: str, target: Expr | None, costs: list[Range]
    ) -> None:
        self._estimator = estimator
        self._node = node
        self._overload = overload
        self._target = target
        self._costs = costs

    def estimate(self) -> tuple[Range, Range | None]:
        """Return the cost with that of the arguments, and the size of the result where it is known."""
        known = self._library()
        if known is None:
            known = self._standard()
        if known is not None:
            cost, size, alone = known
            return (cost if alone else cost.plus(self._arguments())), size
        return _ONE.plus(self._arguments()), None

    def _arguments(self) -> Range:
        total = Range()
        for cost in self._costs:
            total = total.plus(cost)
        return total

    def _size(self, position: int) -> Range:
        return self._estimator.argument_size(self._node.args[position])

    def _target_size(self) -> Range:
        return self._estimator.argument_size(self._target) if self._target is not None else _UNKNOWN

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
        if name == "url" and count == 1:
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
            cost = size.plus(_ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
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
            return self._size(0).times(self._size(1)).scaled(factor).plus(_ONE), None, False
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
        each = _ONE
        if kind.kind in ("string", "bytes"):
            each = each.plus(size.scaled(STRING_FACTOR))
        return self._target_size().times(each), None, False

    def _replaced(self) -> Range:
        text, old, new = self._target_size(), self._size(0), self._size(1)
        if old.low == 0:
            most, kept_most = _capped(text.high + 1), text.high
        elif new.high <= old.low:
            most, kept_most = 0, text.high
        else:
            most, kept_most = math.ceil(text.high / old.low), 0
        if old.high == 0:
            least, kept_least = _capped(text.low + 1), text.low
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
            cost = cost.plus(address.scaled(STRING_FACTOR)).plus(_ONE)
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
                self._target_size().plus(_ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
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
            return (_ONE if overload == "add_list" else size.scaled(STRING_FACTOR)), size, False
        if overload in _COMPARED:
            return self._comparison(), None, False
        return None

    def _converted(self, overload: str) -> tuple[Range, Range | None, bool]:
        size = self._size(0)
        result = {
            "string_to_bytes": Range(size.low, _capped(size.high * 4)),
            "bytes_to_string": Range(size.low // 4, size.high),
            "strings_quote": Range(_capped(size.low + 2), _capped(size.high * 2 + 2)),
        }[overload]
        return size.scaled(STRING_FACTOR), result, False

    def _comparison(self) -> Range:
        left, right = (self._estimator.type_of(arg) for arg in self._node.args)
        if self._node.function == "_==_" and left == right and left.name in _OWN_TYPES:
            return _ONE
        most = min(self._size(0).high, self._size(1).high)
        return Range(1 if most > 0 else 0, most).scaled(STRING_FACTOR)


_TRAVERSING = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
_PARSING = ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver")
_OWN_TYPES = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
_COMPARED = (
    "equals",
    "not_equals",
    *(
        f"{name}_{kind}"
        for name in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    ),
)


def _list_call(factor: float, size: Range) -> tuple[Range, Range | None, bool]:
    return size.scaled(factor).plus(Range(11, 11)), size, False


def _int_value(node: Expr, otherwise: int) -> int:
    return node.value if isinstance(node, Literal) and isinstance(node.value, int) else otherwise


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
