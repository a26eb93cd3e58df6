"""Helpers that build the schemas and CRDs of the cases."""

from typing import Any

JsonObject = dict[str, Any]

STRING: JsonObject = {"type": "string"}
INTEGER: JsonObject = {"type": "integer"}


def obj(properties: JsonObject | None = None, **more: Any) -> JsonObject:
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def definition(schema: JsonObject | None, *, plural: str = "things", **spec: Any) -> JsonObject:
    version: JsonObject = {"name": "v1", "served": True, "storage": True}
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


def of_spec(spec: JsonObject, **more: Any) -> JsonObject:
    return definition(obj({"spec": spec}), **more)


def field(schema: JsonObject, **more: Any) -> JsonObject:
    return of_spec(obj({"x": schema}, **more))


def rule(text: str, schema: JsonObject | None = None, **more: Any) -> JsonObject:
    return of_spec({**(schema or obj({"x": INTEGER})), "x-kubernetes-validations": [{"rule": text, **more}]})


def with_rules(schema: JsonObject, *rules: JsonObject) -> JsonObject:
    return {**schema, "x-kubernetes-validations": list(rules)}


def spec_of(schema: JsonObject) -> JsonObject:
    return obj({"spec": schema})
