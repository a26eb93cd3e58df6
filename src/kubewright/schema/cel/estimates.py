"""What an expression can cost at most, before it is ever run; the API server refuses rules by this number."""

from dataclasses import dataclass
from typing import NamedTuple

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
)
from kubewright.schema.cel.call_estimates import CallEstimate
from kubewright.schema.cel.checker import Checked
from kubewright.schema.cel.messages import MESSAGE_COST
from kubewright.schema.cel.ranges import ONE, UNBOUNDED, UNKNOWN, Range
from kubewright.schema.cel.types import DYN, Declared, Type, is_optional

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
            return ONE
        if isinstance(node, Select):
            if node in self._checked.qualified:
                self._paths[node] = (self._checked.qualified[node],)
                return ONE
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CreateList):
            return self._list(node)
        if isinstance(node, CreateMap):
            return self._map(node)
        if isinstance(node, CreateStruct):
            return self._message(node)
        assert isinstance(node, Comprehension)
        return self._bind(node) if node.macro == "bind" else self._comprehension(node)

    def _select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test:
            return total
        if self._checked.types.get(node.operand, DYN).kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return total

    def _list(self, node: CreateList) -> Range:
        total, size = Range(), Range(UNBOUNDED if node.elements else 0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._entries[node] = _Entry("list", ONE, size)
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

    def _message(self, node: CreateStruct) -> Range:
        total = Range(MESSAGE_COST, MESSAGE_COST)
        for entry in node.entries:
            total = total.plus(self.cost(entry.value))
        return total

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
            total = self.cost(node.args[0]).plus(ONE)
            self._note_size(node, self._size(node.args[0]))
            return total
        costs = [self.cost(arg) for arg in node.args]
        overloads = self._checked.overloads.get(node)
        if node.function == "_?._":
            return costs[0].plus(ONE)
        if overloads is None:
            return Range()
        total = Range()
        target = node.target if node not in self._checked.qualified else None
        if target is not None:
            total = self.cost(target)
        spent, size = Range(UNBOUNDED, 0), None
        for overload in overloads:
            cost, found = CallEstimate(self, node, overload.id, target, costs).estimate()
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
        """Note that a node holds what two others hold."""
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
