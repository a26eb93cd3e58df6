"""Structural schemas from Python types.

`structural` is the entry point. A list of one of Kubernetes' own types gets the list map keys that Kubernetes declares
for it, such as `type` for Conditions and `name` for Containers; `constraints` adds what a `Field` declares.
"""

import inspect
import math
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

import msgspec

from kubewright.api import (
    Condition,
    DeclarationError,
    Field,
    Meta,
    Object,
    Rule,
    Scalar,
    Step,
    field_types,
    kind_of,
    model_rules,
    to_wire,
)
from kubewright.api.pydantic_models import is_pydantic, pydantic_schema, write_pydantic
from kubewright.schema.constraints import apply_constraints, rule_to_json
from kubewright.schema.json_tree import Json, Schema
from kubewright.schema.validation import apply_defaults

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int32"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
}
_EMBEDDED_META: Schema = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}


def structural(cls: type[msgspec.Struct]) -> Schema:
    """Return the structural schema of a model or of a whole kind."""
    return _ordered(_SchemaBuilder(cls).struct(cls, ()))


class _SchemaBuilder:
    """Builds the schema of one model; `outer` holds the enclosing models, to detect recursion."""

    def __init__(self, root: type[msgspec.Struct]) -> None:
        self._root = root

    def struct(self, cls: type[msgspec.Struct], outer: tuple[type, ...]) -> Schema:
        is_kind = issubclass(cls, Object)
        # The CRD of another project declares its defaults field by field; nothing follows from Python's.
        external = is_kind and kind_of(cls).external
        schema: Schema = {"type": "object"}
        if cls.__doc__:
            schema["description"] = inspect.cleandoc(cls.__doc__)
        properties: dict[str, Schema] = dict(_type_meta()) if is_kind else {}
        required: list[str] = []
        annotations = field_types(cls)
        lists: dict[str, tuple[str, ...]] = getattr(cls, "__lists__", {})
        for info in msgspec.structs.fields(cls):
            if is_kind and info.name == "metadata":
                continue
            location = f"{cls.__name__}.{info.name}"
            field = self._field(annotations[info.name])
            node = self.annotated(annotations[info.name], location, (*outer, cls), info.encode_name)
            if info.name in lists:
                set_list_keys(node, lists[info.name])
            if not external:
                _reject_second_default(info, field, location)
            if is_kind and info.encode_name == "status" and not external:
                _drop_defaults(node)
            elif field.optional is not False and not external:
                # A default would fill in a field that must be set.
                _add_default(node, info, location)
            properties[info.encode_name] = node
            # An object starts without a status; a status that another project requires stays required.
            if _is_required(info, field) and (external or not (is_kind and info.encode_name == "status")):
                required.append(info.encode_name)
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = sorted(required)
        return _with_rules(schema, model_rules(cls))

    def annotated(self, annotation: Any, location: str, outer: tuple[type, ...], name: str = "") -> Schema:
        """Return the schema of a type, with the keywords of its `Field`s."""
        fields: list[Field] = []
        while get_origin(annotation) is Annotated:
            fields = [extra for extra in annotation.__metadata__ if isinstance(extra, Field)] + fields
            annotation = annotation.__origin__
        schema = self.bare(annotation, location, outer)
        for field in fields:
            apply_constraints(schema, field, location, name)
        return schema

    def bare(self, annotation: Any, location: str, outer: tuple[type, ...]) -> Schema:
        """Return the schema of a type without `Annotated`."""
        members = [member for member in _members(annotation) if member is not type(None)]
        if len(members) > 1:
            if set(members) == {int, str}:
                return {
                    "x-kubernetes-int-or-string": True,
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                }
            raise _declaration_error(
                location, "a union of several types has no structural schema", "use one type, or Any"
            )
        (member,) = members
        if get_origin(member) is Annotated:
            return self.annotated(member, location, outer)
        if member is int and outer and getattr(outer[-1], "__builtin__", False):
            # The classes of built-in kinds do not declare the size of their integers.
            return {"type": "integer"}
        if member in _SCALARS:
            return dict(_SCALARS[member])
        origin = get_origin(member)
        if origin is list:
            (element,) = get_args(member)
            schema = {"type": "array", "items": self.annotated(element, f"{location}[]", outer)}
            if keys := keys_of_element(element):
                set_list_keys(schema, keys)
            return schema
        if origin is dict:
            key, value = get_args(member)
            if key is not str:
                # A CRD's schema has no place for it, so it would be lost.
                raise _declaration_error(
                    location,
                    "keys cannot be restricted",
                    "use dict[str, ...] and a rule of the field, such as Rule(\"self.all(key, key.matches('^[a-z]+$'))\")",
                )
            return {
                "type": "object",
                "additionalProperties": self.annotated(value, f"{location}[]", outer),
            }
        if origin is Literal:
            return _enumeration(get_args(member), location)
        if isinstance(member, type):
            return self._class(member, location, outer)
        raise _declaration_error(
            location, f"{member} has no structural schema", "use a Model, a list, a dict or a scalar type"
        )

    def _class(self, cls: type, location: str, outer: tuple[type, ...]) -> Schema:
        if issubclass(cls, Scalar):
            return dict(cls.structural)
        if is_pydantic(cls):
            return pydantic_schema(cls, location)
        if issubclass(cls, Enum):
            return _enumeration([member.value for member in cls], location)
        if cls is Meta:
            return dict(_EMBEDDED_META)
        if issubclass(cls, Object):
            return {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        if not issubclass(cls, msgspec.Struct):
            raise _declaration_error(
                location,
                f"{cls.__name__} has no structural schema",
                "use a Model, a list, a dict or a scalar type",
            )
        if cls in outer:
            remedy = "use Any with Field(preserve_unknown_fields=True), or refer to the inner objects by name and keep them in a flat list"
            raise _declaration_error(
                location,
                f"{cls.__name__} contains itself, but a structural schema cannot be recursive",
                remedy,
            )
        return self.struct(cls, outer)

    @staticmethod
    def _field(annotation: Any) -> Field:
        extras: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
        return next((extra for extra in reversed(extras) if isinstance(extra, Field)), Field())


def _type_meta() -> dict[str, Schema]:
    return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    else:
        yield annotation


def _enumeration(values: typing.Sequence[Any], location: str) -> Schema:
    kinds: dict[type, str] = {bool: "boolean", str: "string", int: "integer", float: "number"}
    present = [value for value in values if value is not None]
    types_seen: set[type] = {type(value) for value in present}
    if len(types_seen) != 1 or not types_seen <= kinds.keys():
        raise _declaration_error(
            location,
            "the values of an enumeration must all be of one scalar type",
            "use only str or only int",
        )
    return {"type": kinds[types_seen.pop()], "enum": present}


def _is_required(info: msgspec.structs.FieldInfo, field: Field) -> bool:
    return info.required if field.optional is None else not field.optional


def _reject_second_default(info: msgspec.structs.FieldInfo, field: Field, location: str) -> None:
    if field.default is not msgspec.UNSET and not info.required and info.default is not None:
        raise _declaration_error(
            location, "Field(default=...) and a Python default contradict each other", "use None in Python"
        )


def _add_default(schema: Schema, info: msgspec.structs.FieldInfo, location: str) -> None:
    """Add the Python default to the schema, unless it is an empty value, which is the same as absent."""
    if "default" in schema or info.required:
        return
    default = info.default_factory() if info.default_factory is not msgspec.NODEFAULT else info.default
    try:
        value: Json = _to_json(default)
    except ValueError as error:
        raise DeclarationError(f"{location}: default {error}") from None
    if isinstance(value, dict) and schema.get("properties"):
        filled: dict[str, Any] = {}
        apply_defaults({**schema}, filled)
        # An object of nothing but empty values is the same as absent, too.
        if filled or any(value.values()):
            # The API server checks a default against the rules as it is written, before it fills in nested defaults.
            schema["default"] = {**filled, **value}
    elif value:
        schema["default"] = value


def _to_json(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no time zone: use datetime.now(UTC)")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value}: not a JSON number: use a finite number")
    if isinstance(value, msgspec.Struct):
        return to_wire(value)
    if is_pydantic(value.__class__):
        return write_pydantic(value)
    if isinstance(value, Scalar):
        return value.to_wire()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in typing.cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in typing.cast("dict[str, Any]", value).items()}
    return msgspec.to_builtins(value) if isinstance(value, datetime | date | UUID | bytes) else value


def _drop_defaults(schema: Schema, keep: typing.Collection[str] = ()) -> None:
    """Remove the defaults below a status: the server must not write a status that no controller has written.

    The keys of a map list stay: the server refuses a definition in which they can be absent.
    """
    for name, inner in schema.get("properties", {}).items():
        default = inner.get("default") if name in keep else None
        _drop_defaults(inner)
        if default is not None:
            inner["default"] = default
    schema.pop("default", None)
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            _drop_defaults(typing.cast(Schema, inner), schema.get("x-kubernetes-list-map-keys", ()))


def _with_rules(schema: Schema, rules: tuple[Rule, ...]) -> Schema:
    if rules:
        schema["x-kubernetes-validations"] = [rule_to_json(rule) for rule in rules]
    return schema


def _declaration_error(location: str, message: str, remedy: str) -> DeclarationError:
    return DeclarationError(f"{location}: {message}: {remedy}")


_VALUES = frozenset({"default", "enum", "example"})


def _ordered(schema: Mapping[str, Any]) -> Schema:
    """Sort the keys as kubectl prints them; values such as defaults are not changed."""
    return {key: schema[key] if key in _VALUES else _ordered_value(schema[key]) for key in sorted(schema)}


def _ordered_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _ordered(typing.cast(Schema, value))
    if isinstance(value, list):
        return [_ordered_value(item) for item in typing.cast("list[Any]", value)]
    return value


_GROUP_DEPTH = len(["kubewright", "api", "builtin", "core_v1"])
_KEY_DEFAULTS = {"protocol": "TCP"}
"""Kubernetes' defaults of optional keys; other optional keys are names, whose default is an empty string."""


def keys_of_element(element: Any) -> tuple[str, ...]:
    """Return the JSON names of the keys that Kubernetes uses in all lists of this type; empty if they differ."""
    while get_origin(element) is Annotated:
        element = element.__origin__
    if not isinstance(element, type) or not getattr(element, "__builtin__", False):
        return ()
    if element is Condition:
        return ("type",)
    if element is Step:
        return ("name",)
    return _declared_keys(_module_of_group(element)).get(element, ())


def set_list_keys(schema: Schema, keys: tuple[str, ...]) -> None:
    """Set the list type to map with these keys, or to set if there are none; optional keys get Kubernetes' default."""
    items: Schema = schema["items"]
    if not keys:
        schema["x-kubernetes-list-type"] = "set"
        return
    schema["x-kubernetes-list-type"] = "map"
    schema["x-kubernetes-list-map-keys"] = list(keys)
    for key in keys:
        if key not in items.get("required", ()):
            items["properties"][key].setdefault("default", _KEY_DEFAULTS.get(key, ""))


def _module_of_group(cls: type) -> str:
    """Return the module of a built-in class's API group, which may be a package of several modules."""
    return ".".join(cls.__module__.split(".")[:_GROUP_DEPTH])


@cache
def _declared_keys(module: str) -> dict[type, tuple[str, ...]]:
    """Return the keys of the element types that a module of built-in kinds lists with the same keys in every field."""
    found: dict[type, set[tuple[str, ...]]] = {}
    classes = [getattr(sys.modules[module], name) for name in sys.modules[module].__all__]
    for cls in classes:
        if _module_of_group(cls) != module:
            continue
        declared: dict[str, tuple[str, ...]] = getattr(cls, "__lists__", {})
        for name, hint in field_types(cls).items():
            if get_origin(hint) is list:
                found.setdefault(get_args(hint)[0], set()).add(declared.get(name, ()))
    return {element: keys for element, (keys, *others) in found.items() if keys and not others}
