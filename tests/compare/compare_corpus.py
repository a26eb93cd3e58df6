"""The kinds and objects that cases start from: recorded cases, and values drawn from the OpenAPI schemas."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from compare_case import copy, places, value_at
from conformance_scenario import scenarios

from kubewright.devserver.wire import load_types

CASES = Path(__file__).parents[1] / "devserver" / "builtin" / "cases"
_REF = "#/components/schemas/"
_PLACEHOLDER = re.compile(r"\{\w+\}")
_MAX_OBJECT = 4000


@dataclass(frozen=True)
class Kind:
    """A built-in kind and where it is served."""

    api_version: str
    name: str
    resource: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]

    @property
    def collection(self) -> str:
        """Return the path of the kind's objects in the namespace of the run."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{{ns}}/{self.resource}" if self.namespaced else f"{root}/{self.resource}"


@cache
def kinds() -> list[Kind]:
    """Return all built-in kinds whose objects can be created."""
    return [
        Kind(
            f"{version.group}/{version.version}" if version.group else version.version,
            resource.kind,
            resource.name,
            resource.namespaced,
            tuple(resource.verbs),
            tuple(sub.name for sub in resource.subresources),
        )
        for version in load_types().discovery()
        for resource in version.resources
        if "create" in resource.verbs
    ]


@cache
def kind(api_version: str, name: str) -> Kind:
    """Return a built-in kind."""
    return next(item for item in kinds() if (item.api_version, item.name) == (api_version, name))


@cache
def corpus() -> dict[Kind, list[Any]]:
    """Return the objects of the recorded cases, by kind."""
    found: dict[Kind, dict[str, Any]] = defaultdict(dict)
    for made, obj in (*_of_builtin_cases(), *_of_scenarios()):
        text = json.dumps(obj, sort_keys=True)
        if len(text) < _MAX_OBJECT and not _PLACEHOLDER.search(text):
            found[made][text] = {"apiVersion": made.api_version, "kind": made.name, **obj}
    return {made: list(objects.values()) for made, objects in found.items()}


def _of_builtin_cases() -> Iterator[tuple[Kind, Any]]:
    for name in ("accepted", "refused"):
        for case in yaml.safe_load_all((CASES / f"{name}.yaml").read_text()):
            obj = (case or {}).get("create", case)
            if obj:
                # YAML has dates, which JSON has not.
                obj = json.loads(json.dumps(obj, default=lambda value: f"{value:%Y-%m-%dT%H:%M:%SZ}"))
                yield kind(obj["apiVersion"], obj["kind"]), obj


def _of_scenarios() -> Iterator[tuple[Kind, Any]]:
    by_end = {made.collection.replace("/namespaces/{ns}", ""): made for made in kinds()}
    for scenario in scenarios():
        for step in scenario.steps:
            path = re.sub(r"/namespaces/[^/]+(?=/)", "", step.path.partition("?")[0])
            made = by_end.get(path)
            if made is not None and step.method == "POST" and isinstance(step.body, dict):
                obj = {name: item for name, item in step.body.items() if name not in ("apiVersion", "kind")}
                metadata = obj.get("metadata")
                if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
                    yield made, obj


@cache
def known_values() -> dict[str, list[Any]]:
    """Return the values that fields of a name have in the corpus, so that drawn ones mean something."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for objects in corpus().values():
        for obj in objects:
            for path in places(obj):
                name, value = path[-1], value_at(obj, path)
                if isinstance(name, str):
                    found[name][json.dumps(value)] = value
    return {name: list(values.values()) for name, values in found.items()}


# Values drawn from schemas.

TEXTS = (
    *(
        "",
        "a",
        "b-c",
        "A",
        "a_b",
        "-a",
        "a.",
        "a.b/c",
        "é",
        " ",
        "1",
        "true",
        "Always",
        "None",
        "/",
        "../a",
        "*",
    ),
    *("x" * 64, "x" * 254, "https://a.b/c", "10.0.0.300", "1.2.3.4", "::1", "1Gi", "0", "-1", "50%", "200%"),
    *("2024-01-01T00:00:00Z", "yesterday", "app.kubernetes.io/name", "a=b", "a\nb"),
)
NUMBERS = (-1, 0, 1, 2, 3, 80, 65535, 65536, 2**31 - 1, 2**31, 2**53, 2**63, 1.5, -(2**31))
OTHERS = (None, True, False, "", "x", 0, 7, [], {}, [None], [""], {"a": "b"}, [{}])


@cache
def _schemas(api_version: str) -> dict[str, Any]:
    return json.loads(load_types().openapi(api_version))["components"]["schemas"]


@cache
def _root(made: Kind) -> str:
    for name, schema in _schemas(made.api_version).items():
        for found in schema.get("x-kubernetes-group-version-kind", ()):
            version = f"{found['group']}/{found['version']}" if found["group"] else found["version"]
            if (version, found["kind"]) == (made.api_version, made.name):
                return name
    raise KeyError(made.name)


class Drawer:
    """Draw values of a kind's fields."""

    def __init__(self, made: Kind, chance: random.Random) -> None:
        self._schemas = _schemas(made.api_version)
        self._root: dict[str, Any] = {"$ref": _REF + _root(made)}
        self._random = chance

    def schema(self, path: tuple[str | int, ...]) -> dict[str, Any] | None:
        """Return the schema of a path, None where there is none."""
        schema = self._resolved(self._root)
        for key in path:
            if isinstance(key, int):
                found = schema.get("items")
            else:
                found = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            if not isinstance(found, dict):
                return None
            schema = self._resolved(found)
        return schema

    def value(self, schema: dict[str, Any], name: str, depth: int = 0) -> Any:
        """Draw a value that fits a schema by its type."""
        schema = self._resolved(schema)
        if name == "generateName":
            # The suffix of such names is recognized when responses are compared.
            return "gen-"
        known = known_values().get(name)
        if known and self._random.random() < 0.5:
            return copy(self._random.choice(known))
        kinds_ = [schema["type"]] if "type" in schema else [item["type"] for item in schema.get("oneOf", ())]
        drawn = self._random.choice(kinds_) if kinds_ else "object"
        if drawn == "object":
            return self._object(schema, depth)
        if drawn == "array":
            length = self._random.choice((0, 1, 1, 2))
            return [self.value(schema.get("items", {}), name, depth + 1) for _ in range(length)]
        if drawn in ("integer", "number"):
            return self._random.choice(NUMBERS)
        if drawn == "boolean":
            return self._random.random() < 0.5
        return self._random.choice(schema.get("enum") or TEXTS)

    def _object(self, schema: dict[str, Any], depth: int) -> Any:
        properties = schema.get("properties", {})
        if not properties:
            more = schema.get("additionalProperties")
            values = more if isinstance(more, dict) else {"type": "string"}
            return {
                self._random.choice(TEXTS): self.value(values, "", depth + 1)
                for _ in range(self._random.choice((0, 1, 2)))
            }
        required = schema.get("required", ())
        chance = 0.4 if depth < 2 else 0.15
        chosen = [
            name for name in properties if name in required or (depth < 4 and self._random.random() < chance)
        ]
        return {name: self.value(properties[name], name, depth + 1) for name in chosen}

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while True:
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].removeprefix(_REF)]
            elif len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
            else:
                return schema


def bend(obj: Any, made: Kind, chance: random.Random) -> Any:
    """Return a copy of an object that is changed in one place."""
    drawer = Drawer(made, chance)
    bent = copy(obj)
    paths = [
        path
        for path in places(bent)
        if path[0] not in ("apiVersion", "kind") and path != ("metadata", "name")
    ]
    path = chance.choice(paths) if paths else ("spec",)
    holder = value_at(bent, path[:-1])
    way = chance.random()
    if way < 0.12 and paths:
        del holder[path[-1]]
    elif way < 0.22:
        holder[path[-1]] = copy(chance.choice(OTHERS))
    elif way < 0.30 and isinstance(holder, list):
        holder.append(copy(holder[path[-1]]))
    elif way < 0.60:
        schema = drawer.schema(path)
        name = next((key for key in reversed(path) if isinstance(key, str)), "")
        holder[path[-1]] = chance.choice(TEXTS) if schema is None else drawer.value(schema, name)
    else:
        _add_field(bent, drawer, chance)
    return bent


def _add_field(obj: Any, drawer: Drawer, chance: random.Random) -> None:
    """Set a field that the object has not, at a place where its schema has one."""
    holders: list[tuple[Any, dict[str, Any]]] = []
    for path in ((), *places(obj)):
        schema, value = drawer.schema(path), value_at(obj, path)
        if schema is not None and isinstance(value, dict) and schema.get("properties"):
            holders.append((value, schema))
    value, schema = chance.choice(holders)
    absent = [name for name in schema["properties"] if name not in value]
    if absent:
        name = chance.choice(absent)
        value[name] = drawer.value(schema["properties"][name], name)
