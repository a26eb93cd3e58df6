"""The keys of lists whose elements are Kubernetes' own types: Conditions by `type`, Containers by `name`.

Kubernetes declares for each field how a list merges. Where it declares the same keys in every field that holds an
element type, a custom resource's list of that type gets them too; otherwise the list is atomic unless it says more.
"""

import sys
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec

from kubewright.api import Condition, field_types
from kubewright.schema.nodes import Schema

_KEY_DEFAULTS = {"protocol": "TCP"}
"""What Kubernetes fills into an optional key; other optional keys are names, which it fills with empty text."""


def keys_of_element(element: Any) -> tuple[str, ...]:
    """Return the wire names of the keys that Kubernetes uses wherever it lists this type; empty if they differ."""
    while get_origin(element) is Annotated:
        element = element.__origin__
    if not isinstance(element, type) or not getattr(element, "__builtin__", False):
        return ()
    if element is Condition:
        return ("type",)
    return _declared_keys(element.__module__).get(element, ())


def put_list_keys(schema: Schema, keys: tuple[str, ...]) -> None:
    """Make the list a map by these keys, or a set if there are none; an optional key gets Kubernetes' default."""
    items: Schema = schema["items"]
    if not keys:
        schema["x-kubernetes-list-type"] = "set"
        return
    schema["x-kubernetes-list-type"] = "map"
    schema["x-kubernetes-list-map-keys"] = list(keys)
    for key in keys:
        if key not in items.get("required", ()):
            items["properties"][key].setdefault("default", _KEY_DEFAULTS.get(key, ""))


@cache
def _declared_keys(module: str) -> dict[type, tuple[str, ...]]:
    """Return the keys of the element types that a module of built-in kinds lists the same way in every field."""
    found: dict[type, set[tuple[str, ...]]] = {}
    for cls in vars(sys.modules[module]).values():
        if not isinstance(cls, type) or not issubclass(cls, msgspec.Struct) or cls.__module__ != module:
            continue
        declared: dict[str, tuple[str, ...]] = getattr(cls, "__lists__", {})
        for name, hint in field_types(cls).items():
            if get_origin(hint) is list:
                found.setdefault(get_args(hint)[0], set()).add(declared.get(name, ()))
    return {element: keys for element, (keys, *others) in found.items() if keys and not others}
