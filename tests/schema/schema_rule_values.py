"""Values and updates validated by CEL rules; `observed/` holds the answers of a real API server."""

from typing import Any

from schema_documents import INTEGER, STRING, JsonObject, obj, spec_of, with_rules
from schema_expressions import EXPRESSIONS, SPEC
from schema_messages import TAKEN
from schema_rules import SELF

VALUES: dict[str, Any] = {
    "expressions": {
        "schema": spec_of(
            with_rules(
                SELF, *({"rule": text, "message": f"number {at}"} for at, text in enumerate(EXPRESSIONS))
            )
        ),
        "marker": "number 100",
        "specs": {"spec": SPEC},
    },
    "protobuf messages": {
        "schema": spec_of(
            with_rules(SELF, *({"rule": text, "message": f"number {at}"} for at, text in enumerate(TAKEN)))
        ),
        "marker": "number 100",
        "specs": {"spec": SPEC},
    },
    "messages": {
        "schema": obj(
            {
                "spec": with_rules(
                    obj(
                        {
                            "i": with_rules(
                                INTEGER, {"rule": "self > 0"}, {"rule": "self < 10", "message": " small "}
                            ),
                            "s": with_rules(
                                {"type": "string", "maxLength": 10},
                                {"rule": "self != 'bad'", "messageExpression": "'not ' + self"},
                                {"rule": "self != 'worse'", "messageExpression": "''", "message": "empty"},
                                {
                                    "rule": "self != 'newline'",
                                    "messageExpression": "'a\\nb'",
                                    "message": "no newline",
                                },
                                {
                                    "rule": "self != 'forbid'",
                                    "reason": "FieldValueForbidden",
                                    "message": "forbidden",
                                },
                                {
                                    "rule": "self != 'require'",
                                    "reason": "FieldValueRequired",
                                    "message": "required",
                                },
                                {
                                    "rule": "self != 'double'",
                                    "reason": "FieldValueDuplicate",
                                    "message": "double",
                                },
                                {"rule": "int(self) > 0 || self.matches('[a-z]')", "message": "number"},
                            ),
                            "l": with_rules(
                                {
                                    "type": "array",
                                    "maxItems": 5,
                                    "items": with_rules(
                                        {"type": "string", "maxLength": 5}, {"rule": "self != 'x'"}
                                    ),
                                },
                                {"rule": "self.size() < 3"},
                            ),
                            "m": with_rules(
                                obj(
                                    maxProperties=5,
                                    additionalProperties=with_rules(
                                        INTEGER, {"rule": "self != 3", "message": "three"}
                                    ),
                                ),
                                {"rule": "self.size() < 3", "fieldPath": "['a']"},
                            ),
                            "set": with_rules(
                                {
                                    "type": "array",
                                    "maxItems": 5,
                                    "items": {"type": "string", "maxLength": 5},
                                    "x-kubernetes-list-type": "set",
                                },
                                {"rule": "self == ['b', 'a']", "message": "sets have no order"},
                                {"rule": "(self + ['a', 'c']).size() == 3", "message": "sets join"},
                            ),
                            "obj": with_rules(
                                obj({"a": STRING}),
                                {
                                    "rule": "has(self.a)",
                                    "fieldPath": ".a",
                                    "message": "a please",
                                    "reason": "FieldValueRequired",
                                },
                            ),
                            "num": with_rules(
                                {"type": "number"},
                                {"rule": "self < 2.5"},
                                {"rule": "type(self) == double", "message": "double"},
                            ),
                            "bool": with_rules({"type": "boolean"}, {"rule": "self"}),
                        }
                    ),
                    {
                        "rule": "!has(self.i) || !has(self.s) || self.s != 'both'",
                        "fieldPath": ".s",
                        "message": "not both",
                    },
                ),
            },
            **{
                "x-kubernetes-validations": [
                    {
                        "rule": "self.metadata.name != 'a' || !has(self.spec.i) || self.spec.i != 7",
                        "message": "no seven",
                    },
                    {"rule": "self.kind == 'Thing' && self.apiVersion == 'ex.io/v1'"},
                ]
            },
        ),
        "marker": "sets have no order",
        "specs": {
            "good": {"i": 5, "s": "a"},
            "small": {"i": 0},
            "great": {"i": 12},
            "seven": {"i": 7},
            "bad": {"s": "bad"},
            "worse": {"s": "worse"},
            "newline": {"s": "newline"},
            "forbid": {"s": "forbid"},
            "require": {"s": "require"},
            "double": {"s": "double"},
            "both": {"i": 1, "s": "both"},
            "digits": {"s": "0"},
            "odd": {"s": "ABC"},
            "list": {"l": ["a", "x", "b"]},
            "map": {"m": {"a": 3, "b": 1, "c": 3}},
            "sets": {"set": ["a", "b"]},
            "sets differ": {"set": ["a", "c"]},
            "object": {"obj": {}},
            "number": {"num": 2.5},
            "integer": {"num": 3},
            "whole": {"num": 2},
            "bool": {"bool": False},
            "wrong type": {"i": "x", "s": "bad"},
            "too long": {"s": "aaaaaaaaaaaaaaaaaaaaa", "i": 0},
            "null": {"i": None, "s": None},
        },
    },
    "costly": {
        "schema": spec_of(
            with_rules(
                obj({"l": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}}),
                {"rule": "self.l.all(x, self.l.all(y, x == y || x != y))", "message": "costly"},
            )
        ),
        "marker": "costly",
        "specs": {"few": {"l": list(range(10))}, "many": {"l": list(range(900))}},
    },
}

_TRANSITIONS: JsonObject = obj(
    {
        "imm": with_rules(
            {"type": "string", "maxLength": 10}, {"rule": "self == oldSelf", "message": "imm is immutable"}
        ),
        "grow": with_rules(INTEGER, {"rule": "self >= oldSelf", "message": "only up"}),
        "opt": with_rules(
            INTEGER,
            {"rule": "oldSelf.orValue(1) <= self", "optionalOldSelf": True, "message": "at least one"},
        ),
        "byname": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": with_rules(
                obj({"k": {"type": "string", "maxLength": 5}, "v": INTEGER}, required=["k"]),
                {"rule": "self.v >= oldSelf.v", "message": "only up here"},
            ),
        },
        "m": obj(
            maxProperties=5,
            additionalProperties=with_rules(INTEGER, {"rule": "self >= oldSelf", "message": "map up"}),
        ),
        "rat": with_rules(INTEGER, {"rule": "self < 10", "message": "below ten"}),
        "ratobj": with_rules(
            obj({"a": INTEGER, "b": INTEGER}), {"rule": "self.a < 10", "message": "a below ten"}
        ),
        "other": INTEGER,
    }
)
_LAX: JsonObject = {
    **_TRANSITIONS,
    "properties": {
        name: {key: value for key, value in sub.items() if key != "x-kubernetes-validations"}
        for name, sub in _TRANSITIONS["properties"].items()
    },
}
_BEFORE: JsonObject = {
    "imm": "a",
    "grow": 5,
    "opt": 5,
    "byname": [{"k": "x", "v": 1}, {"k": "y", "v": 2}],
    "m": {"a": 1},
    "rat": 50,
    "ratobj": {"a": 50, "b": 1},
    "other": 1,
}
UPDATES: dict[str, Any] = {
    "transitions": {
        "old": spec_of(_LAX),
        "new": spec_of(_TRANSITIONS),
        "before": _BEFORE,
        "markers": ("byname", "only up here"),
        "specs": {
            "nothing": _BEFORE,
            "other": {**_BEFORE, "other": 2},
            "imm changed": {**_BEFORE, "imm": "b"},
            "imm removed": {key: value for key, value in _BEFORE.items() if key != "imm"},
            "shrunk": {**_BEFORE, "grow": 4, "opt": 4},
            "grown": {**_BEFORE, "grow": 6, "opt": 6},
            "elements swapped": {**_BEFORE, "byname": [{"k": "y", "v": 2}, {"k": "x", "v": 0}]},
            "element added": {**_BEFORE, "byname": [*_BEFORE["byname"], {"k": "z", "v": 0}]},
            "element without v": {**_BEFORE, "byname": [{"k": "x"}, {"k": "y", "v": 2}]},
            "map shrunk": {**_BEFORE, "m": {"a": 0, "b": 0}},
            "ratchet kept": {**_BEFORE, "other": 3},
            "ratchet changed": {**_BEFORE, "rat": 51},
            "ratchet inside": {**_BEFORE, "ratobj": {"a": 50, "b": 2}},
        },
    }
}
