"""Documents and values whose fate on a real API server is on record in `observed/`; `record.py` records it again."""

from copy import deepcopy
from typing import Any

Wire = dict[str, Any]

STRING: Wire = {"type": "string"}
INTEGER: Wire = {"type": "integer"}


def obj(properties: Wire | None = None, **more: Any) -> Wire:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def definition(schema: Wire | None, *, plural: str = "things", **spec: Any) -> Wire:
    version: Wire = {"name": "v1", "served": True, "storage": True}
    if schema is not None:
        version["schema"] = {"openAPIV3Schema": schema}
    version.update(spec.pop("version", {}))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": spec.pop("name", f"{plural}.ex.io"), **spec.pop("metadata", {})},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Thing", **spec.pop("names", {})},
            "versions": [version, *spec.pop("versions", [])],
            **spec,
        },
    }


def of_spec(spec: Wire, **more: Any) -> Wire:
    return definition(obj({"spec": spec}), **more)


def field(schema: Wire, **more: Any) -> Wire:
    return of_spec(obj({"x": schema}, **more))


def rule(text: str, schema: Wire | None = None, **more: Any) -> Wire:
    return of_spec({**(schema or obj({"x": INTEGER})), "x-kubernetes-validations": [{"rule": text, **more}]})


STATUS_VERSION: Wire = {"subresources": {"status": {}}}
LIST_MAP: Wire = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}

DEFINITIONS: dict[str, Wire] = {
    "plain": field(STRING),
    "no type at the root": definition({"properties": {"spec": obj()}}),
    "root is no object": definition(STRING),
    "no type of a field": field({}),
    "no type of items": field({"type": "array", "items": {}}),
    "no items": field({"type": "array"}),
    "no schema": definition(None),
    "additionalProperties at the root": definition(obj(additionalProperties=STRING)),
    "properties and additionalProperties": of_spec(obj({"x": STRING}, additionalProperties=STRING)),
    "unknown type": field({"type": "text"}),
    "type null": field({"type": "null"}),
    "ref": field({"$ref": "#/definitions/x"}),
    "dollar schema": field({"type": "string", "$schema": "http://x"}),
    "unique items": field({"type": "array", "items": STRING, "uniqueItems": True}),
    "nullable root": definition(obj(nullable=True)),
    "bad pattern": field({"type": "string", "pattern": "a(?=b)"}),
    "backreference": field({"type": "string", "pattern": r"(a)\1"}),
    "unclosed group": field({"type": "string", "pattern": "(a"}),
    "unclosed class": field({"type": "string", "pattern": "x[a"}),
    "nested repetition": field({"type": "string", "pattern": "a**"}),
    "nothing to repeat": field({"type": "string", "pattern": "*a"}),
    "too many repetitions": field({"type": "string", "pattern": "a{1001}"}),
    "multiplied repetitions": field({"type": "string", "pattern": "(a{100}){100}"}),
    "bad escape": field({"type": "string", "pattern": r"\y"}),
    "bad range": field({"type": "string", "pattern": "[z-a]"}),
    "bad class name": field({"type": "string", "pattern": "[[:foo:]]"}),
    "trailing backslash": field({"type": "string", "pattern": "a\\"}),
    "bad unicode class": field({"type": "string", "pattern": r"\p{Nope}"}),
    "unexpected parenthesis": field({"type": "string", "pattern": "a)"}),
    "bad flag": field({"type": "string", "pattern": "(?z)a"}),
    "type in anyOf": field({"type": "string", "anyOf": [{"type": "string"}]}),
    "int or string in anyOf": field(
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    ),
    "int or string in allOf": field(
        {
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}],
        }
    ),
    "int or string that preserves": field(
        {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "default and description in allOf": field(
        {"type": "string", "allOf": [{"default": "a", "description": "b"}]}
    ),
    "logic about an unknown field": of_spec(
        obj({"x": STRING}, anyOf=[{"properties": {"y": {"minLength": 1}}}])
    ),
    "logic about metadata": definition(
        obj({"metadata": obj()}, anyOf=[{"properties": {"metadata": {"minProperties": 1}}}])
    ),
    "nested items in logic": field(
        {"type": "array", "items": STRING, "not": {"items": {"minLength": 1, "type": "string"}}}
    ),
    "metadata with labels": definition(obj({"metadata": obj({"labels": obj()})})),
    "metadata with a name": definition(obj({"metadata": obj({"name": {"type": "string", "maxLength": 5}})})),
    "metadata with a description": definition(obj({"metadata": obj(description="x")})),
    "metadata is a string": definition(obj({"metadata": STRING})),
    "kind is an integer": definition(obj({"kind": INTEGER})),
    "embedded without properties": field(obj(**{"x-kubernetes-embedded-resource": True})),
    "embedded without type": field({"x-kubernetes-embedded-resource": True}),
    "embedded string": field({"type": "string", "x-kubernetes-embedded-resource": True}),
    "embedded map": field(
        obj(
            additionalProperties=STRING,
            **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        )
    ),
    "preserve false": field({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "set of objects": field({"type": "array", "items": obj({"k": STRING}), "x-kubernetes-list-type": "set"}),
    "set of sets": field(
        {
            "type": "array",
            "items": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
            "x-kubernetes-list-type": "set",
        }
    ),
    "set of nullables": field(
        {"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"}
    ),
    "list type of a string": field({"type": "string", "x-kubernetes-list-type": "set"}),
    "unknown list type": field({"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"}),
    "map type of a string": field({"type": "string", "x-kubernetes-map-type": "atomic"}),
    "unknown map type": field(obj(**{"x-kubernetes-map-type": "loose"})),
    "keys without type": field(
        {"type": "array", "items": obj({"k": STRING}), "x-kubernetes-list-map-keys": ["k"]}
    ),
    "map without keys": field(
        {"type": "array", "items": obj({"k": STRING}), "x-kubernetes-list-type": "map"}
    ),
    "map with optional key": field({"type": "array", "items": obj({"k": STRING}), **LIST_MAP}),
    "map with nullable key": field(
        {
            "type": "array",
            "items": obj({"k": {"type": "string", "nullable": True, "default": "a"}}),
            **LIST_MAP,
        }
    ),
    "map with unknown key": field({"type": "array", "items": obj({"l": STRING}), **LIST_MAP}),
    "map with object key": field({"type": "array", "items": obj({"k": obj()}, required=["k"]), **LIST_MAP}),
    "map with double key": field(
        {
            "type": "array",
            "items": obj({"k": STRING}, required=["k"]),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k", "k"],
        }
    ),
    "map of strings": field({"type": "array", "items": STRING, **LIST_MAP}),
    "map without items": field({"type": "array", **LIST_MAP}),
    "default of wrong type": field({"type": "integer", "default": "a"}),
    "default out of bounds": field({"type": "integer", "maximum": 3, "default": 5}),
    "default not in enum": field({"type": "string", "enum": ["a", "b"], "default": "c"}),
    "default with unknown fields": field(obj({"a": STRING}, default={"a": "x", "b": 1})),
    "default without required": field(obj({"a": STRING}, required=["a"], default={})),
    "nested default too long": of_spec(
        obj({"x": obj({"y": {"type": "string", "maxLength": 1, "default": "abc"}})})
    ),
    "default of metadata": definition(obj({"metadata": obj(default={})})),
    "status subresource with anyOf at the root": definition(
        obj({"spec": obj({"x": STRING})}, anyOf=[{"required": ["spec"]}]), version=STATUS_VERSION
    ),
    "wrong name": definition(obj(), name="other.ex.io"),
    "group without a dot": definition(obj(), group="ex", name="things.ex"),
    "bad group": definition(obj(), group="Ex.io", name="things.ex.io"),
    "bad scope": definition(obj(), scope="Everywhere"),
    "bad version": definition(obj(), version={"name": "V1"}),
    "two versions of one name": definition(
        obj(),
        versions=[{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": obj()}}],
    ),
    "nothing stored": definition(obj(), version={"storage": False}),
    "two stored": definition(
        obj(),
        versions=[{"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": obj()}}],
    ),
    "two schemas, one wrong": definition(
        obj(),
        versions=[
            {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": obj({"spec": {}})}}
        ],
    ),
    "bad plural": definition(obj(), plural="Things"),
    "no kind": definition(obj(), names={"kind": ""}),
    "bad kind": definition(obj(), names={"kind": "No Kind"}),
    "bad short name": definition(obj(), names={"shortNames": ["A"]}),
    "bad category": definition(obj(), names={"categories": ["A.b"]}),
    "kind is list kind": definition(obj(), names={"listKind": "Thing"}),
    "column without type": definition(
        obj(), version={"additionalPrinterColumns": [{"name": "a", "type": "", "jsonPath": ".x"}]}
    ),
    "column with bad type": definition(
        obj(), version={"additionalPrinterColumns": [{"name": "a", "type": "text", "jsonPath": ".x"}]}
    ),
    "column with bad format and path": definition(
        obj(),
        version={
            "additionalPrinterColumns": [{"name": "", "type": "string", "format": "x", "jsonPath": "spec.x"}]
        },
    ),
    "scale without paths": definition(
        obj(), version={"subresources": {"scale": {"specReplicasPath": "", "statusReplicasPath": ""}}}
    ),
    "scale outside": definition(
        obj(),
        version={
            "subresources": {
                "scale": {
                    "specReplicasPath": ".status.x",
                    "statusReplicasPath": "spec.x",
                    "labelSelectorPath": ".metadata.x",
                }
            }
        },
    ),
    "deprecation without deprecated": definition(obj(), version={"deprecationWarning": "x"}),
    "deprecation with a newline": definition(
        obj(), version={"deprecated": True, "deprecationWarning": "x\ny"}
    ),
    "selectable metadata": definition(
        obj({"metadata": obj({"name": STRING})}),
        version={"selectableFields": [{"jsonPath": ".metadata.name"}]},
    ),
    "selectable unknown": definition(
        obj({"spec": obj({"x": STRING})}), version={"selectableFields": [{"jsonPath": ".spec.y"}]}
    ),
    "selectable object": definition(
        obj({"spec": obj({"x": STRING})}), version={"selectableFields": [{"jsonPath": ".spec"}]}
    ),
    "selectable in brackets": definition(
        obj({"spec": obj({"x": STRING})}), version={"selectableFields": [{"jsonPath": ".spec['x']"}]}
    ),
    "selectable twice": definition(
        obj({"spec": obj({"x": STRING})}),
        version={"selectableFields": [{"jsonPath": ".spec.x"}, {"jsonPath": ".spec.x"}]},
    ),
    "webhook without client": definition(obj(), conversion={"strategy": "Webhook"}),
    "webhook without versions": definition(
        obj(),
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "https://x/y"}, "conversionReviewVersions": []},
        },
    ),
    "webhook by http": definition(
        obj(),
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "http://u@x/y?a#b"}, "conversionReviewVersions": ["v9", "V"]},
        },
    ),
    "webhook service without names": definition(
        obj(),
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": "a", "namespace": "", "path": "x//y", "port": 70000}},
                "conversionReviewVersions": ["v1"],
            },
        },
    ),
    "no conversion with webhook": definition(
        obj(),
        conversion={
            "strategy": "None",
            "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
        },
    ),
    "protected group": definition(obj(), group="ex.k8s.io", name="things.ex.k8s.io"),
    "protected group with nonsense": definition(
        obj(),
        group="ex.k8s.io",
        name="things.ex.k8s.io",
        metadata={"annotations": {"api-approved.kubernetes.io": "yes"}},
    ),
    "protected group, unapproved": definition(
        obj(),
        group="ex.k8s.io",
        name="things.ex.k8s.io",
        metadata={"annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
    ),
    "rule is blank": rule(" "),
    "message is blank": rule("true", message=" "),
    "message with a newline": rule("true", message="a\nb"),
    "rule with a newline": rule("true\n|| false"),
    "message expression is blank": rule("true", messageExpression=" "),
    "unknown reason": rule("true", reason="Because"),
    "field path is wrong": rule("true", fieldPath=".nope"),
    "field path without a dot": rule("true", fieldPath="x"),
}

WIDE: Wire = obj(
    {
        "spec": obj(
            {
                "int": {"type": "integer", "minimum": 2, "maximum": 10, "multipleOf": 2},
                "int32": {"type": "integer", "format": "int32"},
                "int64": {"type": "integer", "format": "int64"},
                "open": {
                    "type": "integer",
                    "minimum": 0,
                    "exclusiveMinimum": True,
                    "maximum": 5,
                    "exclusiveMaximum": True,
                },
                "half": {"type": "integer", "maximum": 2.5},
                "num": {"type": "number", "minimum": -1.5, "maximum": 1e7, "multipleOf": 0.5},
                "float": {"type": "number", "format": "float"},
                "str": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                "enum": {"type": "string", "enum": ["a", "b"]},
                "enumInt": {"type": "integer", "enum": [1, 2]},
                "enumNum": {"type": "number", "enum": [1, 2.5]},
                "enumNull": {"type": "string", "nullable": True, "enum": ["a", None]},
                "bool": {"type": "boolean"},
                "list": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {"type": "string", "minLength": 1},
                },
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "numset": {
                    "type": "array",
                    "items": {"x-kubernetes-preserve-unknown-fields": True},
                    "x-kubernetes-list-type": "set",
                },
                "pairs": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": obj(
                        {"a": STRING, "b": {"type": "integer", "default": 7}, "v": INTEGER}, required=["a"]
                    ),
                },
                "map": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 2,
                    "additionalProperties": {"type": "integer", "maximum": 3},
                },
                "nullable": {"type": "string", "nullable": True},
                "defaulted": {"type": "string", "default": "d"},
                "nested": obj({"a": {"type": "string", "default": "x"}, "b": STRING}, default={}),
                "ios": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"},
                "free": obj({"known": INTEGER}, **{"x-kubernetes-preserve-unknown-fields": True}),
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "emb": obj(
                    {"apiVersion": STRING, "kind": STRING, "metadata": obj()},
                    **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
                ),
                "either": obj(
                    {"a": STRING, "b": STRING, "c": INTEGER},
                    oneOf=[{"required": ["a"]}, {"required": ["b"]}],
                    anyOf=[{"properties": {"c": {"minimum": 5}}}, {"properties": {"c": {"maximum": 2}}}],
                    allOf=[{"not": {"required": ["a", "b"]}}],
                ),
                "dt": {"type": "string", "format": "date-time"},
                "date": {"type": "string", "format": "date"},
                "email": {"type": "string", "format": "email"},
                "uuid": {"type": "string", "format": "uuid"},
                "ipv4": {"type": "string", "format": "ipv4"},
                "ipv6": {"type": "string", "format": "ipv6"},
                "cidr": {"type": "string", "format": "cidr"},
                "mac": {"type": "string", "format": "mac"},
                "uri": {"type": "string", "format": "uri"},
                "hostname": {"type": "string", "format": "hostname"},
                "byte": {"type": "string", "format": "byte"},
                "duration": {"type": "string", "format": "duration"},
                "unknown": {"type": "string", "format": "nonsense"},
                "short": {"type": "string", "format": "k8s-short-name"},
            },
            required=["str"],
        )
    }
)


def _format_cases() -> dict[str, Wire]:
    texts: dict[str, list[str]] = {
        "dt": [
            "2024-01-01T00:00:00Z",
            "2024-01-01t00:00:00.5+01:00",
            "2024-02-30T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "x",
        ],
        "date": ["2024-02-29", "2023-02-29", "2024-1-1", "0000-02-29"],
        "email": ["a@b.c", "A <a@b>", "a@", "@b", "a b@c", "a@b@c", "a.@b", '"a b"@c'],
        "uuid": ["A987FBC9-4BED-3078-CF07-9141BA07C9F3", "a987fbc94bed3078cf079141ba07c9f3", "x"],
        "ipv4": ["1.2.3.4", "01.002.3.4", "1.2.3", "256.1.1.1", "::1"],
        "ipv6": ["::1", "::ffff:1.2.3.4", "1.2.3.4", "fe80::1%eth0", "12345::"],
        "cidr": ["10.0.0.0/8", "10.0.0.1/33", "::/0", "::/129", "10.0.0.0", "010.0.0.0/8", "1.2.3.4/08"],
        "mac": ["01:02:03:04:05:06", "01-02-03-04-05-06", "0102.0304.0506", "01:02:03:04:05", "1:2:3:4:5:6"],
        "uri": [
            "http://x/y",
            "/a/b",
            "a/b",
            "mailto:x",
            "http://a b/",
            "http://x:port/",
            "*",
            "",
            "http://%zz/",
            "x:y",
        ],
        "hostname": ["a.example", "a_b.example", "-a", "a", "1.2", "a.b1", "ü.example", "a..b"],
        "byte": ["YWJj", "YWI=", "YWI", "", "a-b_"],
        "duration": ["1h2m", "22 ns", "3 weeks", "1", "x", "-1.5h", ""],
        "unknown": ["whatever"],
        "short": ["a-b", "A", "-a", "a" * 64],
    }
    return {
        f"{name} {text}"[:70]: {"str": "abc", name: text} for name, listed in texts.items() for text in listed
    }


VALUES: dict[str, Wire] = {
    "good": {"str": "abc", "int": 4, "num": 1.5, "list": ["a"], "ios": "5%", "either": {"a": "x", "c": 1}},
    "missing": {},
    "strings": {"str": "abcde"},
    "short string": {"str": "a"},
    "bad pattern": {"str": "ABC"},
    "integers": {"str": "abc", "int": 11, "open": 5, "half": 3},
    "integers below": {"str": "abc", "int": 1, "open": 0},
    "integer as float": {"str": "abc", "int": 4.0, "int32": 5.0},
    "integer as fraction": {"str": "abc", "int": 4.5},
    "int32 overflow": {"str": "abc", "int32": 2147483648},
    "int64 overflow": {"str": "abc", "int64": 9223372036854775808},
    "numbers": {"str": "abc", "num": 12345678.25, "float": 1e39},
    "number is integer": {"str": "abc", "num": 3},
    "number below": {"str": "abc", "num": -2.0},
    "enums": {"str": "abc", "enum": "c", "enumInt": 3, "enumNum": 3.5},
    "enum by truncation": {"str": "abc", "enumNum": 1.7},
    "enum null": {"str": "abc", "enumNull": None},
    "types": {"str": 1, "bool": "yes", "list": {}, "map": [], "int": True, "num": "x"},
    "nulls": {"str": "abc", "nullable": None, "defaulted": None, "nested": None, "int": None},
    "null in a list": {"str": "abc", "list": [None]},
    "lists": {"str": "abc", "list": ["a", "", "c"], "set": ["a", "b", "a", "a"]},
    "empty list": {"str": "abc", "list": []},
    "mixed set": {"str": "abc", "numset": [1, 1.0, True, "1", {"a": 1}, {"a": 1}, [1], [1]]},
    "pairs": {"str": "abc", "pairs": [{"a": "x", "v": 1}, {"a": "x", "b": 7}, {"b": 1}]},
    "maps": {"str": "abc", "map": {"a": 1, "b": 4, "c": "x"}},
    "empty map": {"str": "abc", "map": {}},
    "int or string": {"str": "abc", "ios": "abc"},
    "int or string is an object": {"str": "abc", "ios": {}},
    "int or string is an integer": {"str": "abc", "ios": 5},
    "unknown fields": {
        "str": "abc",
        "nope": {"a": [1]},
        "free": {"known": 1, "other": 2},
        "nested": {"z": 1},
    },
    "object for a string": {"str": {"a": 1}},
    "wrong in free": {"str": "abc", "free": {"known": "x"}},
    "anything": {"str": "abc", "any": [1, {"a": None}]},
    "embedded": {
        "str": "abc",
        "emb": {"apiVersion": "a/b/c", "kind": "no kind", "metadata": {"name": "a/b"}},
    },
    "embedded empty": {"str": "abc", "emb": {"apiVersion": "", "kind": ""}},
    "embedded meta": {
        "str": "abc",
        "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c d"}, "unknown": 1}},
    },
    "both": {"str": "abc", "either": {"a": "x", "b": "y"}},
    "neither": {"str": "abc", "either": {"c": 3}},
    "date as number": {"str": "abc", "dt": 5},
    "date as boolean": {"str": "abc", "dt": True},
    "date as list": {"str": "abc", "dt": ["x"]},
    **_format_cases(),
}

RATCHET_OLD: Wire = obj(
    {
        "spec": obj(
            {
                "a": STRING,
                "b": STRING,
                "list": {"type": "array", "items": STRING},
                "byname": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": obj({"k": STRING, "v": STRING}, required=["k"]),
                },
                "map": obj(additionalProperties=STRING),
                "sub": obj({"x": STRING, "y": STRING}),
            }
        )
    }
)


def _tightened() -> Wire:
    schema = deepcopy(RATCHET_OLD)
    spec = schema["properties"]["spec"]["properties"]
    short = {"type": "string", "maxLength": 3}
    spec["a"] = spec["b"] = short
    spec["list"]["items"] = short
    spec["byname"]["items"]["properties"]["v"] = short
    spec["map"]["additionalProperties"] = short
    spec["sub"] = obj({"x": short, "y": short}, required=["y"])
    return schema


RATCHET_NEW: Wire = _tightened()
RATCHET_BEFORE: Wire = {
    "a": "toolong",
    "b": "ok",
    "list": ["toolong"],
    "byname": [{"k": "1", "v": "toolong"}, {"k": "2", "v": "ok"}],
    "map": {"m": "toolong"},
    "sub": {"x": "toolong"},
}
RATCHETS: dict[str, Wire] = {
    "nothing changed": RATCHET_BEFORE,
    "another field changed": {**RATCHET_BEFORE, "b": "ok2"},
    "the wrong field changed": {**RATCHET_BEFORE, "a": "alsolong"},
    "a list grew": {**RATCHET_BEFORE, "list": ["toolong", "ok"]},
    "map list reordered": {**RATCHET_BEFORE, "byname": [{"k": "2", "v": "ok2"}, {"k": "1", "v": "toolong"}]},
    "map list element changed": {
        **RATCHET_BEFORE,
        "byname": [{"k": "1", "v": "stilllong"}, {"k": "2", "v": "ok"}],
    },
    "map grew": {**RATCHET_BEFORE, "map": {"m": "toolong", "n": "alsolong"}},
    "sub changed": {**RATCHET_BEFORE, "sub": {"x": "ok"}},
}
