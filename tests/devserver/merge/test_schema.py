"""Merge schemas: of built-in kinds, of custom resources, and the metadata both share."""

from typing import Any

from kubewright.api import GroupVersionKind
from kubewright.devserver.merge import OBJECT_META, MergeSchema, merge_schema_of_crd
from kubewright.devserver.wire import load_types

TYPES = load_types()


def described(schema: MergeSchema | None, depth: int = 6) -> Any:
    """Write a schema down, to compare two of them."""
    if schema is None or depth == 0:
        return None
    found: dict[str, Any] = {"scalar": schema.scalar}
    if schema.sequence is not None:
        found["list"] = (
            schema.sequence.associative,
            schema.sequence.keys,
            described(schema.sequence.item, depth - 1),
        )
    if schema.mapping is not None:
        fields = {name: described(field, depth - 1) for name, field in schema.mapping.fields.items()}
        defaults = {name: value for name, value in schema.mapping.defaults.items() if value != {}}
        found["map"] = (schema.mapping.atomic, fields, described(schema.mapping.item, depth - 1), defaults)
    return found


def at(schema: MergeSchema, *path: str) -> MergeSchema:
    for name in path:
        if name == "[]":
            assert schema.sequence is not None
            schema = schema.sequence.item
        else:
            assert schema.mapping is not None
            schema = schema.mapping.fields[name]
    return schema


def test_metadata_is_the_same_for_built_in_kinds_and_custom_resources() -> None:
    pod = TYPES.merge_schema(GroupVersionKind("", "v1", "Pod"))
    assert described(at(pod, "metadata")) == described(OBJECT_META)


def test_built_in_lists_and_maps_merge_as_their_types_say() -> None:
    pod = TYPES.merge_schema(GroupVersionKind("", "v1", "Pod"))
    containers = at(pod, "spec", "containers").sequence
    assert containers is not None
    assert (containers.associative, containers.keys) == (True, ("name",))
    ports = at(containers.item, "ports").sequence
    assert ports is not None
    assert ports.keys == ("containerPort", "protocol")
    assert ports.item.mapping is not None
    assert ports.item.mapping.defaults["protocol"] == "TCP"
    command = at(containers.item, "command").sequence
    assert command is not None
    assert not command.associative
    service = TYPES.merge_schema(GroupVersionKind("", "v1", "Service"))
    selector = at(service, "spec", "selector").mapping
    assert selector is not None
    assert selector.atomic
    deployment = TYPES.merge_schema(GroupVersionKind("apps", "v1", "Deployment"))
    label_selector = at(deployment, "spec", "selector").mapping
    assert label_selector is not None
    assert label_selector.atomic


def test_types_that_contain_themselves_have_schemas_too() -> None:
    crd = TYPES.merge_schema(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    schema = at(crd, "spec", "versions", "[]", "schema", "openAPIV3Schema")
    inner = at(schema, "properties").mapping
    assert inner is not None
    assert inner.item is schema


def test_a_custom_resource_without_a_schema_is_deduced() -> None:
    schema = merge_schema_of_crd(None)
    assert schema.mapping is not None
    assert schema.mapping.item is not None
    assert schema.mapping.fields["metadata"] is OBJECT_META


def test_embedded_resources_have_metadata() -> None:
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    schema = merge_schema_of_crd({"type": "object", "properties": {"template": template}})
    assert at(schema, "template", "metadata") is OBJECT_META
