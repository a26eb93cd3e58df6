"""Closures for variables, fields, logic and calls."""

from typing import Any

from kubewright.schema.cel.charges import Charge, charge_for
from kubewright.schema.cel.checker import TYPE_NAMES
from kubewright.schema.cel.declarations import converted
from kubewright.schema.cel.errors import CostExceeded, EvaluationError, no_such_key, no_such_overload
from kubewright.schema.cel.frames import Frame, Step
from kubewright.schema.cel.overloads import Overload, accepts
from kubewright.schema.cel.types import Declared
from kubewright.schema.cel.values import NONE, OpaqueValue, Optional, TypeValue, Value, equal
from kubewright.schema.cel.wellknown import NULL_VALUE


def variable(name: str) -> Step:
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


def selection(operand: Step, name: str, inner: Declared | None) -> Step:
    """Read a field."""

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


def _odd_selection(value: Value, name: str) -> Any:
    """Select from what is no map: an optional value, an object of the host, or nothing of the kind."""
    if isinstance(value, Optional):
        return _optional_field(value, name)
    if isinstance(value, OpaqueValue) and name in value.fields:
        return value.fields[name]
    raise no_such_overload() if not isinstance(value, OpaqueValue) else no_such_key(name)


def optional_selection(operand: Step, name: str, inner: Declared | None) -> Step:
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


def presence(operand: Step, name: str) -> Step:
    """Tell whether a field is there; this costs nothing."""

    def step(frame: Frame) -> bool:
        value: Value = operand(frame)
        if not isinstance(value, dict | Optional | OpaqueValue):
            raise no_such_overload()
        return _optional_field(value, name).present

    return step


def logical(left: Step, right: Step, *, deciding: bool) -> Step:
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


def conditional(condition: Step, then: Step, otherwise: Step) -> Step:
    """Choose between two parts."""

    def step(frame: Frame) -> Any:
        decided = condition(frame)
        if decided is True:
            return then(frame)
        if decided is False:
            return otherwise(frame)
        raise no_such_overload()

    return step


def membership(item: Step, values: list[Any]) -> Step:
    """Look for a value in a constant list."""
    hashed = frozenset(value for value in values if isinstance(value, str))

    def step(frame: Frame) -> bool:
        value = item(frame)
        frame.charge(1)
        return value in hashed if isinstance(value, str) else any(equal(value, other) for other in values)

    return step


def static_call(overload: Overload, args: list[Step], charge: Charge) -> Step:
    """Call the one form of a function that fits."""
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


def dynamic_call(overloads: list[Overload], args: list[Step], name: str) -> Step:
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
