"""Exact messages of a real API server for one large kind."""

from copy import deepcopy
from typing import Any

import pytest

from kubewright.api import invalid_message
from kubewright.schema import apply_defaults, check_crd, compile_schema, prune, validate

JsonObject = dict[str, Any]

SPEC: JsonObject = {
    "type": "object",
    "required": ["min", "max"],
    "properties": {
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "dt": {"type": "string", "format": "date-time"},
        "max": {"type": "integer", "maximum": 100},
        "min": {"type": "integer", "minimum": 0},
        "pat": {"type": "string", "pattern": "^a+$"},
        "ios": {"x-kubernetes-int-or-string": True},
        "names": {
            "type": "array",
            "items": {"type": "string", "maxLength": 10},
            "maxItems": 5,
            "x-kubernetes-list-type": "set",
        },
        "ports": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "proto": {"type": "string", "default": "TCP"},
                    "x": {"type": "string"},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
        },
        "nul": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "emb": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "imm": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "imm is immutable"}],
        },
        "sel": {"type": "string"},
    },
    "x-kubernetes-validations": [
        {
            "rule": "self.min <= self.max",
            "message": "min must be <= max",
            "reason": "FieldValueInvalid",
            "fieldPath": ".min",
        },
        {
            "rule": "!has(self.names) || self.names.all(n, n.startsWith('a'))",
            "messageExpression": "'bad names: ' + self.names.join(',')",
        },
    ],
}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": SPEC,
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "phase": {"type": "string"},
            },
        },
    },
}
NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def foo(spec: JsonObject | None) -> JsonObject:
    whole: JsonObject = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "b"}}
    return whole if spec is None else {**whole, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {
                "min": "x",
                "max": 200,
                "mode": "Z",
                "names": ["a", "a", "bbbbbbbbbbbbbbbbbb"],
                "ports": [{"port": 1}, {"port": 1}],
                "ios": 1.5,
                "emb": {},
                "pat": "b",
                "dt": "nope",
            },
            (
                'Foo.ex.io "b" is invalid: [spec.mode: Unsupported value: "Z": supported values: "A", "B", '
                'spec.dt: Invalid value: "nope": spec.dt in body must be of type date-time: "nope", '
                "spec.max: Invalid value: 200: spec.max in body should be less than or equal to 100, "
                'spec.min: Invalid value: "string": spec.min in body must be of type integer: "string", '
                "spec.pat: Invalid value: \"b\": spec.pat in body should match '^a+$', "
                'spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number", '
                "spec.names[2]: Too long: may not be more than 10 bytes, spec.emb.apiVersion: Required value, "
                'spec.emb.kind: Required value, spec.names[1]: Duplicate value: "a", '
                f'spec.ports[1]: Duplicate value: {{"port":1,"proto":"TCP"}}, {NOT_CHECKED}]'
            ),
        ),
        (
            {},
            f'Foo.ex.io "b" is invalid: [spec.min: Required value, spec.max: Required value, {NOT_CHECKED}]',
        ),
        (
            {"min": 5, "max": 2, "names": ["b"]},
            (
                'Foo.ex.io "b" is invalid: [spec.min: Invalid value: min must be <= max, '
                "spec: Invalid value: bad names: b]"
            ),
        ),
    ],
)
def test_rejects_a_create_with_this_message(spec: JsonObject, message: str) -> None:
    value = foo(deepcopy(spec))
    apply_defaults(SCHEMA, value)
    assert invalid_message("Foo.ex.io", "b", validate(SCHEMA, value)) == message


def test_accepts_an_object_without_a_spec() -> None:
    assert validate(SCHEMA, foo(None)) == []


def test_prunes_unknown_fields_keeps_nullable_nulls_and_adds_defaults() -> None:
    value = foo(
        {
            "min": 1,
            "max": 2,
            "unk": 1,
            "ports": [{"port": 1}],
            "nul": None,
            "free": {"q": 1},
            "ios": "5",
            "mode": None,
        }
    )
    assert prune(SCHEMA, value) == ["spec.unk"]
    apply_defaults(SCHEMA, value)
    assert value["spec"] == {
        "free": {"q": 1},
        "ios": "5",
        "max": 2,
        "min": 1,
        "mode": "A",
        "nul": None,
        "ports": [{"port": 1, "proto": "TCP"}],
    }


def test_an_immutable_field_can_be_removed_but_not_changed() -> None:
    old = foo({"min": 1, "max": 2, "imm": "1"})
    changed = validate(SCHEMA, foo({"min": 1, "max": 2, "imm": "2"}), old=old)
    assert invalid_message("Foo.ex.io", "c", changed) == (
        'Foo.ex.io "c" is invalid: spec.imm: Invalid value: "2": imm is immutable'
    )
    assert validate(SCHEMA, foo({"min": 1, "max": 2}), old=old) == []


def test_a_status_update_validates_the_status_and_all_rules() -> None:
    old = foo({"min": 1, "max": 2})
    new = {**foo({"min": 3, "max": 2}), "status": {"replicas": "x"}}
    assert [str(error) for error in compile_schema(SCHEMA).validate_status(new, old)] == [
        'status.replicas: Invalid value: "string": replicas in body must be of type integer: "string"',
        NOT_CHECKED,
    ]
    new["status"]["replicas"] = 1
    assert [str(error) for error in compile_schema(SCHEMA).validate_status(new, old)] == [
        "spec.min: Invalid value: min must be <= max"
    ]


def test_the_crd_is_valid() -> None:
    definition: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
            ],
        },
    }
    assert check_crd(definition) == []
