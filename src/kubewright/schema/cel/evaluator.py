"""A checked expression as closures that count their cost."""

from collections.abc import Callable, Iterable, Iterator
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
    Visitor,
)
from kubewright.schema.cel.checker import TYPE_NAMES, Checked, field_name
from kubewright.schema.cel.costs import Charge, charge_for
from kubewright.schema.cel.errors import CostExceeded, EvaluationError, no_such_key, no_such_overload
from kubewright.schema.cel.messages import MESSAGE_COST, NULL_VALUE, MessageType, WellKnown
from kubewright.schema.cel.types import DeclaredType, Overload, Type, accepts, converted
from kubewright.schema.cel.values import NONE, OpaqueValue, Optional, TypeValue, Value, equal

LIST_COST, MAP_COST = 10, 30

_LIST_BY_TEXT = "unsupported index type 'string' in list"


class Frame:
    """One evaluation: its variables and its cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables: dict[str, Any] = variables
        self.limit: int = limit
        self.cost: int = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raise CostExceeded if it is above the limit."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


EvaluationStep = Callable[[Frame], Any]
"""Evaluate a part of an expression in a frame."""


def variable(name: str) -> EvaluationStep:
    """Read a variable, or a type or constant by its name."""
    constant = TypeValue(name) if name in TYPE_NAMES else 0 if name == NULL_VALUE else None

    def step(frame: Frame) -> Any:
        frame.cost += 1
        try:
            return frame.variables[name]
        except KeyError:
            if constant is not None:
                return constant
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return step


def selection(operand: EvaluationStep, name: str, inner: DeclaredType | None) -> EvaluationStep:
    """Read a field."""

    def step(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        try:
            found = value[name]
        except KeyError:
            raise no_such_key(name) from None
        except TypeError:
            return _select_from_other(value, name)
        return converted(inner, found) if inner is not None else found

    return step


def _select_from_other(value: Value, name: str) -> Any:
    """Read a field of a value that is not a map: an optional value or an opaque one."""
    if isinstance(value, Optional):
        return _optional_field(value, name)
    if isinstance(value, OpaqueValue) and name in value.fields:
        return value.fields[name]
    if isinstance(value, list):
        raise EvaluationError(_LIST_BY_TEXT)
    raise no_such_key(name)


def optional_selection(operand: EvaluationStep, name: str, inner: DeclaredType | None) -> EvaluationStep:
    """Read a field that may be absent."""

    def step(frame: Frame) -> Optional:
        found = _optional_field(operand(frame), name)
        frame.cost += 1
        return Optional(converted(inner, found.value)) if inner is not None and found.present else found

    return step


def _optional_field(value: Value, name: str) -> Optional:
    if isinstance(value, Optional):
        return _optional_field(value.value, name) if value.present else NONE
    fields = value.fields if isinstance(value, OpaqueValue) else value
    return Optional(fields[name]) if isinstance(fields, dict) and name in fields else NONE


def presence(operand: EvaluationStep, name: str) -> EvaluationStep:
    """Test whether a field is set, which costs nothing."""

    def step(frame: Frame) -> bool:
        value: Value = operand(frame)
        if isinstance(value, list):
            raise EvaluationError(_LIST_BY_TEXT)
        return _optional_field(value, name).present

    return step


def logical(left: EvaluationStep, right: EvaluationStep, *, deciding: bool) -> EvaluationStep:
    """Build `&&` or `||`: a deciding value of one side is the result, even if the other side is an error."""

    def step(frame: Frame) -> bool:
        try:
            first = left(frame)
        except CostExceeded:
            raise
        except EvaluationError as error:
            try:
                if right(frame) is deciding:
                    return deciding
            except CostExceeded:
                raise
            except EvaluationError:
                raise error from None
            raise
        if first is deciding:
            return deciding
        if not isinstance(first, bool):
            if right(frame) is deciding:
                return deciding
            raise no_such_overload()
        second = right(frame)
        if not isinstance(second, bool):
            raise no_such_overload()
        return second

    return step


def conditional(condition: EvaluationStep, then: EvaluationStep, otherwise: EvaluationStep) -> EvaluationStep:
    """Build `condition ? then : otherwise`."""

    def step(frame: Frame) -> Any:
        decided = condition(frame)
        if decided is True:
            return then(frame)
        if decided is False:
            return otherwise(frame)
        raise no_such_overload()

    return step


def alternative(found: EvaluationStep, otherwise: EvaluationStep, *, unwrap: bool) -> EvaluationStep:
    """Build `or` or `orValue` of an optional: the other side is evaluated only if there is no value."""

    def step(frame: Frame) -> Any:
        optional = found(frame)
        if not isinstance(optional, Optional):
            raise no_such_overload()
        if not optional.present:
            return otherwise(frame)
        return optional.value if unwrap else optional

    return step


def membership(item: EvaluationStep, values: list[Any]) -> EvaluationStep:
    """Build `value in [...]` for a constant list."""
    hashed = frozenset(value for value in values if isinstance(value, str))

    def step(frame: Frame) -> bool:
        value = item(frame)
        frame.charge(1)
        return value in hashed if isinstance(value, str) else any(equal(value, other) for other in values)

    return step


def static_call(overload: Overload, args: list[EvaluationStep], charge: Charge) -> EvaluationStep:
    """Call the only matching overload of a function.

    The checker has chosen it by the schema. An object that was stored in another version may not fit the schema, so a
    value may have another type than the checker saw.
    """
    call = overload.call
    if len(args) == 1:
        only = args[0]

        def unary(frame: Frame) -> Any:
            value = only(frame)
            try:
                result = call(value)
            except (TypeError, AttributeError):
                _check_types(overload, value)
                raise
            frame.charge(charge((value,), result))
            return result

        return unary
    if len(args) == 2:
        left, right = args

        def binary(frame: Frame) -> Any:
            first, second = left(frame), right(frame)
            try:
                result = call(first, second)
            except (TypeError, AttributeError):
                _check_types(overload, first, second)
                raise
            frame.charge(charge((first, second), result))
            return result

        return binary

    def many(frame: Frame) -> Any:
        values = tuple(arg(frame) for arg in args)
        try:
            result = call(*values)
        except (TypeError, AttributeError):
            _check_types(overload, *values)
            raise
        frame.charge(charge(values, result))
        return result

    return many


def _check_types(overload: Overload, *values: Any) -> None:
    """Raise EvaluationError if a value does not have the type that the overload takes."""
    if not all(map(accepts, overload.args, values)):
        raise no_such_overload()


def dynamic_call(overloads: list[Overload], args: list[EvaluationStep], name: str) -> EvaluationStep:
    """Choose the overload of a function by the values of its arguments."""
    charges = [charge_for(name, overload.id) for overload in overloads]

    def step(frame: Frame) -> Any:
        values = tuple(arg(frame) for arg in args)
        for overload, charge in zip(overloads, charges, strict=True):
            if all(map(accepts, overload.args, values)):
                result = overload.call(*values)
                frame.charge(charge(values, result))
                return result
        if name == "_[_]" and not isinstance(values[0], dict | list):
            # Like a field: a text, a number or null has no keys.
            raise no_such_key(values[1])
        raise no_such_overload()

    return step


def bind(name: str, init: EvaluationStep, body: EvaluationStep) -> EvaluationStep:
    """Bind a value to a name while an expression is evaluated."""

    def step(frame: Frame) -> Any:
        value = init(frame)
        shadowed = {name: frame.variables[name]} if name in frame.variables else {}
        frame.variables[name] = value
        try:
            return body(frame)
        finally:
            del frame.variables[name]
            frame.variables.update(shadowed)

    return step


def _iterate(frame: Frame, value: Value, names: tuple[str, str], overhead: int) -> Iterator[tuple[Any, Any]]:
    """Iterate over a list or map: set the variables of the loop and charge for each iteration."""
    first, second = names
    variables = frame.variables
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, list):
        pairs = enumerate(value) if second else ((item, item) for item in value)
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise no_such_overload()
    shadowed = {name: variables[name] for name in names if name in variables}
    try:
        for key, item in pairs:
            variables[first] = key
            if second:
                variables[second] = item
            frame.charge(overhead)
            yield key, item
    finally:
        for name in names:
            variables.pop(name, None)
        variables.update(shadowed)


def quantifier(
    source: EvaluationStep, names: tuple[str, str], predicate: EvaluationStep, *, deciding: bool
) -> EvaluationStep:
    """Build `all` or `exists`: one deciding element is the result, even if others are errors."""

    def step(frame: Frame) -> bool:
        failed: EvaluationError | None = None
        for _ in _iterate(frame, source(frame), names, 3):
            try:
                found = predicate(frame)
            except CostExceeded:
                raise
            except EvaluationError as error:
                failed = failed or error
                continue
            if found is deciding:
                return deciding
            if not isinstance(found, bool):
                failed = failed or no_such_overload()
        if failed is not None:
            raise failed
        frame.cost += 1
        return not deciding

    return step


def exactly_one(source: EvaluationStep, names: tuple[str, str], predicate: EvaluationStep) -> EvaluationStep:
    """Build `exists_one`."""

    def step(frame: Frame) -> bool:
        count = sum(1 for _ in _iterate(frame, source(frame), names, 1) if _true(predicate(frame)))
        frame.charge(2)
        return count == 1

    return step


def _true(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return value


def filtered(source: EvaluationStep, names: tuple[str, str], predicate: EvaluationStep) -> EvaluationStep:
    """Build `filter`."""

    def step(frame: Frame) -> list[Any]:
        kept: list[Any] = []
        for key, _ in _iterate(frame, source(frame), names, 1):
            if _true(predicate(frame)):
                kept.append(key)
                frame.charge(LIST_COST + 2)
        frame.cost += 1
        return kept

    return step


def mapped(source: EvaluationStep, names: tuple[str, str], parts: list[EvaluationStep]) -> EvaluationStep:
    """Build `map` and `transformList`, with or without a condition."""
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for _ in _iterate(frame, source(frame), names, 1):
            if condition is None or _true(condition(frame)):
                result.append(transform(frame))
                frame.charge(LIST_COST + 1)
        frame.cost += 1
        return result

    return step


def mapped_entries(
    source: EvaluationStep, names: tuple[str, str], parts: list[EvaluationStep], *, whole: bool
) -> EvaluationStep:
    """Build `transformMap` and `transformMapEntry`."""
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, _ in _iterate(frame, source(frame), names, 1):
            if condition is not None and not _true(condition(frame)):
                continue
            value = transform(frame)
            for new_key, item in value.items() if whole else ((key, value),):
                if new_key in result:
                    raise EvaluationError(f"insert failed: key {new_key} already exists")
                result[new_key] = item
            frame.charge(2)
        frame.cost += 1
        return result

    return step


def compile_steps(checked: Checked, structs: dict[str, DeclaredType]) -> EvaluationStep:
    """Return the function that evaluates the expression."""
    return _Compiler(checked, structs).visit(checked.expr)


class _Compiler(Visitor[EvaluationStep]):
    def __init__(self, checked: Checked, structs: dict[str, DeclaredType]) -> None:
        self._checked = checked
        self._structs = structs

    def visit(self, node: Expr) -> EvaluationStep:
        """Compile a node and everything below it."""
        if node in self._checked.qualified and not isinstance(node, Call):
            return variable(self._checked.qualified[node])
        return node.accept(self)

    def visit_literal(self, node: Literal) -> EvaluationStep:
        value = node.value
        return lambda frame: value

    def visit_ident(self, node: Ident) -> EvaluationStep:
        return variable(node.name.removeprefix("."))

    def visit_select(self, node: Select) -> EvaluationStep:
        operand = self.visit(node.operand)
        name, inner = self._field(self._checked.types[node.operand], node.field)
        if node.test:
            return presence(operand, name)
        return selection(operand, name, inner)

    def _field(self, target: Type, field: str) -> tuple[str, DeclaredType | None]:
        """Return the JSON name of a field, and its type if values must be converted."""
        if target.kind == "opaque" and target.params:
            target = target.params[0]
        declared = self._structs.get(target.name) if target.kind == "struct" else None
        if declared is None or field not in declared.fields:
            return field, None
        inner = declared.fields[field]
        return declared.names[field], inner if inner.conversion and inner.conversion != "struct" else None

    def visit_call(self, node: Call) -> EvaluationStep:
        function = node.function
        if function in ("_&&_", "_||_"):
            return logical(self.visit(node.args[0]), self.visit(node.args[1]), deciding=function == "_||_")
        if function == "_?_:_":
            return conditional(*(self.visit(arg) for arg in node.args))
        if function == "_?._":
            return self._optional_select(node)
        overloads = self._checked.overloads[node]
        qualified = node in self._checked.qualified
        parts = [node.target, *node.args] if node.target is not None and not qualified else node.args
        args = [self.visit(part) for part in parts]
        if overloads[0].id in ("optional_or_optional", "optional_orValue_value"):
            return alternative(*args, unwrap=function == "orValue")
        if function in ("_==_", "_!=_"):
            return self._equality(node, args)
        if function == "@in" and overloads[0].id == "in_list" and _is_constant(node.args[1]):
            return membership(args[0], _constant(node.args[1]))
        name = self._checked.qualified.get(node, function)
        types = [self._checked.types[part] for part in parts]
        if len(overloads) == 1 and not any(_is_loose(kind) for kind in types):
            return static_call(overloads[0], args, charge_for(name, overloads[0].id))
        return dynamic_call(overloads, args, name)

    def _equality(self, node: Call, args: list[EvaluationStep]) -> EvaluationStep:
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

    def _declared(self, kind: Type) -> DeclaredType | None:
        declared = self._structs.get(kind.name) if kind.kind == "struct" else None
        return declared if declared is not None and declared.conversion else None

    def _optional_select(self, node: Call) -> EvaluationStep:
        literal = node.args[1]
        assert isinstance(literal, Literal)
        name, inner = self._field(self._checked.types[node.args[0]], str(literal.value))
        return optional_selection(self.visit(node.args[0]), name, inner)

    def visit_list(self, node: CreateList) -> EvaluationStep:
        if _is_constant(node):
            constant = _constant(node)
            return lambda frame: constant
        elements = [self.visit(element) for element in node.elements]
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

    def visit_map(self, node: CreateMap) -> EvaluationStep:
        entries = [(self.visit(entry.key), self.visit(entry.value), entry.optional) for entry in node.entries]

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

    def visit_struct(self, node: CreateStruct) -> EvaluationStep:
        fields = [(field_name(entry), self.visit(entry.value), entry.optional) for entry in node.entries]
        return creation(self._checked.messages[node], fields)

    def visit_comprehension(self, node: Comprehension) -> EvaluationStep:
        if node.macro == "bind":
            return bind(node.accumulator, self.visit(node.init), self.visit(node.result))
        source = self.visit(node.range)
        parts = [self.visit(part) for part in node.parts]
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


def creation(kind: MessageType | WellKnown, fields: list[tuple[str, EvaluationStep, bool]]) -> EvaluationStep:
    """Create an object from its fields: name, value, and True if the value may be absent."""
    create = kind.create

    def step(frame: Frame) -> Value:
        content: dict[str, Any] = {}
        for name, value_step, optional in fields:
            value = value_step(frame)
            if optional:
                if not value.present:
                    content.pop(name, None)
                    continue
                value = value.value
            content[name] = value
        frame.charge(MESSAGE_COST)
        return create(content)

    return step


def _is_loose(kind: Type) -> bool:
    """Return True if the overload depends on the value, because its type is not known."""
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
