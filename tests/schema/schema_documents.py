"""The words that documents of the cases are written in."""

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


def with_rules(schema: Wire, *rules: Wire) -> Wire:
    return {**schema, "x-kubernetes-validations": list(rules)}


def spec_of(schema: Wire) -> Wire:
    return obj({"spec": schema})
