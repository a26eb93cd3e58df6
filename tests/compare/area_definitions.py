"""Custom resources: drawn structural schemas with defaults, CEL rules and versions, then objects of these kinds."""

import random
from typing import Any

from compare_case import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, CaseBuilder, copy, places, query, value_at
from compare_cel import draw_expression
from compare_corpus import NUMBERS, OTHERS, TEXTS

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMES = ("a", "b", "c", "name", "size", "items")
_FORMATS = (
    "date-time",
    "email",
    "ipv4",
    "uuid",
    "byte",
    "int32",
    "int64",
    "date",
    "duration",
    "uri",
    "nonsense",
    "cidr",
)
_OBJECTS = 30
_MISTAKE = 0.02
"""The probability of a mistake in a part of a schema."""


def definitions(case: CaseBuilder) -> None:
    """Create a definition, wait until its kind is served, and write objects of it."""
    chance = case.random
    case.namespace()
    schema = draw_schema(chance, 0)
    versions = [_version(chance, "v1", schema, storage=True)]
    if chance.random() < 0.3:
        versions.append(
            _version(chance, "v2", draw_schema(chance, 0) if chance.random() < 0.5 else copy(schema))
        )
    case.clean(f"{DEFINITIONS}/things.{{run}}.ex.io")
    body = {
        "metadata": {"name": "things.{run}.ex.io"},
        "spec": {
            "group": "{run}.ex.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": versions,
            **({"preserveUnknownFields": False} if chance.random() < 0.2 else {}),
        },
    }
    case.send("POST", DEFINITIONS, body, pick=_without_conditions)
    path = "/apis/{run}.ex.io/v1/namespaces/{ns}/things"
    # A definition that was not accepted serves nothing; its objects then get the same 404 everywhere.
    case.prepare("GET", f"{DEFINITIONS}/things.{{run}}.ex.io", until=_is_established_or_absent)
    case.prepare("GET", path, until=_is_served)
    for _ in range(_OBJECTS):
        _write(case, path, schema, chance.choice([version["name"] for version in versions]))


def _without_conditions(body: Any, values: Any) -> Any:
    return (
        {name: value for name, value in body.items() if name != "status" or body.get("kind") == "Status"}
        if isinstance(body, dict)
        else body
    )


def _is_established_or_absent(status: int, body: Any) -> bool:
    conditions = (body.get("status", {}).get("conditions") if status == 200 else None) or ()
    return status == 404 or any(
        item["type"] == "Established" and item["status"] == "True" for item in conditions
    )


def _is_served(status: int, body: Any) -> bool:
    # A 404 of an unknown group is plain text, or the namespace's kinds are listed.
    return status in (200, 404)


def _version(chance: random.Random, name: str, schema: Any, *, storage: bool = False) -> dict[str, Any]:
    root: dict[str, Any] = {"type": "object", "properties": {"spec": schema}}
    made: dict[str, Any] = {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": root},
    }
    if chance.random() < 0.3:
        root["properties"]["status"] = draw_schema(chance, 1)
        made["subresources"] = {"status": {}}
    if chance.random() < 0.15:
        made.setdefault("subresources", {})["scale"] = {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size",
        }
    if chance.random() < 0.15:
        made["selectableFields"] = [{"jsonPath": f".spec.{chance.choice(_NAMES)}"}]
    if chance.random() < 0.15:
        made["additionalPrinterColumns"] = [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]
    if chance.random() < 0.1:
        root["required"] = ["spec"]
    return made


def draw_schema(chance: random.Random, depth: int) -> dict[str, Any]:
    """Draw a structural schema; now and then one that is not valid."""
    kinds = (
        ("object",)
        if depth == 0
        else ("object", "array", "string", "integer", "number", "boolean", "map", "int-or-string", "any")
    )
    kind = chance.choice(kinds if depth < 3 else kinds[2:6])
    made: dict[str, Any] = {"type": kind}
    if kind == "object":
        names = chance.sample(_NAMES, chance.choice((1, 2, 3)))
        made["properties"] = {name: draw_schema(chance, depth + 1) for name in names}
        if chance.random() < 0.3:
            made["required"] = [chance.choice(names)]
        if chance.random() < 0.1:
            made["x-kubernetes-preserve-unknown-fields"] = True
        if chance.random() < 0.1:
            made["x-kubernetes-map-type"] = chance.choice(("atomic", "granular"))
        if chance.random() < 0.1:
            made["maxProperties"] = chance.choice((0, 1, 2))
    elif kind == "map":
        made = {"type": "object", "additionalProperties": draw_schema(chance, depth + 2)}
        if chance.random() < 0.2:
            made["minProperties"] = 1
    elif kind == "array":
        made |= _array(chance, depth)
    elif kind == "int-or-string":
        made = {"x-kubernetes-int-or-string": True}
        if chance.random() < 0.3:
            made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    elif kind == "any":
        made = {"x-kubernetes-preserve-unknown-fields": True}
        if chance.random() < 0.5:
            made["type"] = "object"
        if chance.random() < 0.2:
            made |= {"type": "object", "x-kubernetes-embedded-resource": True}
    else:
        made |= _scalar(chance, kind)
    if chance.random() < 0.15:
        made["nullable"] = True
    if chance.random() < 0.25 and depth:
        made["default"] = draw_value(chance, made, _MISTAKE)
    if chance.random() < 0.2 and kind in ("object", "string", "integer"):
        made["x-kubernetes-validations"] = [_rule(chance, kind, made.get("properties", {}))]
    return made


def _array(chance: random.Random, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"items": draw_schema(chance, depth + 1)}
    way = chance.random()
    if way < 0.25:
        made["items"] = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "a": draw_schema(chance, depth + 2)},
            "required": ["name"],
        }
        made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    elif way < 0.4:
        made["x-kubernetes-list-type"] = chance.choice(("set", "atomic"))
    if chance.random() < 0.3:
        made["maxItems"] = chance.choice((1, 2))
    if chance.random() < 0.1:
        made["uniqueItems"] = False
    return made


def _scalar(chance: random.Random, kind: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if kind == "string":
        options: tuple[tuple[str, Any], ...] = (
            ("maxLength", chance.choice((0, 2, 5))),
            ("minLength", chance.choice((1, 2))),
            (
                "pattern",
                chance.choice(("^a", "[0-9]+", "^$", "^[a-z]*$") if chance.random() > _MISTAKE else ("(",)),
            ),
            ("enum", ["a", "b", "c"]),
            ("format", chance.choice(_FORMATS)),
        )
    elif kind in ("integer", "number"):
        options = (
            ("maximum", chance.choice((0, 2, 80))),
            ("minimum", chance.choice((-1, 1, 2))),
            ("multipleOf", chance.choice((2, 3))),
            ("enum", [1, 2, 3]),
            ("format", chance.choice(("int32", "int64", "double", "float"))),
        )
        if chance.random() < 0.1:
            made["exclusiveMinimum"] = True
    else:
        options = ()
    for name, value in options:
        if chance.random() < 0.2:
            made[name] = value
    return made


def _rule(chance: random.Random, kind: str, properties: dict[str, Any]) -> dict[str, Any]:
    if kind == "string":
        parts = {"string": ("self", "self", "oldSelf" if chance.random() < 0.2 else "self")}
    elif kind == "integer":
        parts = {"int": ("self",)}
    else:
        parts = _parts(properties)
    made: dict[str, Any] = {"rule": draw_expression(chance, parts, mistakes=_MISTAKE)}
    if chance.random() < 0.4:
        made["message"] = chance.choice(("no", "must be so"))
    if chance.random() < 0.2:
        made["messageExpression"] = draw_expression(chance, parts, "string", mistakes=_MISTAKE)
    if chance.random() < 0.2:
        made["reason"] = chance.choice(
            ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
        )
    if chance.random() < 0.15 and kind == "object":
        made["fieldPath"] = f".{chance.choice(list(properties))}"
    if chance.random() < 0.1:
        made["optionalOldSelf"] = True
    return made


def _parts(properties: dict[str, Any]) -> dict[str, list[str]]:
    """Return the expressions that the fields of an object give, by type."""
    parts: dict[str, list[str]] = {"bool": [f"has(self.{name})" for name in properties]}
    for name, schema in properties.items():
        field = f"self.{name}"
        match schema:
            case {"type": "string"} if "format" not in schema:
                parts.setdefault("string", []).append(field)
            case {"type": "integer"}:
                parts.setdefault("int", []).append(field)
            case {"type": "boolean"}:
                parts["bool"].append(field)
            case {"type": "array", "items": {"type": "string"}}:
                parts.setdefault("list", []).append(field)
            case {"type": "object", "additionalProperties": {"type": "string"}}:
                parts.setdefault("map", []).append(field)
            case {"type": "array"}:
                parts.setdefault("int", []).append(f"size({field})")
            case _:
                pass
    return parts


def draw_value(chance: random.Random, schema: dict[str, Any], wrong: float) -> Any:
    """Draw a value of a schema, of a wrong type with a probability."""
    if chance.random() < wrong:
        return copy(chance.choice(OTHERS))
    if "enum" in schema and chance.random() < 0.8:
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        if isinstance(more := schema.get("additionalProperties"), dict):
            return {
                chance.choice(_NAMES): draw_value(chance, more, wrong)
                for _ in range(chance.choice((0, 1, 2)))
            }
        properties = schema.get("properties", {})
        made = {
            name: draw_value(chance, part, wrong)
            for name, part in properties.items()
            if chance.random() < 0.7 or name in schema.get("required", ())
        }
        if chance.random() < 0.15:
            made[chance.choice((*_NAMES, "bogus", "Spec"))] = copy(chance.choice(OTHERS))
        return made
    if kind == "array":
        return [draw_value(chance, schema["items"], wrong) for _ in range(chance.choice((0, 1, 2, 3)))]
    if kind in ("integer", "number"):
        return chance.choice((*NUMBERS, 1, 2, 3, 1.0, 2.5))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "string":
        return chance.choice((*TEXTS, "a", "b", "abc", "a1"))
    return chance.choice(
        (1, "50%", "x", {"a": {"b": None}}, [1, {"c": 2}], None, {"apiVersion": "v1", "kind": "Pod"})
    )


def _write(case: CaseBuilder, path: str, schema: dict[str, Any], version: str) -> None:
    chance = case.random
    path = path.replace("/v1/", f"/{version}/")
    name = chance.choice(("x", "y"))
    spec = draw_value(chance, schema, 0.04)
    body: dict[str, Any] = {
        "apiVersion": f"{{run}}.ex.io/{version}",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": spec,
    }
    if chance.random() < 0.1:
        body[chance.choice(("bogus", "status"))] = {"a": 1}
    options = {"fieldValidation": chance.choice(("", "", "Strict", "Ignore", "Warn"))}
    if chance.random() < 0.15:
        options["dryRun"] = "All"
    way = chance.random()
    if way < 0.35:
        case.send("POST", query(path, **options), body)
    elif way < 0.5:
        case.prepare("GET", f"{path}/{name}", save={"rv": "metadata.resourceVersion"})
        body["metadata"]["resourceVersion"] = "{rv}"
        case.send("PUT", query(f"{path}/{name}", **options), body)
    elif way < 0.62:
        case.send("PATCH", query(f"{path}/{name}", **options), {"spec": _part(chance, spec)}, MERGE_PATCH)
    elif way < 0.85:
        manager = chance.choice(("one", "two"))
        force = chance.choice(("", "true"))
        case.send(
            "PATCH", query(f"{path}/{name}", fieldManager=manager, force=force, **options), body, APPLY_PATCH
        )
    elif way < 0.92:
        case.send("GET", chance.choice((path, f"{path}/{name}")))
    else:
        patch = [
            {
                "op": chance.choice(("add", "replace", "remove")),
                "path": f"/spec/{chance.choice(_NAMES)}",
                "value": copy(chance.choice(OTHERS)),
            }
        ]
        case.send("PATCH", query(f"{path}/{name}", **options), patch, JSON_PATCH)


def _part(chance: random.Random, spec: Any) -> Any:
    """Return a merge patch of a drawn value: some of its parts, one of them removed."""
    made = copy(spec)
    paths = [path for path in places(made) if all(isinstance(key, str) for key in path)]
    if paths and chance.random() < 0.4:
        path = chance.choice(paths)
        value_at(made, path[:-1])[path[-1]] = None
    return made
