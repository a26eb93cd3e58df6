"""Types of every part of an expression, and the errors in it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kubewright.schema.cel.ast import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    CreateStruct,
    Expr,
    Ident,
    Literal,
    MapEntry,
    Select,
    Visitor,
)
from kubewright.schema.cel.errors import CompileError, EvaluationError, Issue
from kubewright.schema.cel.extensions import template_verbs
from kubewright.schema.cel.messages import EMPTY, NULL_VALUE, MessageType, MessageTypes, WellKnown
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
    DeclaredType,
    Library,
    Overload,
    Type,
    TypeMapping,
    is_optional,
    list_of,
    map_of,
    optional_of,
    param,
    struct,
    type_of,
)
from kubewright.schema.cel.values import Uint, parse_duration, parse_timestamp
from kubewright.schema.patterns import PatternError, compile_pattern

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
# Types that can be created as the message that stands for them.
_MESSAGES_OF_TYPES = {"list": "google.protobuf.ListValue"}
_LITERAL_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_NO_CONSTANT = object()
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
        """Return the type of the whole expression."""
        return self.types[self.expr]


@dataclass(frozen=True, slots=True)
class Known:
    """The names in scope: functions, variables, object types, and types that expressions may create."""

    library: Library
    variables: dict[str, Type]
    structs: dict[str, DeclaredType]
    messages: MessageTypes


def check(source: str, expr: Expr, known: Known) -> Checked:
    """Find the types of an expression; raise CompileError with all of its errors."""
    checker = _Checker(Checked(source, expr), known)
    checker.check(expr)
    if checker.issues:
        ordered = sorted(checker.issues, key=lambda issue: issue.offset)
        raise CompileError(source, list(dict.fromkeys(ordered)))
    mapping = checker.mapping
    result = checker.result
    result.types = {node: mapping.substitute(kind, to_dyn=True) for node, kind in result.types.items()}
    return result


class _Checker(Visitor[Type]):
    def __init__(self, result: Checked, known: Known) -> None:
        self.result = result
        self.issues: list[Issue] = []
        self.mapping = TypeMapping()
        self._library = known.library
        self._scopes: list[dict[str, Type]] = [known.variables]
        self._structs = known.structs
        self._messages = known.messages
        self._free = 0

    def check(self, node: Expr) -> Type:
        """Find the type of a node and store it."""
        found = self.visit(node)
        self.result.types[node] = found
        return found

    def visit_literal(self, node: Literal) -> Type:
        return _LITERAL_TYPES[type(node.value)]

    def visit_ident(self, node: Ident) -> Type:
        found = self._lookup(node.name.removeprefix("."))
        if found is None:
            self._undeclared(node, node.name)
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
        # The API server knows these types only in object literals.
        self.result.undefined.add(name)
        return type_of(message.type)

    def visit_select(self, node: Select) -> Type:
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

    def visit_call(self, node: Call) -> Type:
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
            self._undeclared(node, node.function)
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
        renamed = TypeMapping({param(name): self._variable() for name in names})
        return [renamed.substitute(kind) for kind in signature]

    def _variable(self) -> Type:
        self._free += 1
        return param(f"_var{self._free - 1}")

    def visit_list(self, node: CreateList) -> Type:
        joined: Type | None = None
        for position, element in enumerate(node.elements):
            found = self._optional(element, self.check(element), position in node.optional)
            joined = self._join(joined, found)
        return list_of(joined if joined is not None else self._variable())

    def visit_map(self, node: CreateMap) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            found = self._optional(entry.value, self.check(entry.value), entry.optional)
            value = self._join(value, found)
        if key is None or value is None:
            return map_of(self._variable(), self._variable())
        return map_of(key, value)

    def visit_struct(self, node: CreateStruct) -> Type:
        name = node.name.removeprefix(".")
        message = self._messages.find(_MESSAGES_OF_TYPES.get(name, name))
        if message is None:
            if name in TYPE_NAMES:
                known = TYPE_NAMES[name]
                self._report(node.offset, f"'{known.name or known.kind}' is not a message type")
            else:
                self._undeclared(node, node.name)
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

    def visit_comprehension(self, node: Comprehension) -> Type:
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


def field_name(entry: MapEntry) -> str:
    """Return the name of a field in an object literal."""
    assert isinstance(entry.key, Literal)
    return str(entry.key.value)


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


def literal_issues(checked: Checked) -> list[Issue]:
    """Return the errors in the literals of an expression: patterns, times, mixed lists, templates."""
    issues: list[Issue] = []
    for node, in_format in _nodes(checked.expr, in_format=False):
        if isinstance(node, Call):
            issues += _check_literal(node)
            issues += _check_format(node, checked)
        elif isinstance(node, CreateList) and not in_format:
            issues += _mixed_list(node, checked)
        elif isinstance(node, CreateMap) and not in_format:
            issues += _mixed_map(node, checked)
    return issues


def evaluate_constants(checked: Checked) -> None:
    """Raise EvaluationError if a constant cannot be converted or a constant pattern is invalid."""
    for node, _ in _nodes(checked.expr, in_format=False):
        if not isinstance(node, Call) or not node.args or node not in checked.overloads:
            continue
        if _is_conversion(node):
            _convert_constant(node, checked)
            continue
        literal = node.args[0]
        if not isinstance(literal, Literal):
            continue
        if node.function in ("find", "findAll") and isinstance(literal.value, str):
            try:
                compile_pattern(literal.value)
            except PatternError as error:
                raise EvaluationError(str(error)) from None


def _is_conversion(node: Call) -> bool:
    return node.function in _CONVERSIONS and node.target is None and len(node.args) == 1


def _convert_constant(node: Expr, checked: Checked) -> Any:
    """Return the value of a literal after conversions, which may be nested, or _NO_CONSTANT."""
    if isinstance(node, Literal):
        return node.value
    if not isinstance(node, Call) or not _is_conversion(node) or node not in checked.overloads:
        return _NO_CONSTANT
    value = _convert_constant(node.args[0], checked)
    return value if value is _NO_CONSTANT else checked.overloads[node][0].call(value)


def _check_literal(node: Call) -> Iterator[Issue]:
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


def _check_format(node: Call, checked: Checked) -> Iterator[Issue]:
    """Check a constant format string against its list of arguments."""
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
        yield from _check_argument(verb, listed.elements[position], checked)


def _check_argument(verb: str, element: Expr, checked: Checked) -> Iterator[Issue]:
    """Check an argument of a format string; `%s` takes lists and maps, too."""
    fitting, problem = _VERB_TYPES[verb]
    kind = checked.types[element]
    if kind.kind not in (*fitting, "dyn", "param"):
        name = _RUNTIME_NAMES.get(kind.kind) or kind.name or kind.kind
        yield Issue(element.offset, f"error during formatting: {problem}, was given {name}")
    elif verb == "s" and isinstance(element, CreateList):
        for item in element.elements:
            yield from _check_argument(verb, item, checked)
    elif verb == "s" and isinstance(element, CreateMap):
        for entry in element.entries:
            yield from _check_argument(verb, entry.key, checked)
            yield from _check_argument(verb, entry.value, checked)


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
    """Yield all nodes; the flag is True below a call of `format`, whose list may be mixed."""
    yield node, in_format
    in_format = in_format or (isinstance(node, Call) and node.function == "format")
    for part in node.children():
        yield from _nodes(part, in_format=in_format)
