"""Kinds that come with a file: found in its CRDs, and what their schemas say of objects beside them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import GroupVersionKind
from kubewright.cli.documents import defined_kinds

JsonObject = dict[str, Any]
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["watts"],
            "properties": {"watts": {"type": "integer", "default": 5}, "room": {"type": "string"}},
        }
    },
}


def definition(**spec: Any) -> JsonObject:
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}},
        {"name": "v0", "served": False, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}},
    ]
    names = {"kind": "Lamp", "plural": "lamps"}
    whole = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions} | spec
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": whole}


def lamp(spec: JsonObject) -> JsonObject:
    return {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "desk"}, "spec": spec}


GVK = GroupVersionKind("example.com", "v1", "Lamp")


def test_versions_that_are_served_are_found() -> None:
    assert set(defined_kinds([definition(), lamp({})])) == {GVK}
    assert defined_kinds([definition()])[GVK].kind.namespaced
    assert not defined_kinds([definition(scope="Cluster")])[GVK].kind.namespaced


@pytest.mark.parametrize(
    ("spec", "validation_errors"),
    [
        ({}, []),
        ({"watts": 3, "room": "hall"}, []),
        ({"colour": "red"}, ['unknown field "spec.colour"']),
        (
            {"watts": "many"},
            ['spec.watts: Invalid value: "string": spec.watts in body must be of type integer'],
        ),
    ],
)
def test_an_object_is_defaulted_before_it_is_validated(
    spec: JsonObject, validation_errors: list[str]
) -> None:
    document = lamp(spec)
    found = defined_kinds([definition()])[GVK].validation_errors(document)
    assert [text.split(': "string"')[0] for text in found] == [
        text.split(': "string"')[0] for text in validation_errors
    ]
    assert document == lamp(spec)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["group", "names", "versions", "scope", "kind"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    )
)
def test_an_invalid_definition_in_the_documents_is_ignored(spec: Any) -> None:
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    assert not defined_kinds([document])
