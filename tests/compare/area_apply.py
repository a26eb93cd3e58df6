"""Server-side apply by several managers, forced and not, mixed with updates and patches by others."""

import random
from typing import Any

from area_writes import draw_object
from compare_case import APPLY_PATCH, MERGE_PATCH, CaseBuilder, copy, places, query, value_at
from compare_corpus import Kind, bend, corpus
from compare_patches import PatchDrawer

_MANAGERS = ("one", "two", "three")
_WRITES = 9
_KEYS = ("name", "containerPort", "port", "key", "type", "ip", "uid", "mountPath", "topologyKey")


def applies(case: CaseBuilder) -> None:
    """Apply parts of an object as different managers, and sometimes write it in another way."""
    chance = case.random
    made, obj = draw_object(case)
    if chance.random() < 0.6:
        # Most objects are created by an apply.
        case.steps.pop()
        case.steps.pop()
    path = f"{made.collection}/{obj['metadata']['name']}"
    for _ in range(_WRITES):
        way = chance.random()
        if way < 0.78:
            _apply(case, made, obj, path)
        elif way < 0.9:
            patch = PatchDrawer(obj, made, chance).merge_patch()
            case.send("PATCH", query(path, fieldManager=chance.choice(_MANAGERS)), patch, MERGE_PATCH)
        else:
            case.send("PUT", query(path, fieldManager=chance.choice(_MANAGERS)), bend(obj, made, chance))
    case.send("GET", path)


def _apply(case: CaseBuilder, made: Kind, obj: Any, path: str) -> None:
    chance = case.random
    source = obj if chance.random() < 0.7 else copy(chance.choice(corpus()[made]))
    body = part_of(source, chance)
    if chance.random() < 0.4:
        body = bend(body, made, chance)
    body |= {"apiVersion": made.api_version, "kind": made.name}
    metadata = body.get("metadata")
    body["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": obj["metadata"]["name"]}
    body["metadata"].pop("namespace", None)
    options: dict[str, Any] = {"fieldManager": chance.choice(_MANAGERS)}
    if chance.random() < 0.35:
        options["force"] = chance.choice(("true", "true", "false"))
    if chance.random() < 0.1:
        options["dryRun"] = "All"
    if chance.random() < 0.12 and "status" in made.subresources:
        path += "/status"
    case.send("PATCH", query(path, **options), body, APPLY_PATCH)


def part_of(obj: Any, chance: random.Random) -> Any:
    """Return an object without some of its fields; list elements keep their keys."""
    made = copy(obj)
    for path in reversed(list(places(made))):
        *above, last = path
        if last in _KEYS or path == ("metadata",) or chance.random() > 0.12:
            continue
        del value_at(made, above)[last]
    return made
