"""Field validation: unknown, repeated and misspelled fields, in JSON and YAML, at each level of validation."""

import json
import random
from typing import Any

import yaml
from compare_case import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    CaseBuilder,
    copy,
    places,
    query,
    value_at,
)
from compare_corpus import Kind, bend, corpus

_LEVELS = ("Strict", "Strict", "Warn", "Ignore", "", "strict", "Nope")
_REQUESTS = 8
_YAML = {"Content-Type": "application/yaml"}


def fields(case: CaseBuilder) -> None:
    """Write objects whose text has fields that the kind does not have, or has twice."""
    chance = case.random
    case.namespace()
    choices = [
        made for made in corpus() if made.namespaced and "update" in made.verbs and made.name != "Event"
    ]
    made = chance.choice(sorted(choices, key=lambda item: (item.api_version, item.name)))
    obj = copy(chance.choice(corpus()[made]))
    obj["metadata"].pop("namespace", None)
    path = f"{made.collection}/{obj['metadata']['name']}"
    case.send("POST", made.collection, obj)
    for _ in range(_REQUESTS):
        _write(case, made, obj, path)


def _write(case: CaseBuilder, made: Kind, obj: Any, path: str) -> None:
    chance = case.random
    body = copy(obj)
    for _ in range(chance.choice((0, 1, 1, 2))):
        _add_unknown(body, chance)
    if chance.random() < 0.2:
        body = bend(body, made, chance)
    options = {"fieldValidation": chance.choice(_LEVELS), "dryRun": "All"}
    repeats = chance.choice((0, 0, 1, 1, 2))
    way = chance.random()
    if way < 0.35:
        case.send("POST", query(made.collection, **options), json_text(body, repeats, chance))
    elif way < 0.5:
        case.send("POST", query(made.collection, **options), yaml_text(body, repeats, chance), _YAML)
    elif way < 0.65:
        case.send("PUT", query(path, **options), json_text(body, repeats, chance))
    elif way < 0.75:
        case.send(
            "PATCH", query(path, **options), json_text(_part(body, chance), repeats, chance), MERGE_PATCH
        )
    elif way < 0.85:
        case.send(
            "PATCH", query(path, **options), json_text(_part(body, chance), repeats, chance), STRATEGIC_PATCH
        )
    elif way < 0.9:
        patch = [
            {"op": "add", "path": chance.choice(("/bogus", "/metadata/bogus", "/spec/bogus")), "value": 1}
        ]
        case.send("PATCH", query(path, **options), json_text(patch, repeats, chance), JSON_PATCH)
    else:
        text = yaml_text(body, repeats if chance.random() < 0.3 else 0, chance)
        case.send("PATCH", query(path, fieldManager="one", force="true", **options), text, APPLY_PATCH)


def _part(body: Any, chance: random.Random) -> Any:
    keys = [key for key in body if key not in ("apiVersion", "kind")]
    return {key: body[key] for key in chance.sample(keys, min(len(keys), 2))}


def _add_unknown(body: Any, chance: random.Random) -> None:
    holders = [value for path in places(body) if isinstance(value := value_at(body, path), dict) and value]
    holder = chance.choice([body, *holders])
    name = chance.choice(
        ("bogus", "Bogus", "misspelt", *(key.capitalize() for key in holder), *(f"{key}s" for key in holder))
    )
    holder[name] = chance.choice((1, "x", None, {"a": 1}, [1]))


def json_text(value: Any, repeats: int, chance: random.Random) -> str:
    """Write a value as JSON with some members repeated."""
    chosen = _repeated(value, repeats, chance)

    def write(item: Any, path: tuple[str | int, ...]) -> str:
        if isinstance(item, dict):
            members = [f"{json.dumps(key)}:{write(part, (*path, key))}" for key, part in item.items()]
            members += [
                f"{json.dumps(key)}:{write(part, (*path, key))}"
                for key, part in item.items()
                if (*path, key) in chosen
            ]
            return "{" + ",".join(members) + "}"
        if isinstance(item, list):
            return "[" + ",".join(write(part, (*path, index)) for index, part in enumerate(item)) + "]"
        return json.dumps(item)

    return write(value, ())


def yaml_text(value: Any, repeats: int, chance: random.Random) -> str:
    """Write a value as YAML, with some members repeated."""
    if not repeats:
        return yaml.safe_dump(value, sort_keys=False)
    # JSON with repeated members is YAML too.
    return json_text(value, repeats, chance)


def _repeated(value: Any, repeats: int, chance: random.Random) -> set[tuple[str | int, ...]]:
    # Which of `kind` and `Kind` comes last is not compared.
    choices = [
        path
        for path in places(value)
        if isinstance(path[-1], str) and path not in (("kind",), ("apiVersion",))
    ]
    return set(chance.sample(choices, min(repeats, len(choices))))
