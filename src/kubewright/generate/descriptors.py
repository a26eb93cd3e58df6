"""Descriptions of kinds and their fields for OLM consoles, taken from the schema."""

import re
from collections.abc import Iterator
from typing import Any

from kubewright.api import JsonObject, Kind, Object, kind_of
from kubewright.controller import Controller, Operator
from kubewright.schema import structural

_UI = "urn:alm:descriptor:com.tectonic.ui:"
_KUBERNETES = "urn:alm:descriptor:io.kubernetes"
_BY_TYPE = {"boolean": f"{_UI}booleanSwitch", "integer": f"{_UI}number", "number": f"{_UI}number", "string": f"{_UI}text"}  # fmt: skip
_BY_NAME = {"replicas": f"{_UI}podCount", "size": f"{_UI}podCount", "conditions": f"{_KUBERNETES}.conditions"}


def owned_kinds(operator: Operator) -> list[JsonObject]:
    """Describe each kind and version of the operator, with the objects it creates for them."""
    return [_owned(operator, declared) for declared in operator.kinds]


def _owned(operator: Operator, declared: type[Object]) -> JsonObject:
    kind, schema = kind_of(declared), structural(declared)
    fields = schema.get("properties", {})
    described: JsonObject = {
        "name": f"{kind.plural}.{kind.group}",
        "kind": kind.kind,
        "version": kind.version,
        "displayName": spaced(kind.kind),
        "description": schema.get("description") or f"{spaced(kind.kind)}.",
    }
    if resources := _resources(operator, kind.kind):
        described["resources"] = resources
    for part in ("spec", "status"):
        if descriptors := _descriptors(fields.get(part, {})):
            described[f"{part}Descriptors"] = descriptors
    return described


def _resources(operator: Operator, kind: str) -> list[JsonObject]:
    """List the objects created for a kind: what its controllers own, and what else they may create."""
    made = {
        (child.kind, child.api_version): {"kind": child.kind, "name": "", "version": child.version}
        for controller in operator.controllers
        if kind_of(controller.kind).kind == kind
        for child in _made_by(controller)
    }
    return [made[key] for key in sorted(made)]


def _made_by(controller: Controller[Any]) -> Iterator[Kind]:
    yield from (kind_of(each.kind) for each in controller.owns)
    yield from (each.kind for each in controller.needs if "create" in each.verbs and not each.subresource)


def _descriptors(schema: JsonObject, path: str = "") -> list[JsonObject]:
    found: list[JsonObject] = []
    for name, part in sorted(schema.get("properties", {}).items()):
        here = f"{path}{name}"
        descriptor: JsonObject = {"path": here, "displayName": part.get("title") or spaced(name)}
        if part.get("description"):
            descriptor["description"] = part["description"]
        hint = _BY_NAME.get(name) or _BY_TYPE.get(part.get("type", ""))
        if hint:
            descriptor["x-descriptors"] = [hint]
        found += [descriptor, *_descriptors(part, f"{here}.")]
    return found


def spaced(name: str) -> str:
    """Write a name in words: `readyReplicas` is Ready Replicas."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return words[:1].upper() + words[1:]
