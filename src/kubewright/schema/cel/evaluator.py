"""A checked expression compiled to closures that count what they cost."""

from collections.abc import Callable, Iterable
from typing import Any

from kubewright.schema.cel.ast import Call, Comprehension, CreateList, CreateMap, Expr, Ident, Literal, Select
from kubewright.schema.cel.charges import charge_for
from kubewright.schema.cel.checker import TYPE_NAMES, Checked
from kubewright.schema.cel.declarations import converted
from kubewright.schema.cel.errors import CostExceeded, EvaluationError, no_such_key, no_such_overload
from kubewright.schema.cel.overloads import Overload, accepts
from kubewright.schema.cel.types import Declared, Type
from kubewright.schema.cel.values import NONE, Optional, TypeValue, equal

LIST_COST, MAP_COST = 10, 30


class Frame:
    """One evaluation: its variables and what it has cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; raise where it is too much."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded


Step = Callable[[Frame], Any]


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
            return _variable(self._checked.qualified[node])
        if isinstance(node, Literal):
            value = node.value
            return lambda frame: value
        if isinstance(node, Ident):
            return _variable(node.name.removeprefix("."))
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CreateList):
            return self._list(node)
        if isinstance(node, CreateMap):
            return self._map(node)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _select(self, node: Select) -> Step:
        operand = self.compile(node.operand)
        name, inner = self._field(self._checked.types[node.operand], node.field)
        if node.test:
            return _presence(operand, name)
        return _selection(operand, name, inner)

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
            return _logical(
                self.compile(node.args[0]), self.compile(node.args[1]), deciding=function == "_||_"
            )
        if function == "_?_:_":
            return _conditional(*(self.compile(arg) for arg in node.args))
        if function == "_?._":
            return self._optional_select(node)
        overloads = self._checked.overloads[node]
        qualified = node in self._checked.qualified
        parts = [node.target, *node.args] if node.target is not None and not qualified else node.args
        args = [self.compile(part) for part in parts]
        if function in ("_==_", "_!=_"):
            return self._equality(node, args)
        if function == "@in" and overloads[0].id == "in_list" and _is_constant(node.args[1]):
            return _membership(args[0], node.args[1])
        name = self._checked.qualified.get(node, function)
        types = [self._checked.types[part] for part in parts]
        if len(overloads) == 1 and not any(_is_loose(kind) for kind in types):
            return _static_call(overloads[0], args, charge_for(name, overloads[0].id))
        return _dynamic_call(overloads, args, name)

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
        operand, literal = self.compile(node.args[0]), node.args[1]
        assert isinstance(literal, Literal)
        name, inner = self._field(self._checked.types[node.args[0]], str(literal.value))

        def step(frame: Frame) -> Optional:
            value = operand(frame)
            frame.cost += 1
            if isinstance(value, Optional):
                if not value.present:
                    return NONE
                value = value.value
            if not isinstance(value, dict) or name not in value:
                return NONE
            found = value[name]
            return Optional(converted(inner, found) if inner is not None else found)

        return step

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

    def _comprehension(self, node: Comprehension) -> Step:
        if node.macro == "bind":
            return _bind(node.accumulator, self.compile(node.init), self.compile(node.result))
        source = self.compile(node.range)
        parts = [self.compile(part) for part in node.parts]
        names = (node.variable, node.second)
        if node.macro in ("all", "exists"):
            return _quantifier(source, names, parts[0], deciding=node.macro == "exists")
        if node.macro in ("exists_one", "existsOne"):
            return _exactly_one(source, names, parts[0])
        if node.macro == "filter":
            return _filtered(source, names, parts[0])
        if node.macro.startswith("transformMap"):
            return _mapped_entries(source, names, parts, whole=node.macro == "transformMapEntry")
        return _mapped(source, names, parts)


def _is_loose(kind: Type) -> bool:
    """Tell whether values of a type must be looked at before a call, because checking could not see them."""
    return kind.kind in ("dyn", "param", "error", "null")


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


def _variable(name: str) -> Step:
    constant = TypeValue(name) if name in TYPE_NAMES else None

    def step(frame: Frame) -> Any:
        frame.cost += 1
        try:
            return frame.variables[name]
        except KeyError:
            if constant is not None:
                return constant
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return step


def _selection(operand: Step, name: str, inner: Declared | None) -> Step:
    def step(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        try:
            found = value[name]
        except KeyError:
            raise no_such_key(name) from None
        except TypeError:
            return _odd_selection(value, name)
        return converted(inner, found) if inner is not None else found

    return step


def _odd_selection(value: Any, name: str) -> Any:
    """Select from what is no map: an optional, an object with attributes, or nothing of the kind."""
    if isinstance(value, Optional):
        if value.present and isinstance(value.value, dict) and name in value.value:
            return Optional(value.value[name])
        return NONE
    fields = getattr(value, "fields", None)
    if isinstance(fields, dict):
        if name in fields:
            return fields[name]
        raise no_such_key(name)
    raise no_such_overload()


def _presence(operand: Step, name: str) -> Step:
    def step(frame: Frame) -> bool:
        value = operand(frame)
        if isinstance(value, Optional):
            if not value.present:
                return False
            value = value.value
        if isinstance(value, dict):
            return name in value
        fields = getattr(value, "fields", None)
        if isinstance(fields, dict):
            return name in fields
        raise no_such_overload()

    return step


def _logical(left: Step, right: Step, *, deciding: bool) -> Step:
    """Make `&&` or `||`: the deciding value of one side decides, whatever the other side is, even an error."""

    def step(frame: Frame) -> bool:
        try:
            first = left(frame)
        except CostExceeded:
            raise
        except EvaluationError:
            if right(frame) is deciding:
                return deciding
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


def _conditional(condition: Step, then: Step, otherwise: Step) -> Step:
    def step(frame: Frame) -> Any:
        decided = condition(frame)
        if decided is True:
            return then(frame)
        if decided is False:
            return otherwise(frame)
        raise no_such_overload()

    return step


def _membership(item: Step, listed: Expr) -> Step:
    values = _constant(listed)
    hashed = frozenset(value for value in values if isinstance(value, str))

    def step(frame: Frame) -> bool:
        value = item(frame)
        frame.charge(1)
        return value in hashed if isinstance(value, str) else any(equal(value, other) for other in values)

    return step


def _static_call(overload: Overload, args: list[Step], charge: Callable[[tuple[Any, ...], Any], int]) -> Step:
    call = overload.call
    if len(args) == 1:
        only = args[0]

        def unary(frame: Frame) -> Any:
            value = only(frame)
            result = call(value)
            frame.charge(charge((value,), result))
            return result

        return unary
    if len(args) == 2:
        left, right = args

        def binary(frame: Frame) -> Any:
            first, second = left(frame), right(frame)
            result = call(first, second)
            frame.charge(charge((first, second), result))
            return result

        return binary

    def many(frame: Frame) -> Any:
        values = tuple(arg(frame) for arg in args)
        result = call(*values)
        frame.charge(charge(values, result))
        return result

    return many


def _dynamic_call(overloads: list[Overload], args: list[Step], name: str) -> Step:
    """Choose the form of a function by the values it is given."""
    charges = [charge_for(name, overload.id) for overload in overloads]

    def step(frame: Frame) -> Any:
        values = tuple(arg(frame) for arg in args)
        for overload, charge in zip(overloads, charges, strict=True):
            if all(map(accepts, overload.args, values)):
                result = overload.call(*values)
                frame.charge(charge(values, result))
                return result
        raise no_such_overload()

    return step


def _bind(name: str, init: Step, body: Step) -> Step:
    def step(frame: Frame) -> Any:
        value = init(frame)
        with _Bound(frame, name) as bound:
            bound.set(value)
            return body(frame)

    return step


class _Bound:
    """A variable of a loop: whatever had its name before is put back at the end."""

    __slots__ = ("_before", "_name", "_variables")

    def __init__(self, frame: Frame, name: str) -> None:
        self._variables = frame.variables
        self._name = name

    def __enter__(self) -> "_Bound":
        self._before = self._variables.get(self._name, _MISSING)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is _MISSING:
            self._variables.pop(self._name, None)
        else:
            self._variables[self._name] = self._before

    def set(self, value: Any) -> None:
        """Give the variable its value for one turn."""
        self._variables[self._name] = value


_MISSING = object()


def _turns(frame: Frame, value: Any, names: tuple[str, str], overhead: int) -> Iterable[tuple[Any, Any]]:
    """Go through a list or map, setting the loop's variables and charging each turn."""
    first, second = names
    variables = frame.variables
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, list):
        pairs = enumerate(value) if second else ((item, item) for item in value)
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise no_such_overload()
    before = {name: variables[name] for name in names if name in variables}
    try:
        for key, item in pairs:
            variables[first] = key
            if second:
                variables[second] = item
            frame.charge(overhead)
            yield key, item
    finally:
        for name in names:
            if name in before:
                variables[name] = before[name]
            else:
                variables.pop(name, None)


def _quantifier(source: Step, names: tuple[str, str], predicate: Step, *, deciding: bool) -> Step:
    def step(frame: Frame) -> bool:
        failed: EvaluationError | None = None
        for _ in _turns(frame, source(frame), names, 3):
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


def _exactly_one(source: Step, names: tuple[str, str], predicate: Step) -> Step:
    def step(frame: Frame) -> bool:
        count = sum(1 for _ in _turns(frame, source(frame), names, 1) if _true(predicate(frame)))
        frame.charge(2)
        return count == 1

    return step


def _true(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return value


def _filtered(source: Step, names: tuple[str, str], predicate: Step) -> Step:
    def step(frame: Frame) -> list[Any]:
        kept: list[Any] = []
        for key, _ in _turns(frame, source(frame), names, 1):
            if _true(predicate(frame)):
                kept.append(key)
                frame.charge(LIST_COST + 2)
        frame.cost += 1
        return kept

    return step


def _mapped(source: Step, names: tuple[str, str], parts: list[Step]) -> Step:
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for _ in _turns(frame, source(frame), names, 1):
            if condition is None or _true(condition(frame)):
                result.append(transform(frame))
                frame.charge(LIST_COST + 1)
        frame.cost += 1
        return result

    return step


def _mapped_entries(source: Step, names: tuple[str, str], parts: list[Step], *, whole: bool) -> Step:
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, _ in _turns(frame, source(frame), names, 1):
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
