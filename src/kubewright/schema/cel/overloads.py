"""Functions and their forms: which arguments, which result, which Python function."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kubewright.schema.cel.types import Type
from kubewright.schema.cel.values import Duration, OpaqueValue, Optional, Timestamp, TypeValue, Uint, Value

Implementation = (
    Callable[[], Any]
    | Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)
"""A Python function of up to four values."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function."""

    id: str
    function: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Any]
    member: bool = False


class Library:
    """A set of functions by name."""

    def __init__(self, *parts: "Library") -> None:
        self.functions: dict[str, list[Overload]] = {}
        for part in parts:
            for overloads in part.functions.values():
                self.extend(overloads)

    def extend(self, overloads: Iterable[Overload]) -> None:
        """Add forms of functions."""
        for overload in overloads:
            self.functions.setdefault(overload.function, []).append(overload)

    def add(
        self, function: str, name: str, args: tuple[Type, ...], result: Type, call: Implementation
    ) -> None:
        """Declare a form `function(args)`."""
        self.extend([Overload(name, function, args, result, call)])

    def method(
        self, function: str, name: str, args: tuple[Type, ...], result: Type, call: Implementation
    ) -> None:
        """Declare a form `target.function(args)`; the target is the first of `args`."""
        self.extend([Overload(name, function, args, result, call, member=True)])


_CLASSES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "timestamp": (Timestamp,),
    "duration": (Duration,),
    "list": (list,),
    "map": (dict,),
    "null": (type(None),),
    "type": (TypeValue,),
    "struct": (dict,),
}


def accepts(expected: Type, value: Value) -> bool:
    """Tell whether a value fits a declared argument, as far as can be seen without looking inside."""
    kind = expected.kind
    if kind in ("dyn", "param", "error"):
        return True
    if kind == "opaque" or (kind == "struct" and expected.name.startswith(("kubernetes.", "net."))):
        if expected.name == "optional_type":
            return isinstance(value, Optional)
        return isinstance(value, OpaqueValue) and value.type_name == expected.name
    if kind in ("int", "bool", "uint"):
        return value.__class__ in _CLASSES[kind]
    return isinstance(value, _CLASSES[kind])
