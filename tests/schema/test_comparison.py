"""Breaking changes between two versions of a CRD."""

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


def _messages(new: dict[str, Any]) -> list[str]:
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
        ({"tags": {"x-kubernetes-list-type": "atomic"}}, "properties[tags].x-kubernetes-list-type: changed from set to atomic: server-side apply merges differently"),
        ({"name": {"default": "x"}}, "properties[name].default: default x added: objects without the field are now read with another value"),
        ({"name": {"x-kubernetes-validations": [{"rule": "self != ''"}]}}, "properties[name].x-kubernetes-validations[0]: rule added: self != ''"),
        ({"set": {"default": "y"}}, "properties[set].default: changed from x: objects without the field are now read with another value"),
        ({"set": {"default": None}}, "properties[set].default: default x removed: objects without the field are now read without a value"),
        ({"set": {"default": None}, "required": ["set"]}, "required: set is now required and has no default"),
        ({"inner": {"x-kubernetes-embedded-resource": True}}, "properties[inner].x-kubernetes-embedded-resource: must now be an object with apiVersion, kind and metadata"),
        ({"inner": {"x-kubernetes-preserve-unknown-fields": None}}, "properties[inner].x-kubernetes-preserve-unknown-fields: removed: unknown fields are dropped"),
        ({"more": {"additionalProperties": {"type": "string"}}}, "properties[more].additionalProperties.type: changed from integer to string"),
    ],
)  # fmt: skip
def test_reports_breaking_changes(change: dict[str, Any], expected: str) -> None:
    assert expected in _messages(_changed(**change))


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
def test_reports_nothing_for_changes_that_only_widen(change: dict[str, Any]) -> None:
    assert [text for text in _messages(_changed(**change)) if "default" not in text] == []


def test_reports_changes_of_versions_names_and_subresources() -> None:
    gone = deepcopy(_OLD)
    gone["spec"]["versions"][0]["name"] = "v2"
    assert str(compare(_OLD, gone)[0]) == "spec.versions[v1]: version removed"
    renamed = deepcopy(_OLD)
    renamed["spec"]["names"]["kind"] = "Other"
    assert [change.affected for change in compare(_OLD, renamed)] == ["stored objects"]
    plain = deepcopy(_OLD)
    del plain["spec"]["versions"][0]["subresources"]
    assert [change.path for change in compare(_OLD, plain)] == ["spec.versions[v1].subresources.status"]
    unserved = deepcopy(_OLD)
    unserved["spec"]["versions"][0]["served"] = False
    assert [change.affected for change in compare(_OLD, unserved)] == ["readers"]


def test_removing_the_default_of_a_required_field_breaks_stored_objects() -> None:
    old = _changed(required=["set"])
    new = deepcopy(old)
    del new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["set"][
        "default"
    ]
    messages = {change.affected: change.message for change in compare(old, new)}
    assert messages["stored objects"] == "set is required and no longer has a default"
    assert compare(old, old) == []


def test_reports_changes_of_selectable_fields_scale_and_short_names() -> None:
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
    assert [(str(change), change.affected) for change in compare(old, new)] == [
        ("spec.names.shortNames: th removed", "readers"),
        (
            "spec.versions[v1].selectableFields: .spec.mode removed: field selectors on it no longer work",
            "readers",
        ),
        (
            "spec.versions[v1].subresources.scale.specReplicasPath: changed from .spec.size to .spec.replicas",
            "writers",
        ),
    ]


def test_reports_the_removal_of_a_conversion_webhook() -> None:
    old = deepcopy(_OLD)
    old["spec"]["versions"].append({"name": "v2", "served": True, "schema": {}})
    new = deepcopy(old)
    old["spec"]["conversion"] = {"strategy": "Webhook"}
    messages = "spec.conversion.strategy: changed from Webhook to None: a version is read with only the fields it shares with the stored one"
    assert [str(change) for change in compare(old, new)] == [messages]
    assert compare(new, old) == []


def test_reports_the_removal_of_a_version_in_stored_versions() -> None:
    old = {**_OLD, "status": {"storedVersions": ["v1", "v0"]}}
    assert "objects may still be stored as v0: migrate them first" in str(compare(old, _OLD)[0])
