"""A checked expression compiled to closures that count what they cost."""

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
    Select,
)
from kubewright.schema.cel.charges import charge_for
from kubewright.schema.cel.checker import Checked, field_name
from kubewright.schema.cel.declarations import converted
from kubewright.schema.cel.errors import EvaluationError
from kubewright.schema.cel.frames import LIST_COST, MAP_COST, Frame, Step
from kubewright.schema.cel.loops import bind, exactly_one, filtered, mapped, mapped_entries, quantifier
from kubewright.schema.cel.messages import creation
from kubewright.schema.cel.steps import (
    conditional,
    dynamic_call,
    logical,
    membership,
    optional_selection,
    presence,
    selection,
    static_call,
    variable,
)
from kubewright.schema.cel.types import Declared, Type
from kubewright.schema.cel.values import equal


def compile_steps(checked: Checked, structs: dict[str, Declared]) -> Step:
    """Return the function that evaluates the expression."""
    return _Compiler(checked, structs).compile(checked.expr)


class _Compiler:
    def __init__(self, checked: Checked, structs: dict[str, Declared]) -> None:
        self._checked = checked
        self._structs = structs

    def compile(self, node: Expr) -> Step:
        """Compile one node and everything below it."""
        if node in self._checked.qualified and not isinstance(node, Call):
            return variable(self._checked.qualified[node])
        if isinstance(node, Literal):
            value = node.value
            return lambda frame: value
        if isinstance(node, Ident):
            return variable(node.name.removeprefix("."))
        if isinstance(node, Select):
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
        return self._comprehension(node)

    def _select(self, node: Select) -> Step:
        operand = self.compile(node.operand)
        name, inner = self._field(self._checked.types[node.operand], node.field)
        if node.test:
            return presence(operand, name)
        return selection(operand, name, inner)

    def _field(self, target: Type, field: str) -> tuple[str, Declared | None]:
        """Return the JSON name of a field, and its type where values must be converted."""
        if target.kind == "opaque" and target.params:
            target = target.params[0]
        declared = self._structs.get(target.name) if target.kind == "struct" else None
        if declared is None or field not in declared.fields:
            return field, None
        inner = declared.fields[field]
        return declared.names[field], inner if inner.conversion and inner.conversion != "struct" else None

    def _call(self, node: Call) -> Step:
        function = node.function
        if function in ("_&&_", "_||_"):
            return logical(
                self.compile(node.args[0]), self.compile(node.args[1]), deciding=function == "_||_"
            )
        if function == "_?_:_":
            return conditional(*(self.compile(arg) for arg in node.args))
        if function == "_?._":
            return self._optional_select(node)
        overloads = self._checked.overloads[node]
        qualified = node in self._checked.qualified
        parts = [node.target, *node.args] if node.target is not None and not qualified else node.args
        args = [self.compile(part) for part in parts]
        if function in ("_==_", "_!=_"):
            return self._equality(node, args)
        if function == "@in" and overloads[0].id == "in_list" and _is_constant(node.args[1]):
            return membership(args[0], _constant(node.args[1]))
        name = self._checked.qualified.get(node, function)
        types = [self._checked.types[part] for part in parts]
        if len(overloads) == 1 and not any(_is_loose(kind) for kind in types):
            return static_call(overloads[0], args, charge_for(name, overloads[0].id))
        return dynamic_call(overloads, args, name)

    def _equality(self, node: Call, args: list[Step]) -> Step:
        left, right = args
        conversions = [self._declared(self._checked.types[arg]) for arg in node.args]
        negative = node.function == "_!=_"
        charge = charge_for(node.function, "equals")

        def step(frame: Frame) -> bool:
            first, second = left(frame), right(frame)
            frame.charge(charge((first, second), None))
            if conversions[0] is not None:
                first = converted(conversions[0], first)
            if conversions[1] is not None:
                second = converted(conversions[1], second)
            return equal(first, second) != negative

        return step

    def _declared(self, kind: Type) -> Declared | None:
        declared = self._structs.get(kind.name) if kind.kind == "struct" else None
        return declared if declared is not None and declared.conversion else None

    def _optional_select(self, node: Call) -> Step:
        literal = node.args[1]
        assert isinstance(literal, Literal)
        name, inner = self._field(self._checked.types[node.args[0]], str(literal.value))
        return optional_selection(self.compile(node.args[0]), name, inner)

    def _list(self, node: CreateList) -> Step:
        if _is_constant(node):
            constant = _constant(node)
            return lambda frame: constant
        elements = [self.compile(element) for element in node.elements]
        optional = node.optional

        def step(frame: Frame) -> list[Any]:
            values: list[Any] = []
            for position, element in enumerate(elements):
                value = element(frame)
                if position not in optional:
                    values.append(value)
                elif value.present:
                    values.append(value.value)
            frame.charge(LIST_COST)
            return values

        return step

    def _map(self, node: CreateMap) -> Step:
        entries = [
            (self.compile(entry.key), self.compile(entry.value), entry.optional) for entry in node.entries
        ]

        def step(frame: Frame) -> dict[Any, Any]:
            result: dict[Any, Any] = {}
            for key_step, value_step, optional in entries:
                key, value = key_step(frame), value_step(frame)
                if optional:
                    if not value.present:
                        continue
                    value = value.value
                if key in result:
                    raise EvaluationError("Failed with repeated key")
                result[key] = value
            frame.charge(MAP_COST)
            return result

        return step

    def _message(self, node: CreateStruct) -> Step:
        fields = [(field_name(entry), self.compile(entry.value), entry.optional) for entry in node.entries]
        return creation(self._checked.messages[node], fields)

    def _comprehension(self, node: Comprehension) -> Step:
        if node.macro == "bind":
            return bind(node.accumulator, self.compile(node.init), self.compile(node.result))
        source = self.compile(node.range)
        parts = [self.compile(part) for part in node.parts]
        names = (node.variable, node.second)
        if node.macro in ("all", "exists"):
            return quantifier(source, names, parts[0], deciding=node.macro == "exists")
        if node.macro in ("exists_one", "existsOne"):
            return exactly_one(source, names, parts[0])
        if node.macro == "filter":
            return filtered(source, names, parts[0])
        if node.macro.startswith("transformMap"):
            return mapped_entries(source, names, parts, whole=node.macro == "transformMapEntry")
        return mapped(source, names, parts)


def _is_loose(kind: Type) -> bool:
    """Tell whether values of a type must be looked at before a call, because checking could not see them."""
    return kind.nullable or kind.kind in ("dyn", "param", "error", "null")


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Literal) or (
        isinstance(node, CreateList)
        and not node.optional
        and all(_is_constant(element) for element in node.elements)
    )


def _constant(node: Expr) -> Any:
    if isinstance(node, Literal):
        return node.value
    assert isinstance(node, CreateList)
    return [_constant(element) for element in node.elements]
