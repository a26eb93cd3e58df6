"""Annotations of a class body: evaluated early if possible, and checked for types that JSON can represent."""

import builtins
import sys
import types
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, is_typeddict
from uuid import UUID

import msgspec

from kubewright.api.fields import Field
from kubewright.api.scalars import Scalar

if sys.version_info >= (3, 14):
    import annotationlib

_PLAIN_TYPES: frozenset[Any] = frozenset({str, int, float, bool, bytes, datetime, date, UUID, Any})
_UNTYPED = "use Any with Field(preserve_unknown_fields=True)"
_WAYS_OUT: dict[Any, str] = {
    set: 'use list[...] with Field(list_type="set")',
    frozenset: 'use list[...] with Field(list_type="set")',
    tuple: "use list[...]",
    timedelta: "use Duration, which is written as Go does",
    object: _UNTYPED,
    list: "give the type of its elements: list[str]",
    dict: "give the types of its keys and values: dict[str, str]",
    **dict.fromkeys((Sequence, Iterable, Collection), "use list[...]"),
    **dict.fromkeys((Mapping, MutableMapping), "use dict[str, ...]"),
    Decimal: "use Quantity, which is exact, or float",
    time: 'use str, with Field(pattern="...") for its form',
}


class _Unknown:
    """A placeholder for a name that is not defined yet, so that the rest of an annotation can be evaluated."""

    def __getitem__(self, item: object) -> "_Unknown":
        return self

    def __getattr__(self, name: str) -> "_Unknown":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __or__(self, other: object) -> "_Unknown":
        return self

    __ror__ = __or__

    def __call__(self) -> None:
        """Be callable, as `typing` requires of a type."""


class _Guessing(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return _Unknown()


class NameScope(msgspec.Struct, frozen=True):
    """The names in the scope of a class body."""

    module: dict[str, Any]
    local: Mapping[str, Any]

    def read(self, annotation: Any) -> Any:
        """Evaluate a string annotation; return it unchanged if a name in it is not defined yet."""
        if not isinstance(annotation, str):
            return annotation
        try:
            return self._evaluate(annotation, self.local)
        except NameError:
            return annotation

    def guess(self, annotation: Any) -> Any:
        """Evaluate a string annotation with placeholders for names that are not defined yet."""
        if not isinstance(annotation, str):
            return annotation
        return self._evaluate(annotation, _Guessing({**vars(builtins), **self.module, **self.local}))

    def _evaluate(self, text: str, local: Mapping[str, Any]) -> Any:
        # The author's own source text, which typing.get_type_hints would evaluate the same way.
        return eval(text, self.module, local)  # noqa: S307


def body_annotations(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of a class body that is being executed."""
    if sys.version_info >= (3, 14) and "__annotations__" not in namespace:
        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        if annotate is None:
            return {}
        return annotationlib.call_annotate_function(annotate, annotationlib.Format.FORWARDREF)
    return dict(namespace.get("__annotations__", {}))


def field_in(annotation: Any) -> Field:
    """Return the `Field` in an annotation, or an empty one."""
    if get_origin(annotation) is Annotated:
        for extra in reversed(annotation.__metadata__):
            if isinstance(extra, Field):
                return extra
    return Field()


def bare(annotation: Any) -> Any:
    """Return the annotation without `Annotated`."""
    while get_origin(annotation) is Annotated:
        annotation = annotation.__origin__
    return annotation


def unfolded(annotation: Any) -> Any:
    """Return the annotation with `NewType`s and type aliases resolved."""
    while isinstance(annotation, NewType) or type(annotation).__name__ == "TypeAliasType":
        annotation = annotation.__supertype__ if isinstance(annotation, NewType) else annotation.__value__
    origin, given = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(unfolded(annotation.__origin__), *annotation.__metadata__)]
    inner = tuple(given if origin is Literal else map(unfolded, given))
    if inner == given:
        return annotation
    return (Union if origin is types.UnionType else cast(Any, origin))[inner]


def concrete(annotation: Any, given: Mapping[Any, Any]) -> Any:
    """Return the annotation with type parameters replaced by their arguments."""
    if annotation in given:
        return given[annotation]
    open_ones = getattr(annotation, "__parameters__", ())
    return annotation[tuple(given.get(each, each) for each in open_ones)] if open_ones else annotation


def members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself if it is not a union."""
    annotation = bare(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(member for part in get_args(annotation) for member in members(part))
    return (annotation,)


def types_in(annotation: Any) -> list[Any]:
    """Return the types in an annotation, including those in lists, maps and unions."""
    given = () if get_origin(annotation) is Literal else get_args(annotation)
    return [annotation, *(inner for part in given for inner in types_in(part))]


def problem(annotation: Any) -> str:
    """Return why JSON cannot represent this type and what to use instead, or an empty string."""
    parts = [part for part in members(annotation) if part not in (None, type(None))]
    if not parts:
        return "None alone has no value: use X | None"
    if len(parts) == 1:
        return _type_problem(parts[0])
    if set(parts) == {int, str}:
        return ""
    names = " | ".join(_name(part) for part in parts)
    way = "float" if set(parts) == {int, float} else f"one type, or {_UNTYPED[4:]}"
    return f"the union {names} has no structural schema, only X | None and int | str have: use {way}"


def _type_problem(part: Any) -> str:
    origin = get_origin(part)
    if origin is list:
        return problem(get_args(part)[0])
    if origin is dict:
        key, value = get_args(part)
        if bare(key) is not str:
            return f"keys of a map are text on the wire, not {_name(key)}: use dict[str, {_name(value)}]"
        return problem(value)
    if origin is Literal:
        values: tuple[Any, ...] = get_args(part)
        if None in values:
            return "None is no value of a Literal: use Literal[...] | None"
        kinds: set[type] = {value.__class__ for value in values}
        return (
            "" if len(kinds) == 1 else "the values of a Literal must be of one type: use only str or only int"
        )
    if isinstance(part, TypeVar | str) or (origin is None and part in _PLAIN_TYPES):
        return ""
    if isinstance(part, type) and issubclass(part, Enum | Scalar) and not issubclass(part, Flag):
        return ""
    if isinstance(part, type) and issubclass(part, msgspec.Struct):
        return "" if hasattr(part, "__rules__") else f"{part.__name__} is no Model: derive it from Model"
    return f"{_name(part)} cannot be carried: {_way_out(part, origin)}"


def _way_out(part: Any, origin: Any) -> str:
    if (origin or part) in _WAYS_OUT:
        return _WAYS_OUT[origin or part]
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        name = f"{_name(get_args(part)[0]).title()}{origin.__name__}"
        return f"give it a name: class {name if name.isidentifier() else 'Another'}({origin.__name__}[...])"
    if hasattr(part, "__pydantic_validator__"):
        return "a pydantic model can only be the spec or status of a kind: derive it from Model"
    if is_typeddict(part) or hasattr(part, "__dataclass_fields__") or hasattr(part, "_fields"):
        return "derive it from Model"
    if isinstance(part, type) and issubclass(part, Flag):
        return "flags are joined: use list[...] of an Enum"
    return "use a Model, a list, a map or a plain value"


def _name(part: Any) -> str:
    found = None if get_origin(part) else getattr(part, "__name__", None)
    return cast(str, found) if found else str(part)
