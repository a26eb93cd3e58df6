"""Lists and watches: revisions, selectors, pages under writes, initial events, bookmarks, tables."""

import random
from typing import Any

from compare_case import MERGE_PATCH, CaseBuilder, query
from conformance_exchange import Step

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
_LABELS = {"app": ("a", "b", "c"), "tier": ("x", "y")}
_SELECTORS = (
    *(
        "app%3Da",
        "app%21%3Da",
        "app",
        "%21app",
        "app+in+(a,b)",
        "app+notin+(a,b)",
        "tier%3Dx,app",
        "app%3D%3Dc",
    ),
    *("app>1", "app%3D", ",", "app in (a", "app+in+()", "-x", "app%3Da%3Db", "tier+notin+(x),app+in+(a,c)"),
)
_FIELDS = {
    "configmaps": (
        "metadata.name%3Da1",
        "metadata.name%21%3Da1",
        "metadata.namespace%3D{ns}",
        "data.a%3Db",
        "metadata.name%3D",
    ),
    "secrets": ("type%3DOpaque", "type%21%3DOpaque", "metadata.name%3Da1", "type%3Dex.io/t", "nope%3D1"),
    "pods": (
        *(
            "spec.nodeName%3Dn1",
            "status.phase%3DPending",
            "spec.restartPolicy%3DNever",
            "spec.nodeName%21%3Dn1",
        ),
        *(
            "status.podIP%3D",
            "spec.schedulerName%3Ddefault-scheduler",
            "spec.hostNetwork%3Dtrue",
            "spec.nope%3D1",
        ),
    ),
}
_OBJECTS = 7


def reads(case: CaseBuilder) -> None:
    """Write objects while their revisions are noted; list them, page through them, and watch from the revisions."""
    chance = case.random
    case.namespace()
    resource = chance.choice(("configmaps", "configmaps", "secrets", "pods"))
    path = f"/api/v1/namespaces/{{ns}}/{resource}"
    case.prepare("GET", query(path, limit=1), save={"rv0": "metadata.resourceVersion"})
    revisions = 1
    for index in range(_OBJECTS):
        name = f"{chance.choice('abc')}{index}"
        case.prepare("POST", path, draw_object(resource, name, chance))
        for method, body in _changes(resource, name, chance):
            case.prepare(method, f"{path}/{name}", body, MERGE_PATCH if method == "PATCH" else None)
        if chance.random() < 0.4:
            case.prepare("GET", query(path, limit=1), save={f"rv{revisions}": "metadata.resourceVersion"})
            revisions += 1
    for _ in range(6):
        _list(case, path, resource, revisions)
    for _ in range(2):
        _pages(case, path, resource)
    for _ in range(4):
        _watch(case, path, resource, revisions)


def draw_object(resource: str, name: str, chance: random.Random) -> dict[str, Any]:
    """Draw an object with labels and with the fields that can be selected."""
    labels = {key: chance.choice(values) for key, values in _LABELS.items() if chance.random() < 0.7}
    made: dict[str, Any] = {"metadata": {"name": name, "labels": labels}}
    if resource == "pods":
        made["spec"] = {
            "containers": [{"name": "c", "image": "i"}],
            "restartPolicy": chance.choice(("Always", "Never")),
            **({"nodeName": chance.choice(("n1", "n2"))} if chance.random() < 0.5 else {}),
        }
    elif resource == "secrets" and chance.random() < 0.5:
        made["type"] = "ex.io/t"
    return made


def _changes(resource: str, name: str, chance: random.Random) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    while chance.random() < 0.4:
        key = chance.choice(list(_LABELS))
        value = chance.choice((*_LABELS[key], None))
        found.append(("PATCH", {"metadata": {"labels": {key: value}}}))
    if chance.random() < 0.2:
        found.append(("DELETE", {"gracePeriodSeconds": 0}))
    return found


def _selectors(chance: random.Random, resource: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if chance.random() < 0.5:
        found["labelSelector"] = chance.choice(_SELECTORS).replace(" ", "+")
    if chance.random() < 0.35:
        found["fieldSelector"] = chance.choice(_FIELDS[resource])
    return found


def _revision(chance: random.Random, revisions: int) -> str:
    return chance.choice(("", "0", *(f"{{rv{index}}}" for index in range(revisions)), "x", "-1"))


def _list(case: CaseBuilder, path: str, resource: str, revisions: int) -> None:
    chance = case.random
    options: dict[str, Any] = _selectors(chance, resource)
    if chance.random() < 0.5:
        options["resourceVersion"] = _revision(chance, revisions)
    if chance.random() < 0.4:
        options["resourceVersionMatch"] = chance.choice(("Exact", "NotOlderThan", "Exact", "Nope"))
    if chance.random() < 0.3:
        options["limit"] = chance.choice((1, 2, 500, 0, -1, "x"))
    headers = chance.choice((None, None, None, TABLE, METADATA_LIST, METADATA))
    case.send("GET", query(path, **options), headers=headers)


def _pages(case: CaseBuilder, path: str, resource: str) -> None:
    """Follow the pages of a list while objects are written."""
    chance = case.random
    options: dict[str, Any] = _selectors(chance, resource) if chance.random() < 0.4 else {}
    limit = chance.choice((1, 2, 3))
    headers = chance.choice((None, None, TABLE))
    token = f"token{len(case.steps)}"
    case.send("GET", query(path, limit=limit, **options), headers=headers, save={token: "metadata.continue"})
    for page in range(3):
        if chance.random() < 0.5:
            name = f"{chance.choice('abcz')}-{token}-{page}"
            case.prepare("POST", path, draw_object(resource, name, chance))
        more = dict(options)
        if chance.random() < 0.1:
            more["resourceVersion"] = chance.choice(("0", "{rv0}"))
        if chance.random() < 0.1:
            limit = chance.choice((1, 5, ""))
        step = query(path, limit=limit, **more) if limit or more else path
        step += f"{'&' if '?' in step else '?'}continue={{{token}}}"
        token = f"{token}n"
        case.send("GET", step, headers=headers, save={token: "metadata.continue"})


def _watch(case: CaseBuilder, path: str, resource: str, revisions: int) -> None:
    chance = case.random
    options: dict[str, Any] = {"watch": 1, "timeoutSeconds": 1, **_selectors(chance, resource)}
    way = chance.random()
    if way < 0.55:
        options["resourceVersion"] = f"{{rv{chance.randrange(revisions)}}}"
    elif way < 0.8:
        options |= {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
        options["resourceVersion"] = chance.choice(("", "0", "{rv0}"))
        if chance.random() < 0.15:
            options.pop(chance.choice(("resourceVersionMatch", "allowWatchBookmarks", "sendInitialEvents")))
    else:
        options["resourceVersion"] = chance.choice(("", "0", "x"))
    during: list[Step] = []
    for index in range(chance.choice((0, 0, 1, 2))):
        name = f"{chance.choice('abc')}w{len(case.steps)}-{index}"
        label = f"{len(case.steps):03}-{index}"
        during.append(Step(f"{label}a", "POST", path, draw_object(resource, name, chance), compared=False))
        for number, (method, body) in enumerate(_changes(resource, name, chance)):
            headers = MERGE_PATCH if method == "PATCH" else {}
            during.append(Step(f"{label}b{number}", method, f"{path}/{name}", body, headers, compared=False))
    case.send(
        "GET",
        query(path, **options),
        headers=chance.choice((None, None, None, TABLE, METADATA)),
        during=tuple(during),
        pick=without_late_bookmarks,
    )


def without_late_bookmarks(body: Any, values: Any) -> Any:
    """Return events without bookmarks, except that of the end of the initial events: others depend on the moment."""
    if not isinstance(body, list):
        return body
    return [event for event in body if event["type"] != "BOOKMARK" or "annotations" in str(event["object"])]
