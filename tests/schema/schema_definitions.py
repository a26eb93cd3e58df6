"""CRDs for which `observed/` holds the answers of a real API server; `record.py` records them."""

from schema_documents import INTEGER, STRING, JsonObject, definition, field, obj, of_spec, rule

STATUS_VERSION: JsonObject = {"subresources": {"status": {}}}
LIST_MAP: JsonObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}

DEFINITIONS: dict[str, JsonObject] = {
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
