"""OpenAPI documents of custom resources, as kubectl and client-go read them: v3, and the simpler v2."""

from typing import Any

from conformance_exchange import Step

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "schemas.ex.io"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
SCHEMAS: dict[str, Any] = {
    "Open": {**NUMBER, **OPEN, "properties": {"spec": NUMBER}},
    "Openspec": {
        "type": "object",
        "properties": {"spec": {**NUMBER, **OPEN, "required": ["n"], "description": "text"}},
    },
    "Mixed": {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["nullable", "defaulted"],
                "properties": {
                    "list": {"type": "array", "items": {**NUMBER, **OPEN}},
                    "closed": {"type": "array", "items": NUMBER, "minItems": 1},
                    "map": {"type": "object", "additionalProperties": {**NUMBER, **OPEN}},
                    "nullables": {
                        "type": "object",
                        "additionalProperties": {"type": "string", "nullable": True},
                    },
                    "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, **OPEN},
                    "closed-embedded": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": True,
                        "properties": {"spec": NUMBER},
                    },
                    "either": {"x-kubernetes-int-or-string": True},
                    "anything": OPEN,
                    "nullable": {"type": "string", "nullable": True},
                    "nullable-list": {"type": "array", "nullable": True, "items": NUMBER},
                    "defaulted": {"type": "string", "default": "x", "enum": ["x", "y"]},
                    "combined": {
                        **NUMBER,
                        "anyOf": [{"required": ["n"]}],
                        "allOf": [{"properties": {"n": {"minimum": 1}}}],
                        "not": {"required": ["n"]},
                    },
                    "quantity": {
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                        "pattern": "^[0-9]+$",
                        "x-kubernetes-int-or-string": True,
                    },
                },
            }
        },
    },
}


def definition(kind: str, schema: Any) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def plain(value: Any) -> Any:
    """Leave descriptions out: those of the server's own fields belong to Kubernetes."""
    if isinstance(value, dict):
        return {
            name: plain(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def kinds(schemas: Any) -> Any:
    return {name: plain(item) for name, item in sorted(schemas.items()) if name.startswith("io.ex.schemas.")}


def shared(body: Any, _: Any) -> Any:
    """Compare the schemas of metadata and options; DeleteOptions lists every group of the server."""
    found = {
        name: plain(item)
        for name, item in sorted(body["components"]["schemas"].items())
        if name.startswith("io.k8s.")
    }
    for item in found.values():
        item.pop("x-kubernetes-group-version-kind", None)
    return found


STEPS = [
    *(
        Step(f"definition-{kind.lower()}", "POST", DEFINITIONS, definition(kind, schema), compared=False)
        for kind, schema in SCHEMAS.items()
    ),
    Step(
        "version-3-ready",
        "GET",
        f"/openapi/v3/apis/{GROUP}/v1",
        until=lambda status, body: status == 200 and len(kinds(body["components"]["schemas"])) == 6,
        compared=False,
    ),
    Step(
        "version-3",
        "GET",
        f"/openapi/v3/apis/{GROUP}/v1",
        pick=lambda body, _: kinds(body["components"]["schemas"]),
    ),
    Step("version-3-shared", "GET", f"/openapi/v3/apis/{GROUP}/v1", pick=shared),
    Step(
        "version-2-ready",
        "GET",
        "/openapi/v2",
        until=lambda status, body: status == 200 and len(kinds(body["definitions"])) == 6,
        compared=False,
    ),
    Step("version-2", "GET", "/openapi/v2", pick=lambda body, _: kinds(body["definitions"])),
    *(
        Step(f"deleted-{kind.lower()}", "DELETE", f"{DEFINITIONS}/{kind.lower()}s.{GROUP}", compared=False)
        for kind in SCHEMAS
    ),
]
