"""Changes of a CRD that break somebody are listed, others are not."""

from copy import deepcopy
from typing import Any

import pytest
import schema_documents as documents

from kubewright.schema import compare

_OLD = documents.definition(
    documents.obj(
        {
            "spec": documents.obj(
                {
                    "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10},
                    "mode": {"type": "string", "enum": ["a", "b"]},
                    "name": {"type": "string", "maxLength": 10},
                    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "more": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "maybe": {"type": "string", "nullable": True},
                    "set": {"type": "string", "default": "x"},
                    "inner": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                }
            )
        }
    ),
    version={"subresources": {"status": {}}},
)


def _changed(**fields: Any) -> dict[str, Any]:
    new = deepcopy(_OLD)
    spec = new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name, change in fields.items():
        if change is None:
            del spec["properties"][name]
        elif name == "required":
            spec["required"] = change
        else:
            merged = {**spec["properties"].get(name, {}), **change}
            spec["properties"][name] = {key: value for key, value in merged.items() if value is not None}
    return new


def _said(new: dict[str, Any]) -> list[str]:
    prefix = "spec.versions[v1].schema.openAPIV3Schema.properties[spec]."
    return [str(change).removeprefix(prefix) for change in compare(_OLD, new)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"size": None}, "properties[size]: field removed: its values are dropped"),
        ({"size": {"type": "string"}}, "properties[size].type: changed from integer to string"),
        ({"size": {"maximum": 5}}, "properties[size].maximum: tightened from 10 to 5"),
        ({"size": {"minimum": 1}}, "properties[size].minimum: tightened from 0 to 1"),
        ({"size": {"multipleOf": 2}}, "properties[size].multipleOf: must now be a multiple of 2"),
        ({"name": {"minLength": 1}}, "properties[name].minLength: bound 1 added"),
        ({"name": {"pattern": "^a"}}, "properties[name].pattern: must now match ^a"),
        ({"name": {"format": "email"}}, "properties[name].format: format email added"),
        ({"mode": {"enum": ["a"]}}, "properties[mode].enum: no longer allowed: b"),
        ({"name": {"enum": ["x"]}}, "properties[name].enum: values are now restricted"),
        ({"required": ["name"]}, "required: name is now required and has no default"),
        ({"maybe": {"nullable": False}}, "properties[maybe].nullable: null is no longer allowed"),
        ({"tags": {"x-kubernetes-list-type": "atomic"}}, "properties[tags].x-kubernetes-list-type: changed from set to atomic: applies merge otherwise"),
        ({"name": {"default": "x"}}, "properties[name].default: default x added: objects that left it out now read otherwise"),
        ({"name": {"x-kubernetes-validations": [{"rule": "self != ''"}]}}, "properties[name].x-kubernetes-validations[0]: rule added: self != ''"),
        ({"set": {"default": "y"}}, "properties[set].default: changed from x: objects that left it out now read otherwise"),
        ({"set": {"default": None}}, "properties[set].default: default x removed: objects that left it out now read without"),
        ({"set": {"default": None}, "required": ["set"]}, "required: set is now required and has no default"),
        ({"inner": {"x-kubernetes-embedded-resource": True}}, "properties[inner].x-kubernetes-embedded-resource: must now be an object with apiVersion, kind and metadata"),
        ({"inner": {"x-kubernetes-preserve-unknown-fields": None}}, "properties[inner].x-kubernetes-preserve-unknown-fields: removed: unknown fields are dropped"),
        ({"more": {"additionalProperties": {"type": "string"}}}, "properties[more].additionalProperties.type: changed from integer to string"),
    ],
)  # fmt: skip
def test_lists_what_breaks(change: dict[str, Any], expected: str) -> None:
    assert expected in _said(_changed(**change))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"new": {"type": "string"}},
        {"size": {"maximum": 20}},
        {"size": {"format": "int64"}},
        {"size": {"type": "number", "format": ""}},
        {"mode": {"enum": ["a", "b", "c"]}},
        {"name": {"maxLength": 20, "description": "x"}},
        {"name": {"nullable": True}},
        {"new": {"type": "string", "default": "x"}, "required": ["new"]},
    ],
)
def test_says_nothing_of_what_only_widens(change: dict[str, Any]) -> None:
    assert [text for text in _said(_changed(**change)) if "default" not in text] == []


def test_versions_names_and_subresources_count_too() -> None:
    gone = deepcopy(_OLD)
    gone["spec"]["versions"][0]["name"] = "v2"
    assert str(compare(_OLD, gone)[0]) == "spec.versions[v1]: version removed"
    renamed = deepcopy(_OLD)
    renamed["spec"]["names"]["kind"] = "Other"
    assert [change.harm for change in compare(_OLD, renamed)] == ["stored objects"]
    plain = deepcopy(_OLD)
    del plain["spec"]["versions"][0]["subresources"]
    assert [change.path for change in compare(_OLD, plain)] == ["spec.versions[v1].subresources.status"]
    unserved = deepcopy(_OLD)
    unserved["spec"]["versions"][0]["served"] = False
    assert [change.harm for change in compare(_OLD, unserved)] == ["readers"]


def test_a_field_that_was_required_and_loses_its_default_breaks_what_is_stored() -> None:
    old = _changed(required=["set"])
    new = deepcopy(old)
    del new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["set"][
        "default"
    ]
    said = {change.harm: change.message for change in compare(old, new)}
    assert said["stored objects"] == "set is required and has lost its default"
    assert compare(old, old) == []


def test_what_clients_select_scale_and_call_the_kind_by_counts_too() -> None:
    old = deepcopy(_OLD)
    old["spec"]["names"]["shortNames"] = ["th"]
    old["spec"]["versions"][0].update(
        selectableFields=[{"jsonPath": ".spec.mode"}],
        subresources={"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
    )
    new = deepcopy(old)
    new["spec"]["names"]["shortNames"] = ["thing"]
    new["spec"]["versions"][0]["selectableFields"] = []
    new["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = ".spec.replicas"
    assert [(str(change), change.harm) for change in compare(old, new)] == [
        ("spec.names.shortNames: th removed", "readers"),
        ("spec.versions[v1].selectableFields: .spec.mode removed: nobody can select by it", "readers"),
        (
            "spec.versions[v1].subresources.scale.specReplicasPath: changed from .spec.size to .spec.replicas",
            "writers",
        ),
    ]


def test_versions_that_are_no_longer_converted_are_read_cut_short() -> None:
    old = deepcopy(_OLD)
    old["spec"]["versions"].append({"name": "v2", "served": True, "schema": {}})
    new = deepcopy(old)
    old["spec"]["conversion"] = {"strategy": "Webhook"}
    said = (
        "spec.conversion.strategy: changed from Webhook to None: versions are read with the fields they share"
    )
    assert [str(change) for change in compare(old, new)] == [said]
    assert compare(new, old) == []


def test_a_version_that_objects_are_stored_in_may_not_go() -> None:
    old = {**_OLD, "status": {"storedVersions": ["v1", "v0"]}}
    assert "objects may still be stored as v0: migrate them first" in str(compare(old, _OLD)[0])
