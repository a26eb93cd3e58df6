"""Leaving an old version of a custom resource behind: stored again, removed from the stored ones, no longer defined."""

from typing import Any

from conformance_exchange import Step

C = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "moves.migration.ex.io"
V1 = "/apis/migration.ex.io/v1/moves"
V2 = "/apis/migration.ex.io/v2/moves"
MERGE = {"Content-Type": "application/merge-patch+json"}
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str, *, stored: bool, served: bool = True) -> dict[str, Any]:
    return {"name": name, "served": served, "storage": stored, "schema": {"openAPIV3Schema": SCHEMA}}


def change(step: str, *versions: dict[str, Any]) -> Step:
    body = {"spec": {"versions": list(versions)}}
    return Step(step, "PATCH", f"{C}/{NAME}", body, MERGE, pick=versions_of)


def versions_of(body: Any, values: Any) -> Any:
    """Show which versions there are and which are stored, or the refusal."""
    if body.get("kind") == "Status":
        return body
    return {
        "versions": [[item["name"], item["served"], item["storage"]] for item in body["spec"]["versions"]],
        "stored": body["status"]["storedVersions"],
    }


def move(name: str, number: int) -> dict[str, Any]:
    return {
        "apiVersion": f"migration.ex.io/v{number}",
        "kind": "Move",
        "metadata": {"name": name},
        "content": name,
    }


DEFINITION = {
    "metadata": {"name": NAME},
    "spec": {
        "group": "migration.ex.io",
        "scope": "Cluster",
        "names": {"plural": "moves", "kind": "Move"},
        "versions": [version("v1", stored=True), version("v2", stored=False)],
    },
}


def ready(status: int, body: Any) -> bool:
    return status == 200


STEPS = [
    Step("define", "POST", C, DEFINITION, compared=False),
    Step("served", "GET", V2, until=ready, compared=False),
    Step("first", "POST", V1, move("first", 1)),
    change("store-new", version("v1", stored=False), version("v2", stored=True)),
    Step("served-new", "GET", V2, until=ready, compared=False),
    Step("second", "POST", V2, move("second", 2), until=lambda status, _: status == 201, compared=False),
    Step("old-as-new", "GET", f"{V2}/first"),
    change("drop-too-early", version("v2", stored=True)),
    Step(
        "strike-missing",
        "PATCH",
        f"{C}/{NAME}/status",
        {"status": {"storedVersions": ["v1"]}},
        MERGE,
        pick=versions_of,
    ),
    Step(
        "strike-unknown",
        "PATCH",
        f"{C}/{NAME}/status",
        {"status": {"storedVersions": ["v2", "v9"]}},
        MERGE,
        pick=versions_of,
    ),
    *(
        Step(f"store-{name}-again", "PATCH", f"{V2}/{name}", {"content": name}, MERGE)
        for name in ("first", "second")
    ),
    Step(
        "strike",
        "PATCH",
        f"{C}/{NAME}/status",
        {"status": {"storedVersions": ["v2"]}},
        MERGE,
        pick=versions_of,
    ),
    change("unserve", version("v1", stored=False, served=False), version("v2", stored=True)),
    Step("unserved", "GET", V1, until=lambda status, _: status == 404),
    change("drop", version("v2", stored=True)),
    Step("left", "GET", V2, until=ready),
    Step("group", "GET", "/apis/migration.ex.io", until=lambda _, body: len(body["versions"]) == 1),
    Step("end", "DELETE", f"{C}/{NAME}", compared=False),
]

# An object that is left in a version that the definition does not have any more.
LOST = "losses.migration.ex.io"
LOSSES = "/apis/migration.ex.io/v2/losses"


def lost_versions(step: str, *versions: dict[str, Any]) -> Step:
    return Step(step, "PATCH", f"{C}/{LOST}", {"spec": {"versions": list(versions)}}, MERGE, compared=False)


STEPS += [
    Step(
        "lost-define",
        "POST",
        C,
        {
            "metadata": {"name": LOST},
            "spec": DEFINITION["spec"] | {"names": {"plural": "losses", "kind": "Loss"}},
        },
        compared=False,
    ),
    Step("lost-served", "GET", LOSSES, until=ready, compared=False),
    Step(
        "lost-create",
        "POST",
        "/apis/migration.ex.io/v1/losses",
        {"apiVersion": "migration.ex.io/v1", "kind": "Loss", "metadata": {"name": "lost"}},
    ),
    lost_versions("lost-store-new", version("v1", stored=False), version("v2", stored=True)),
    Step(
        "lost-strike",
        "PATCH",
        f"{C}/{LOST}/status",
        {"status": {"storedVersions": ["v2"]}},
        MERGE,
        pick=versions_of,
    ),
    lost_versions("lost-drop", version("v2", stored=True)),
    Step("lost-get", "GET", f"{LOSSES}/lost", until=lambda status, _: status != 200),
    # Until the first list has failed, the message has no reason.
    Step("lost-list", "GET", LOSSES, until=lambda status, body: "failed to list" in body.get("message", "")),
    Step("lost-patch", "PATCH", f"{LOSSES}/lost", {"content": "x"}, MERGE),
    Step("lost-delete", "DELETE", f"{LOSSES}/lost"),
    lost_versions("lost-restore", version("v1", stored=False), version("v2", stored=True)),
    Step("lost-get-restored", "GET", f"{LOSSES}/lost", until=ready),
    Step("lost-end", "DELETE", f"{C}/{LOST}", compared=False),
]
