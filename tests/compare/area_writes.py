"""Create, update, patch and delete objects: the same object is written several times in several ways."""

from typing import Any

from compare_case import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, CaseBuilder, copy, query
from compare_corpus import Kind, bend, corpus
from compare_patches import PatchDrawer

_WRITES = 8
_MANAGERS = ("", "", "one", "two", "x" * 129)
_NO_UPDATES = {"Event"}


def writes(case: CaseBuilder) -> None:
    """Write an object with each kind of update and patch, and read it between."""
    made, obj = draw_object(case)
    for _ in range(_WRITES):
        _write(case, made, obj)
        if case.random.random() < 0.4:
            case.send("GET", _path(made, obj), save={"rv": "metadata.resourceVersion"})
    case.send("GET", _path(made, obj))
    if case.random.random() < 0.6:
        _delete(case, made, obj)
        case.send("GET", _path(made, obj))


def dry_runs(case: CaseBuilder) -> None:
    """Write an object with dry runs, each followed by a read, and then for real."""
    made, obj = draw_object(case)
    for _ in range(_WRITES // 2):
        _write(case, made, obj, dry_run=case.random.choice(("All", "All", "All", "None", "All&dryRun=All")))
        case.send("GET", _path(made, obj), save={"rv": "metadata.resourceVersion"})
    _delete(case, made, obj, dry_run="All")
    case.send("GET", _path(made, obj))
    case.send("DELETE", query(made.collection, dryRun="All"))
    case.send("GET", _path(made, obj))
    _write(case, made, obj)


def draw_object(case: CaseBuilder) -> tuple[Kind, Any]:
    """Create the namespace and an object of a namespaced kind."""
    chance = case.random
    case.namespace()
    choices = [
        item
        for item in corpus()
        if item.namespaced and "update" in item.verbs and item.name not in _NO_UPDATES
    ]
    made = chance.choice(sorted(choices, key=lambda item: (item.api_version, item.name)))
    obj = copy(chance.choice(corpus()[made]))
    obj["metadata"].pop("namespace", None)
    name = obj["metadata"].setdefault("name", "x")
    sent = bend(obj, made, chance) if chance.random() < 0.15 else obj
    case.send("POST", query(made.collection, fieldManager=chance.choice(_MANAGERS[:4])), sent)
    case.send(
        "GET", f"{made.collection}/{name}", save={"rv": "metadata.resourceVersion", "uid": "metadata.uid"}
    )
    return made, obj


def _path(made: Kind, obj: Any) -> str:
    return f"{made.collection}/{obj['metadata']['name']}"


def _write(case: CaseBuilder, made: Kind, obj: Any, dry_run: str = "") -> None:
    chance = case.random
    options = {"fieldManager": chance.choice(_MANAGERS), "dryRun": dry_run}
    if chance.random() < 0.15:
        options["fieldValidation"] = chance.choice(("Strict", "Ignore", "Warn"))
    path = _path(made, obj)
    if made.subresources and chance.random() < 0.2:
        path += "/" + chance.choice(
            [name for name in made.subresources if name in ("status", "scale")] or [""]
        )
        path = path.rstrip("/")
    patches = PatchDrawer(obj, made, chance)
    way = chance.random()
    if way < 0.3:
        body = bend(obj, made, chance)
        if isinstance(body.get("metadata"), dict) and chance.random() < 0.6:
            body["metadata"]["resourceVersion"] = chance.choice(("{rv}", "{rv}", "{rv}", "1", "x", ""))
        case.send("PUT", query(path, **options), body)
    elif way < 0.5:
        case.send("PATCH", query(path, **options), patches.json_patch(), JSON_PATCH)
    elif way < 0.72:
        case.send("PATCH", query(path, **options), patches.merge_patch(), MERGE_PATCH)
    else:
        case.send("PATCH", query(path, **options), patches.strategic_patch(), STRATEGIC_PATCH)


def _delete(case: CaseBuilder, made: Kind, obj: Any, dry_run: str = "") -> None:
    chance = case.random
    options: dict[str, Any] = {}
    if chance.random() < 0.3:
        options["preconditions"] = chance.choice(
            ({"uid": "{uid}"}, {"resourceVersion": "{rv}"}, {"uid": "x"}, {"resourceVersion": "1"})
        )
    if chance.random() < 0.4:
        options["propagationPolicy"] = chance.choice(("Orphan", "Background", "Foreground", "Nope"))
    if chance.random() < 0.3:
        options["gracePeriodSeconds"] = chance.choice((0, 1, 30, -1))
    case.send("DELETE", query(_path(made, obj), dryRun=dry_run), options or None)
