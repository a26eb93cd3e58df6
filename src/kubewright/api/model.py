"""`Model`: a typed struct whose Python names are snake_case and whose wire names are camelCase."""

import copy
import inspect
import keyword
import re
import sys
import typing
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform, get_args, get_origin

import msgspec

from kubewright.api.annotations import (
    NameScope,
    body_annotations,
    concrete,
    field_in,
    problem,
    types_in,
    unfolded,
)
from kubewright.api.errors import DeclarationError
from kubewright.api.fields import Field, Rule
from kubewright.api.pydantic_models import is_pydantic

_M = TypeVar("_M", bound="ModelType")
_MAKERS = frozenset({__name__, "kubewright.api.resource"})


def camel(name: str) -> str:
    """Return the wire name of a Python name: `test_num` is `testNum`, `from_` is `from`."""
    if "_" not in name:
        return name
    head, *tail = name.rstrip("_").split("_")
    return head + "".join([word[:1].upper() + word[1:] for word in tail])


def snake(name: str) -> str:
    """Return the Python name of a wire name: `testNum` is `test_num`, `clusterIPs` is `cluster_ips`, `from` is `from_`."""
    text = re.sub(r"([A-Z]{2,})s(?=[A-Z]|$)", lambda match: match[1].capitalize() + "s", name)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()
    return f"{text}_" if keyword.iskeyword(text) else text


_create = msgspec.StructMeta.__call__


class ModelType(msgspec.StructMeta):
    """The metaclass of models: it reads class keywords, sets wire names and rejects invalid declarations."""

    __rules__: tuple[Rule, ...]
    __lists__: dict[str, tuple[str, ...]]
    __builtin__: bool

    def may_be_pydantic(self, name: str, annotation: Any) -> bool:
        """Return True if a field is a pydantic model in a place where one is allowed."""
        return False

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **keywords: Any) -> dict[str, object]:
        """Raise DeclarationError for unknown class keywords."""
        unknown = keywords.keys() - (cls.__new__.__kwdefaults__ or {}).keys()
        if unknown:
            raise DeclarationError(f"{name}: there is no class keyword {min(unknown)}=")
        return {}

    def __new__(
        mcls: type[_M],
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        /,
        *,
        rules: Sequence[Rule] = (),
        wire_names: Mapping[str, str] | None = None,
        lists: Mapping[str, tuple[str, ...]] | None = None,
        builtin: bool = False,
        kw_only: bool = True,
    ) -> _M:
        """Create a model; `wire_names`, `lists` and `builtin` are for generated classes."""
        namespace["__annotations__"] = body_annotations(namespace)
        # Hundreds of built-in models are created at start; their generator has already made these checks.
        names = None if builtin else _names_seen(namespace)
        renamed = _inherited_names(bases) if names is None else _read_body(name, bases, namespace, names)
        renamed.update(wire_names or {})
        try:
            cls = super().__new__(
                mcls,
                name,
                bases,
                namespace,
                rename=lambda key: renamed.get(key) or camel(key),
                kw_only=kw_only,
                gc=not builtin,
                repr_omit_defaults=True,
            )
        except (TypeError, ValueError) as error:
            twins = _of_one_wire_name([*renamed], renamed)
            raise DeclarationError(f"{name}: {twins or error}") from error
        cls.__rules__ = tuple(rules)
        cls.__lists__ = dict(lists or {})
        cls.__builtin__ = builtin
        if names is not None:
            seen, annotations = (
                NameScope(names.module, {**names.local, name: cls}),
                namespace["__annotations__"],
            )
            annotations.update({key: unfolded(seen.read(value)) for key, value in annotations.items()})
            _refuse_problems(cls, annotations)
            _refuse_private(cls, renamed)
        return cls

    if not TYPE_CHECKING:
        # Type checkers read the fields; this signature would hide them.
        def __call__(self, *args: Any, **keywords: Any) -> Any:
            """Create an instance; raise TypeError for an unknown field with the one that was probably meant."""
            try:
                return _create(self, *args, **keywords)
            except TypeError:
                fields = self.__struct_fields__
                unknown = next((name for name in keywords if name not in fields), None)
                if unknown is None:
                    raise
                raise TypeError(_unknown_field(self.__name__, unknown, fields)) from None


def _unknown_field(name: str, unknown: str, fields: Sequence[str]) -> str:
    meant = import_module("difflib").get_close_matches(snake(unknown), fields, n=1)
    advice = f"did you mean {meant[0]!r}?" if meant else f"its fields are {', '.join(fields)}"
    return f"{name}() has no field {unknown!r}: {advice}"


def _names_seen(namespace: Mapping[str, Any]) -> NameScope:
    """Return the scope of the class statement: its module and, inside a function, the local variables."""
    frame = cast(FrameType, inspect.currentframe())
    while frame.f_back is not None and frame.f_globals.get("__name__") in _MAKERS:
        frame = frame.f_back
    module = sys.modules.get(namespace.get("__module__", ""))
    return NameScope(vars(module) if module else frame.f_globals, frame.f_locals)


def _fill_generics(namespace: dict[str, Any]) -> None:
    """Redeclare the fields of a generic parent with concrete types; their defaults are kept."""
    annotations = namespace["__annotations__"]
    for base in namespace.get("__orig_bases__", ()):
        origin: Any = get_origin(base)
        if not isinstance(origin, ModelType):
            continue
        given = dict(zip(cast(Any, origin).__parameters__, get_args(base), strict=True))
        hints = _hints(origin)
        for item in msgspec.structs.fields(cast(Any, origin)):
            filled = concrete(hints[item.name], given)
            if filled != hints[item.name] and item.name not in annotations:
                annotations[item.name] = unfolded(filled)
                if item.default_factory is not msgspec.NODEFAULT:
                    namespace.setdefault(item.name, msgspec.field(default_factory=item.default_factory))
                elif not item.required:
                    namespace.setdefault(item.name, item.default)


def _of_one_wire_name(names: Sequence[str], renamed: Mapping[str, str]) -> str:
    """Return two fields with the same wire name, if there are any."""
    seen: dict[str, str] = {}
    for name in names:
        wire = renamed[name] or camel(name)
        if wire in seen:
            return f'{seen[wire]} and {name} are both "{wire}" on the wire: give one Field(name="...")'
        seen[wire] = name
    return ""


def _refuse_private(cls: ModelType, renamed: Mapping[str, str]) -> None:
    for name in cls.__struct_fields__:
        if name.startswith("_") and not renamed.get(name):
            way = 'rename it, or use Field(name="...")'
            raise DeclarationError(f"{cls.__name__}.{name}: no wire name follows from it: {way}")


def _protect_defaults(cls: str, namespace: dict[str, Any]) -> None:
    """Replace mutable defaults by factories, so that each object has its own copy."""
    for name, annotation in namespace["__annotations__"].items():
        default: Any = namespace.get(name)
        if isinstance(default, Field):
            kind = getattr(annotation, "__name__", annotation)
            way = f"write {name}: Annotated[{kind}, Field(...)]"
            raise DeclarationError(f"{cls}.{name}: Field(...) is no default: {way}")
        is_model = isinstance(default, msgspec.Struct) or is_pydantic(default.__class__)
        if is_model or (isinstance(default, list | dict) and default):
            namespace[name] = msgspec.field(default_factory=partial(cast(Any, copy.deepcopy), default))


def _read_body(
    cls: str, bases: tuple[type, ...], namespace: dict[str, Any], names: NameScope
) -> dict[str, str]:
    """Check the annotations of a class body; return the explicit and inherited wire names."""
    annotations = namespace["__annotations__"]
    annotations.update({key: unfolded(names.read(value)) for key, value in annotations.items()})
    _fill_generics(namespace)
    _protect_defaults(cls, namespace)
    found = _inherited_names(bases)
    for name, annotation in annotations.items():
        found[name] = field_in(names.guess(annotation)).name or found.get(name, "")
    return found


def _inherited_names(bases: tuple[type, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed(bases):
        if issubclass(base, msgspec.Struct):
            found.update(zip(base.__struct_fields__, base.__struct_encode_fields__, strict=True))
    return found


def _refuse_problems(cls: ModelType, annotations: Mapping[str, Any]) -> None:
    for name in cls.__struct_fields__:
        if name not in annotations or cls.may_be_pydantic(name, annotations[name]):
            continue
        reason = problem(annotations[name])
        if reason:
            raise DeclarationError(f"{cls.__name__}.{name}: {reason}")


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Model(msgspec.Struct, metaclass=ModelType):
    """A part of a kind, such as its spec: a class with typed fields.

    Fields are snake_case in Python and camelCase in JSON. A field without a default is required. The docstring, types,
    defaults and `Field(...)` become the schema in the CRD. `rules` are CEL rules for the whole model; `wire_names` gives
    fields other names in JSON.
    """

    __rules__: ClassVar[tuple[Rule, ...]]
    __lists__: ClassVar[dict[str, tuple[str, ...]]]
    __builtin__: ClassVar[bool]

    def __init_subclass__(
        cls,
        *,
        rules: Sequence[Rule] = (),
        wire_names: Mapping[str, str] | None = None,
        lists: Mapping[str, tuple[str, ...]] | None = None,
        builtin: bool = False,
        kw_only: bool = True,
    ) -> None:
        """Declare the class keywords for type checkers; the metaclass has read them."""
        super().__init_subclass__()


def is_builtin(cls: type) -> bool:
    """Return True if a class follows the rules of Go's types: generated, or shared by all kinds."""
    return bool(getattr(cls, "__builtin__", False))


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except NameError as error:
        raise DeclarationError(f"{cls.__name__}: {error}: define or import it in {cls.__module__}") from error


def field_types(cls: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of all fields with their `Annotated` extras; raise DeclarationError for an undefined name."""
    hints = _hints(cls)
    found = {name: hints[name] for name in cls.__struct_fields__}
    if isinstance(cls, ModelType) and not is_builtin(cls):
        found = {name: unfolded(hint) for name, hint in found.items()}
        _refuse_problems(cls, found)
    return found


def field_info(cls: type[msgspec.Struct]) -> dict[str, Field]:
    """Return the `Field` of each field."""
    found = {name: field_in(annotation) for name, annotation in field_types(cls).items()}
    for name, keys in getattr(cls, "__lists__", {}).items():
        found[name] = Field(list_type="map" if keys else "set", list_keys=keys)
    return found


def model_rules(cls: type[msgspec.Struct]) -> tuple[Rule, ...]:
    """Return the CEL rules of a model, its parents' first."""
    return tuple(rule for parent in reversed(cls.__mro__) for rule in vars(parent).get("__rules__", ()))


def required_fields(cls: type[msgspec.Struct]) -> list[str]:
    """Return the names of the fields that have no default."""
    # Without msgspec, which would evaluate annotations with names that are defined later in the module.
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    known = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return [name for name in names if known.get(name, msgspec.NODEFAULT) is msgspec.NODEFAULT]


def check_types(cls: type[msgspec.Struct]) -> None:
    """Raise DeclarationError for invalid types that string annotations hid when the model was created."""
    found: set[Any] = set()
    waiting: list[Any] = [cls]
    while waiting:
        model = waiting.pop()
        if not isinstance(model, ModelType) or is_builtin(model) or model in found:
            continue
        found.add(model)
        for hint in field_types(cast(type[msgspec.Struct], model)).values():
            waiting += types_in(hint)
