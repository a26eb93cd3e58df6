"""Types of every part of an expression, and what is wrong with it."""

from dataclasses import dataclass, field

from kubewright.schema.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Entry,
    Expr,
    Ident,
    Literal,
    Select,
)
from kubewright.schema.cel.errors import CompileError, Issue
from kubewright.schema.cel.messages import MessageType, MessageTypes
from kubewright.schema.cel.overloads import Library, Overload
from kubewright.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Declared,
    Mapping,
    Type,
    is_optional,
    list_of,
    map_of,
    optional_of,
    param,
    struct,
    type_of,
)  # fmt: skip
from kubewright.schema.cel.values import Uint
from kubewright.schema.cel.wellknown import EMPTY, NULL_VALUE, WellKnown

TYPE_NAMES: dict[str, Type] = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    EMPTY: struct(EMPTY),
    "type": type_of(DYN),
    "optional_type": optional_of(DYN),
    **{name: Type("opaque", name) for name in ("net.IP", "net.CIDR")},
}


@dataclass(slots=True)
class Checked:
    """An expression with the types of its parts and the forms its calls resolved to."""

    source: str
    expr: Expr
    types: dict[Expr, Type] = field(default_factory=dict[Expr, Type])
    overloads: dict[Expr, list[Overload]] = field(default_factory=dict[Expr, list[Overload]])
    names: set[str] = field(default_factory=set[str])
    qualified: dict[Expr, str] = field(default_factory=dict[Expr, str])
    messages: dict[Expr, MessageType | WellKnown] = field(default_factory=dict[Expr, MessageType | WellKnown])
    undefined: set[str] = field(default_factory=set[str])

    @property
    def type(self) -> Type:
        """Return the type of the whole."""
        return self.types[self.expr]


@dataclass(frozen=True, slots=True)
class Known:
    """What expressions may name: functions, variables, types of objects, and those they may make themselves."""

    library: Library
    variables: dict[str, Type]
    structs: dict[str, Declared]
    messages: MessageTypes


def check(source: str, expr: Expr, known: Known) -> Checked:
    """Find the types of an expression, or raise with all its mistakes."""
    checker = _Checker(Checked(source, expr), known)
    checker.check(expr)
    if checker.issues:
        ordered = sorted(checker.issues, key=lambda issue: issue.offset)
        raise CompileError(source, list(dict.fromkeys(ordered)))
    mapping = checker.mapping
    result = checker.result
    result.types = {node: mapping.substitute(kind, to_dyn=True) for node, kind in result.types.items()}
    return result


class _Checker:
    def __init__(self, result: Checked, known: Known) -> None:
        self.result = result
        self.issues: list[Issue] = []
        self.mapping = Mapping()
        self._library = known.library
        self._scopes: list[dict[str, Type]] = [known.variables]
        self._structs = known.structs
        self._messages = known.messages
        self._free = 0

    def check(self, node: Expr) -> Type:
        """Find the type of a node and remember it."""
        found = self._type(node)
        self.result.types[node] = found
        return found

    def _type(self, node: Expr) -> Type:
        if isinstance(node, Literal):
            return _literal(node)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CreateList):
            return self._list(node)
        if isinstance(node, CreateMap):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._comprehension(node)
        assert isinstance(node, CreateStruct)
        return self._message(node)

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node.name.removeprefix("."))
        if found is None:
            self._undeclared(node, node.name.removeprefix("."))
            return ERROR
        return found

    def _lookup(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                if scope is self._scopes[0]:
                    self.result.names.add(name)
                return scope[name]
        if name in TYPE_NAMES:
            return type_of(TYPE_NAMES[name])
        if name == NULL_VALUE:
            return INT
        message = self._messages.find(name)
        if message is None:
            return None
        # The API server knows these types only where objects are made of them.
        self.result.undefined.add(name)
        return type_of(message.type)

    def _select(self, node: Select) -> Type:
        qualified = _qualified(node)
        if qualified is not None and not node.test:
            found = self._lookup(qualified)
            if found is not None:
                self.result.qualified[node] = qualified
                return found
        selected = self._field(node, node.operand, node.field, optional=False)
        return BOOL if node.test else self.mapping.substitute(selected)

    def _field(self, node: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        target = self.mapping.substitute(self.check(operand))
        wrapped = is_optional(target)
        if wrapped:
            target = target.params[0]
        if target.kind == "map":
            found = target.params[1]
        elif target.kind == "struct":
            found = self._struct_field(node, target.name, name)
        elif target.kind == "param":
            self.mapping.assignable(DYN, target)
            found = DYN
        else:
            if target.kind not in ("dyn", "error"):
                self._report(node.offset, f"type '{target}' does not support field selection")
            found = DYN
        return optional_of(found) if wrapped or optional else found

    def _struct_field(self, node: Expr, struct: str, name: str) -> Type:
        message = self._messages.find(struct)
        if isinstance(message, MessageType):
            return (message.fields or {}).get(name, DYN)
        declared = self._structs.get(struct)
        if declared is None or name not in declared.fields:
            self._report(node.offset, f"undefined field '{name}'")
            return ERROR
        return declared.fields[name].type

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            field_name = node.args[1]
            assert isinstance(field_name, Literal)
            self.check(field_name)
            return self.mapping.substitute(
                self._field(node, node.args[0], str(field_name.value), optional=True)
            )
        args = [self.check(arg) for arg in node.args]
        if node.target is None:
            return self._function(node, node.function.removeprefix("."), args)
        prefix = _qualified(node.target)
        if prefix is not None and f"{prefix}.{node.function}" in self._library.functions:
            self.result.qualified[node] = f"{prefix}.{node.function}"
            return self._resolve(node, f"{prefix}.{node.function}", args, member=False)
        target = self.check(node.target)
        if node.function not in self._library.functions:
            self._undeclared(node, node.function)
            return ERROR
        return self._resolve(node, node.function, [target, *args], member=True)

    def _function(self, node: Call, name: str, args: list[Type]) -> Type:
        if name not in self._library.functions:
            self._undeclared(node, name)
            return ERROR
        return self._resolve(node, name, args, member=False)

    def _resolve(self, node: Call, name: str, args: list[Type], *, member: bool) -> Type:
        if name in ("_&&_", "_||_"):
            return self._logical(node, name, args)
        result: Type | None = None
        matching: list[Overload] = []
        for overload in self._library.functions[name]:
            if overload.member != member:
                continue
            fresh = self._fresh(overload)
            if not self.mapping.assignable_all(args, list(fresh[1:])):
                continue
            matching.append(overload)
            found = self.mapping.substitute(fresh[0])
            if result is None:
                result = found
            elif result.kind != "dyn" and found != result:
                result = DYN
        if result is None:
            shown = [str(self.mapping.substitute(arg, to_dyn=True)) for arg in args]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._report(node.offset, f"found no matching overload for '{name}' applied to '{signature}'")
            return ERROR
        self.result.overloads[node] = matching
        return result

    def _logical(self, node: Call, name: str, args: list[Type]) -> Type:
        wrong = False
        for arg, found in zip(node.args, args, strict=True):
            if not self.mapping.assignable(found, BOOL):
                self._report(arg.offset, f"expected type 'bool' but found '{self.mapping.substitute(found)}'")
                wrong = True
        self.result.overloads[node] = self._library.functions[name]
        return ERROR if wrong else BOOL

    def _fresh(self, overload: Overload) -> list[Type]:
        """Return result and arguments of a form with type parameters of its own."""
        signature = (overload.result, *overload.args)
        names = sorted({name for kind in signature for name in _parameters(kind)})
        if not names:
            return list(signature)
        renamed = Mapping({param(name): self._variable() for name in names})
        return [renamed.substitute(kind) for kind in signature]

    def _variable(self) -> Type:
        self._free += 1
        return param(f"_var{self._free - 1}")

    def _list(self, node: CreateList) -> Type:
        joined: Type | None = None
        for position, element in enumerate(node.elements):
            found = self._optional(element, self.check(element), position in node.optional)
            joined = self._join(joined, found)
        return list_of(joined if joined is not None else self._variable())

    def _map(self, node: CreateMap) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            found = self._optional(entry.value, self.check(entry.value), entry.optional)
            value = self._join(value, found)
        if key is None or value is None:
            return map_of(self._variable(), self._variable())
        return map_of(key, value)

    def _message(self, node: CreateStruct) -> Type:
        name = node.name.removeprefix(".")
        message = self._messages.find(name)
        if message is None:
            self._no_message(node, name)
            return ERROR
        self.result.messages[node] = message
        for entry in node.entries:
            found = self._optional(entry.value, self.check(entry.value), entry.optional)
            if message.fields is None:
                continue
            expected = message.fields.get(field_name(entry))
            if expected is None and isinstance(message, WellKnown):
                self._report(entry.offset, f"undefined field '{field_name(entry)}'")
            elif expected is None or not self.mapping.assignable(expected, found):
                text = f"expected type of field '{field_name(entry)}' is '{expected or ''}'"
                provided = self.mapping.substitute(found)
                self._report(entry.offset, f"{text} but provided type is '{provided}'")
        return message.type

    def _no_message(self, node: CreateStruct, name: str) -> None:
        known = self._lookup(name)
        if known is None:
            self._undeclared(node, name)
        elif known.kind == "type":
            self._report(
                node.offset, f"'{known.params[0].name or known.params[0].kind}' is not a message type"
            )
        else:
            self._report(node.offset, f"'{known}' is not a type")

    def _optional(self, node: Expr, found: Type, optional: bool) -> Type:
        if not optional:
            return found
        if is_optional(found):
            return found.params[0]
        if found.kind != "dyn":
            self._mismatch(node, optional_of(found), found)
        return found

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.mapping.assignable(previous, current):
            return (
                previous
                if previous.kind in ("dyn", "param")
                else current
                if current.kind == "dyn"
                else previous
            )
        return DYN

    def _comprehension(self, node: Comprehension) -> Type:
        ranged = self.mapping.substitute(self.check(node.range))
        accumulated = self.check(node.init)
        self._scopes.append({node.accumulator: accumulated})
        names = self._iterated(node, ranged)
        self._scopes.append(names)
        self._expect(node.condition, BOOL)
        self._expect(node.step, accumulated)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self.mapping.substitute(result)

    def _iterated(self, node: Comprehension, ranged: Type) -> dict[str, Type]:
        if ranged.kind == "list":
            first, second = (INT, ranged.params[0]) if node.second else (ranged.params[0], DYN)
        elif ranged.kind == "map":
            first, second = ranged.params
        elif ranged.kind in ("dyn", "error", "param"):
            self.mapping.assignable(DYN, ranged)
            first = second = DYN
        else:
            text = f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._report(node.range.offset, text)
            first = second = ERROR
        return {node.variable: first, node.second: second} if node.second else {node.variable: first}

    def _expect(self, node: Expr, expected: Type) -> None:
        found = self.check(node)
        if not self.mapping.assignable(expected, found):
            self._mismatch(node, expected, found)

    def _mismatch(self, node: Expr, expected: Type, found: Type) -> None:
        shown = [str(self.mapping.substitute(kind)) for kind in (expected, found)]
        self._report(node.offset, f"expected type '{shown[0]}' but found '{shown[1]}'")

    def _undeclared(self, node: Expr, name: str) -> None:
        self._report(node.offset, f"undeclared reference to '{name}' (in container '')")

    def _report(self, offset: int, message: str) -> None:
        self.issues.append(Issue(offset, message))


def field_name(entry: Entry) -> str:
    """Return the name of a field in an object literal."""
    assert isinstance(entry.key, Literal)
    return str(entry.key.value)


def _literal(node: Literal) -> Type:
    kinds: dict[type, Type] = {
        bool: BOOL, int: INT, Uint: UINT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL,
    }  # fmt: skip
    return kinds[type(node.value)]


def _qualified(node: Expr) -> str | None:
    """Return `a.b.c` for nested selections from a name."""
    if isinstance(node, Ident):
        return node.name.removeprefix(".")
    if isinstance(node, Select) and not node.test:
        prefix = _qualified(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


def _parameters(kind: Type) -> set[str]:
    found = {kind.name} if kind.kind == "param" else set[str]()
    for inner in kind.params:
        found |= _parameters(inner)
    return found
