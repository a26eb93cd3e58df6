"""Garbage collection: drawn graphs of owners, deleted in each way; the states that remain are compared."""

from typing import Any

from compare_case import MERGE_PATCH, CaseBuilder

_KINDS = {"ConfigMap": "configmaps", "Secret": "secrets", "ServiceAccount": "serviceaccounts"}
_OBJECTS = 8


def garbage(case: CaseBuilder) -> None:
    """Create objects that own each other, delete some of them, and wait for what remains."""
    chance = case.random
    case.namespace()
    made: list[tuple[str, str]] = []
    for index in range(_OBJECTS):
        kind = chance.choice(("ConfigMap", "ConfigMap", "ConfigMap", "Secret", "ServiceAccount"))
        name = f"o{index}"
        metadata: dict[str, Any] = {"name": name, "labels": {"run": "{run}"}}
        owners = [_owner(case, number, *made[number]) for number in _owners_of(case, index)]
        if sum(owner.get("controller", False) for owner in owners) > 1:
            owners = owners[:1]
        if owners:
            metadata["ownerReferences"] = owners
        if chance.random() < 0.12:
            metadata["finalizers"] = [chance.choice(("ex.io/f", "foregroundDeletion", "orphan"))]
        case.send("POST", _path(kind), {"metadata": metadata}, save={f"uid{index}": "metadata.uid"})
        made.append((kind, name))
    _wait_until_seen(case)
    for index in chance.sample(range(_OBJECTS), chance.choice((1, 2, 3))):
        kind, name = made[index]
        policy = chance.choice(("Background", "Foreground", "Orphan", ""))
        case.prepare("DELETE", f"{_path(kind)}/{name}", {"propagationPolicy": policy} if policy else None)
    _compare(case)
    released = [
        (kind, name)
        for (kind, name), step in zip(made, case.steps[1:], strict=False)
        if "finalizers" in step.body["metadata"]
    ]
    for kind, name in released:
        case.prepare("PATCH", f"{_path(kind)}/{name}", {"metadata": {"finalizers": None}}, MERGE_PATCH)
    if released:
        _compare(case)


def _wait_until_seen(case: CaseBuilder) -> None:
    """Wait until the garbage collectors have seen all objects.

    They read the events of a kind in their order, so they have when they delete a later object without an owner. A
    dependent that is not known yet when its owner is orphaned is deleted instead.
    """
    missing = {"apiVersion": "v1", "kind": "ConfigMap", "name": "missing", "uid": "{run}"}
    probe = {"name": "probe", "ownerReferences": [missing]}
    for kind in _KINDS:
        case.prepare("POST", _path(kind), {"metadata": probe})
    for kind in _KINDS:
        case.prepare("GET", f"{_path(kind)}/probe", until=lambda status, _: status == 404)


def _path(kind: str) -> str:
    return f"/api/v1/namespaces/{{ns}}/{_KINDS[kind]}"


def _owners_of(case: CaseBuilder, index: int) -> list[int]:
    chance = case.random
    if index == 0 or chance.random() < 0.2:
        return []
    return chance.sample(range(index), min(index, chance.choice((1, 1, 1, 2))))


def _owner(case: CaseBuilder, number: int, kind: str, name: str) -> dict[str, Any]:
    chance = case.random
    owner: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "name": name, "uid": f"{{uid{number}}}"}
    if chance.random() < 0.5:
        owner["blockOwnerDeletion"] = chance.random() < 0.7
    if chance.random() < 0.3:
        owner["controller"] = True
    if chance.random() < 0.06:
        owner["uid"] = "00000000-0000-0000-0000-000000000000"
    return owner


def _compare(case: CaseBuilder) -> None:
    for resource in _KINDS.values():
        path = f"/api/v1/namespaces/{{ns}}/{resource}?labelSelector=run%3D{{run}}"
        case.send("GET", path, pick=_summary, eventually=True)


def _summary(body: Any, values: Any) -> Any:
    return [
        {
            "name": item["metadata"]["name"],
            "deleted": "deletionTimestamp" in item["metadata"],
            "finalizers": item["metadata"].get("finalizers", []),
            "owners": [owner["name"] for owner in item["metadata"].get("ownerReferences", ())],
        }
        for item in body["items"]
    ]
