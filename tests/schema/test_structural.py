"""Structural schemas and CRDs from Python types."""

from typing import Annotated, Any

import pytest
import schema_answers
import schema_kinds as kinds

from kubewright.api import DeclarationError, Field, Model, Object, to_wire
from kubewright.schema import check_crd, crd, crd_warnings, structural, validate, version_priority

_SPEC: dict[str, Any] = structural(kinds.EverythingSpec)["properties"]


@pytest.mark.parametrize("name", kinds.CRDS)
def test_builds_the_crds_that_the_real_server_accepted(name: str) -> None:
    assert schema_answers.answers("kinds")[name] == {"accepted": True, "warnings": []}
    assert check_crd(kinds.CRDS[name]) == []


def test_warns_about_unknown_formats() -> None:
    seen = schema_answers.answers("kinds")["odd"]
    assert seen["accepted"]
    warnings = [f'299 - "{text}"' for text in map(_escaped, crd_warnings(kinds.ODD))]
    assert sorted(warnings) == sorted(seen["warnings"])
    assert crd_warnings(kinds.ODD, old=kinds.ODD) == []


def _escaped(text: str) -> str:
    return text.replace('"', '\\"')


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("least", {"description": "The least.", "exclusiveMaximum": True, "format": "int32", "maximum": 100, "minimum": 0, "type": "integer"}),
        ("most", {"default": 10, "exclusiveMinimum": True, "format": "int32", "maximum": 100, "minimum": 0, "type": "integer"}),
        ("big", {"format": "int64", "multipleOf": 2, "type": "integer"}),
        ("ratio", {"default": 0.5, "format": "double", "maximum": 1, "minimum": 0, "type": "number"}),
        ("flag", {"type": "boolean"}),
        ("on", {"default": True, "type": "boolean"}),
        ("mail", {"format": "email", "type": "string"}),
        ("secret", {"format": "byte", "type": "string"}),
        ("mode", {"default": "Safe", "enum": ["Fast", "Safe"], "type": "string"}),
        ("level", {"default": 1, "enum": [1, 2, 3], "type": "integer"}),
        ("when", {"format": "date-time", "type": "string"}),
        ("day", {"format": "date", "type": "string"}),
        ("ident", {"format": "uuid", "type": "string"}),
        ("surge", {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": "25%", "x-kubernetes-int-or-string": True}),
        ("names", {"items": {"maxLength": 10, "type": "string"}, "maxItems": 5, "type": "array", "x-kubernetes-list-type": "set"}),
        ("matrix", {"items": {"items": {"format": "int32", "type": "integer"}, "type": "array"}, "type": "array"}),
        ("labels", {"additionalProperties": {"type": "string"}, "type": "object"}),
        ("extra", {"x-kubernetes-preserve-unknown-fields": True}),
        ("passphrase", {"type": "string", "format": "password"}),
        ("fixed", {"type": "string", "x-kubernetes-validations": [{"message": "fixed is immutable", "rule": "self == oldSelf"}]}),
        ("maybe", {"nullable": True, "type": "string"}),
        ("Capital", {"type": "string"}),
    ],
)  # fmt: skip
def test_field_adds_keywords(field: str, expected: dict[str, Any]) -> None:
    assert _SPEC[field] == expected


def test_built_in_types_have_their_fields_without_bounds() -> None:
    spec = structural(kinds.PodsSpec)["properties"]
    pod = spec["template"]["properties"]["spec"]["properties"]
    assert pod["terminationGracePeriodSeconds"] == {"type": "integer"}
    assert "labels" in spec["template"]["properties"]["metadata"]["properties"]
    assert spec["whole"] == {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }


def test_adds_list_map_keys_and_defaults_of_items() -> None:
    assert _SPEC["ports"]["x-kubernetes-list-map-keys"] == ["port", "protocol"]
    assert _SPEC["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"
    assert _SPEC["ports"]["items"]["required"] == ["port"]
    assert _SPEC["port"]["default"] == {"port": 80, "protocol": "TCP"}


def test_docstrings_become_descriptions() -> None:
    root = structural(kinds.Everything)
    assert root["description"] == "A kind that has everything."
    assert root["properties"]["spec"]["description"] == "Every type that a spec can hold."
    assert _SPEC["port"]["description"] == "A port and its protocol."


def test_adds_the_rules_of_a_model_to_its_schema() -> None:
    rules = structural(kinds.EverythingSpec)["x-kubernetes-validations"]
    assert rules == [
        {"fieldPath": ".least", "message": "least is above most", "rule": "self.least <= self.most"}
    ]


def test_a_status_has_no_defaults_because_no_controller_wrote_them() -> None:
    status = structural(kinds.Everything)["properties"]["status"]
    assert "default" not in status["properties"]["phase"]


def test_the_crd_has_versions_and_subresources() -> None:
    spec = kinds.CRDS["everything"]["spec"]
    version = spec["versions"][0]
    assert kinds.CRDS["everything"]["metadata"] == {"name": "everythings.ex.io"}
    assert spec["names"]["shortNames"] == ["ev"]
    assert version["subresources"] == {
        "scale": {
            "labelSelectorPath": ".status.selector",
            "specReplicasPath": ".spec.most",
            "statusReplicasPath": ".status.replicas",
        },
        "status": {},
    }
    assert version["selectableFields"] == [{"jsonPath": ".spec.text"}]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Mode", "Most", "Age"]


def test_several_versions_are_ordered_as_the_server_prefers_them() -> None:
    versions = kinds.CRDS["foo"]["spec"]["versions"]
    assert [(version["name"], version["storage"]) for version in versions] == [
        ("v1", True),
        ("v1alpha1", False),
    ]
    assert versions[1]["deprecated"] is True
    assert versions[1]["deprecationWarning"] == "use v1"
    listed = ["v1alpha1", "foo", "v2", "v1beta1", "v10", "bar", "v1beta2", "v1"]
    ordered = sorted(listed, key=version_priority, reverse=True)
    assert ordered == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]


def test_the_schema_of_a_kind_checks_its_objects() -> None:
    errors = validate(structural(kinds.MyOwnShell), {"spec": {"size": -1}})
    assert [str(error) for error in errors] == [
        "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"
    ]


class Tree(Model):
    name: str = ""
    children: "list[Tree]" = []


class Recursive(Model):
    tree: Tree = Tree()


class BoundOnList(Model):
    sizes: Annotated[list[int], Field(ge=0)] = []


class WrongPattern(Model):
    name: Annotated[str, Field(pattern="(?=a)")] = ""


class KeylessMap(Model):
    ports: Annotated[list[kinds.Port], Field(list_type="map")] = []


class UnknownKey(Model):
    ports: Annotated[list[kinds.Port], Field(list_type="map", list_keys=["nope"])] = []


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (
            Recursive,
            "Tree.children[]: Tree contains itself, but a structural schema cannot be recursive: use Any",
        ),
        (BoundOnList, "BoundOnList.sizes: ge= is for a number, not for a list: put it on the items"),
        (WrongPattern, "WrongPattern.name: pattern='(?=a)': error parsing regexp"),
        (KeylessMap, 'KeylessMap.ports: a list of type "map" needs list_keys='),
        (UnknownKey, "UnknownKey.ports: list_keys: the items have no field 'nope'"),
    ],
)
def test_rejects_types_without_a_structural_schema(cls: type[Model], text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        structural(cls)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_versions_must_agree_and_one_must_be_stored() -> None:
    with pytest.raises(DeclarationError, match="namespaced differs"):
        crd(kinds.Foo, kinds.OldFoo)

    class Other(Object, kind="Foo", group="ex.io", version="v2", plural="foos", scope="Cluster", stored=True):
        test_num: int = 0

    with pytest.raises(DeclarationError, match="exactly one version must be stored"):
        crd(kinds.Foo, Other)
    with pytest.raises(DeclarationError, match="needs at least one class"):
        crd()


def test_a_definition_carries_the_labels_and_annotations_of_its_versions() -> None:
    class Old(Object, kind="Tag", group="ex.io", version="v1", crd_labels={"app": "old", "team": "a"}): ...

    class New(
        Object,
        kind="Tag",
        group="ex.io",
        version="v2",
        stored=True,
        crd_labels={"app": "new"},
        crd_annotations={"example.com/docs": "https://example.com/a b"},
    ): ...

    assert crd(New, Old)["metadata"] == {
        "name": "tags.ex.io",
        "labels": {"app": "new", "team": "a"},
        "annotations": {"example.com/docs": "https://example.com/a b"},
    }
    with pytest.raises(DeclarationError, match=r"Wrong: crd_labels: 'a b': a valid label"):

        class Wrong(Object, group="ex.io", version="v1", crd_labels={"app": "a b"}): ...  # pyright: ignore[reportUnusedClass] (rejected)


def test_a_default_that_only_the_server_fills_in_is_not_in_python() -> None:
    class Port(Model):
        protocol: Annotated[str | None, Field(default="TCP")] = None
        name: Annotated[str | None, Field(default="")] = None

    assert structural(Port)["properties"] == {
        "protocol": {"type": "string", "default": "TCP"},
        "name": {"type": "string", "default": ""},
    }
    assert to_wire(Port()) == {}


def test_two_defaults_of_one_field_are_an_error() -> None:
    class Port(Model):
        protocol: Annotated[str, Field(default="TCP")] = "UDP"

    with pytest.raises(DeclarationError, match=r"Port\.protocol: Field\(default=\.\.\.\) and a Python"):
        structural(Port)
