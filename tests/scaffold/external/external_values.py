"""Random JSON values of a schema, and what a CRD made from generated classes does not carry."""

from random import Random
from typing import Any

TEXTS = ("", "a", "web-1", "10s", "1Gi", "https://example.com/x?y=1", 'größe "x" \\ \n', "0")
NOT_CARRIED = frozenset({"description", "title", "example", "externalDocs", "anyOf", "oneOf", "allOf", "not"})
TYPE_META = ("apiVersion", "kind", "metadata")


def random_object(schema: dict[str, Any], random: Random, depth: int = 0) -> dict[str, Any]:
    """Return a value of an object's schema: what is required, and some of the rest."""
    required = schema.get("required", ())
    likely = 0.6 if depth < 2 else 0.25
    found: dict[str, Any] = {}
    for name, inner in schema.get("properties", {}).items():
        if depth == 0 and name in TYPE_META:
            continue
        if name in required or random.random() < likely:
            found[name] = random_value(inner, random, depth + 1)
            if inner.get("nullable") and name in required and random.random() < 0.3:
                found[name] = None
    return found


def random_value(schema: dict[str, Any], random: Random, depth: int) -> Any:
    """Return a value of the type that a schema declares; bounds and patterns are not looked at."""
    if schema.get("x-kubernetes-int-or-string"):
        return random.choice([0, 8080, "50%", ""])
    if "enum" in schema:
        return random.choice(schema["enum"])
    keeps_more = schema.get("x-kubernetes-preserve-unknown-fields")
    match schema.get("type"):
        case "object" if keeps_more or schema.get("x-kubernetes-embedded-resource"):
            return {"apiVersion": "v1", "kind": "Thing", "anything": [1, {"goes": None}]}
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            names = random.sample(["a", "b-1", "example.com/x"], random.randint(0, 2))
            return {name: random_value(schema["additionalProperties"], random, depth) for name in names}
        case "object" if schema.get("additionalProperties"):
            return {"any": {"thing": 1.5}}
        case "object":
            return random_object(schema, random, depth)
        case "array":
            return [random_value(schema["items"], random, depth) for _ in range(random.randint(0, 2))]
        case "string" if schema.get("format") == "date-time":
            return random.choice(["2026-01-02T03:04:05Z", "1999-12-31T23:59:59Z"])
        case "string" if schema.get("format") == "byte":
            return random.choice(["", "aGVsbG8="])
        case "string":
            return random.choice(TEXTS)
        case "integer":
            return random.choice([0, 1, -1, 2**31 - 1, *([2**62] if schema.get("format") != "int32" else [])])
        case "number":
            return random.choice([0.5, -2.25])
        case "boolean":
            return random.choice([True, False])
        case _:
            return random.choice([{"any": ["thing"]}, "text", 3])


def spoiled(value: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a copy of an object in which some values have another type or are gone."""
    found: dict[str, Any] = {}
    for name, inner in value.items():
        chance = random.random()
        if chance < 0.08:
            continue
        if chance < 0.16:
            inner = random.choice([None, 7, "x", [], {}, ["x"], True])
        elif isinstance(inner, dict):
            inner = spoiled(inner, random)
        elif isinstance(inner, list):
            inner = [spoiled(item, random) if isinstance(item, dict) else item for item in inner]
        found[name] = inner
    return found


def carried(schema: dict[str, Any], *, is_kind: bool = False) -> dict[str, Any]:
    """Return what generated classes carry of a schema: each line here is a difference that the docs list."""
    keeps_more = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get(
        "x-kubernetes-embedded-resource"
    )
    found = {keyword: value for keyword, value in schema.items() if keyword not in NOT_CARRIED}
    if found.get("x-kubernetes-int-or-string"):
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if found.get("x-kubernetes-list-type") == "atomic":
        del found["x-kubernetes-list-type"]
    if found.get("x-kubernetes-map-type") == "granular":
        del found["x-kubernetes-map-type"]
    if found.get("type") in ("integer", "number") and found.get("format") != "int32":
        found.pop("format", None)
    if found.get("additionalProperties") is True:
        found["additionalProperties"] = {"x-kubernetes-preserve-unknown-fields": True}
    if keeps_more:
        found.pop("properties", None)
        found.pop("required", None)
    if "properties" in found:
        found["properties"] = {
            name: {"type": inner["type"]} if is_kind and name in TYPE_META else carried(inner)
            for name, inner in found["properties"].items()
        }
    for keyword in ("items", "additionalProperties"):
        if isinstance(found.get(keyword), dict):
            found[keyword] = carried(found[keyword])
    if "required" in found:
        found["required"] = sorted(set(found["required"]) - set(TYPE_META if is_kind else ()))
    return {
        keyword: value for keyword, value in found.items() if value not in ([], {}) or keyword == "default"
    }
