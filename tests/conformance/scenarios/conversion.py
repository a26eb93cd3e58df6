"""Versions that a webhook converts: read, listed, watched, written and applied in each of them."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

C = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "conversion"
V1 = f"/apis/conv.ex.io/v1/namespaces/{NAMESPACE}/boxes"
V2 = f"/apis/conv.ex.io/v2/namespaces/{NAMESPACE}/boxes"
# Deletes what cannot be read, and only that.
UNREAD = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}

STATUS = {"type": "object", "properties": {"ready": {"type": "boolean"}}}
FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "maximum": 100},
                "color": {"type": "string", "default": "red"},
            },
        },
        "status": STATUS,
    },
}
DEEP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "dimensions": {"type": "object", "properties": {"size": {"type": "integer"}}},
                "color": {"type": "string"},
                "shape": {"type": "string", "default": "cube"},
            },
        },
        "status": STATUS,
    },
}


def version(
    name: str, schema: dict[str, Any], path: str, *, storage: bool, served: bool = True
) -> dict[str, Any]:
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": path}],
        "selectableFields": [{"jsonPath": path}],
    }


def versions(stored: str) -> list[dict[str, Any]]:
    return [
        version("v1", FLAT, ".spec.size", storage=stored == "v1"),
        version("v2", DEEP, ".spec.dimensions.size", storage=stored == "v2"),
    ]


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boxes.conv.ex.io"},
    "spec": {
        "group": "conv.ex.io",
        "scope": "Namespaced",
        "names": {"plural": "boxes", "kind": "Box"},
        "versions": versions("v1"),
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://{hook}/convert", "caBundle": "{ca}"},
                "conversionReviewVersions": ["v1"],
            },
        },
    },
}
UNSERVED = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {
            "service": {"namespace": NAMESPACE, "name": "none"},
            "url": None,
            "caBundle": "{ca}",
        },
        "conversionReviewVersions": ["v1"],
    },
}


def flat(name: str, size: int, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "conv.ex.io/v1", "kind": "Box", "metadata": metadata, "spec": {"size": size}}


def deep(name: str, size: int, **labels: str) -> dict[str, Any]:
    spec = {"dimensions": {"size": size}}
    return {**flat(name, size, **labels), "apiVersion": "conv.ex.io/v2", "spec": spec}


def established(status: int, body: Any) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


def served(status: int, body: Any) -> bool:
    return status == 200


def stored_now(status: int, body: Any) -> bool:
    return status == 201


BREAKS = (
    "name",
    "namespace",
    "uid",
    "labels",
    "finalizers",
    "version",
    "kind",
    "metadata",
    "count",
    "fail",
    "fail-silent",
    "http",
    "garbage",
    "review-uid",
)
WATCH = "watch=1&timeoutSeconds=2&allowWatchBookmarks=false"

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    Step("define", "POST", C, CRD, compared=False),
    Step("established", "GET", f"{C}/boxes.conv.ex.io", until=established, compared=False),
    Step("served-v1", "GET", V1, until=served, compared=False),
    Step("served-v2", "GET", V2, until=served, compared=False),
    Step("create-stored", "POST", V1, flat("a", 1)),
    Step("create-other", "POST", V2, deep("b", 2)),
    Step("get-stored", "GET", f"{V1}/a"),
    Step("get-converted", "GET", f"{V2}/a"),
    Step("get-back", "GET", f"{V1}/b"),
    Step("list-stored", "GET", V1),
    Step("list-converted", "GET", V2),
    Step("list-limited", "GET", f"{V2}?limit=1"),
    Step("list-table", "GET", V2, headers=TABLE),
    Step("list-table-stored", "GET", V1, headers=TABLE),
    Step("list-metadata", "GET", V2, headers=PARTIAL),
    Step("list-selected", "GET", f"{V2}?fieldSelector=spec.dimensions.size=2"),
    Step("list-selected-stored", "GET", f"{V1}?fieldSelector=spec.size=1"),
    Step("get-table", "GET", f"{V2}/a", headers=TABLE),
    Step("dry-run", "POST", f"{V2}?dryRun=All", deep("dry", 3)),
    Step("merge-patch", "PATCH", f"{V2}/a", {"spec": {"dimensions": {"size": 5}}}, MERGE),
    Step(
        "json-patch",
        "PATCH",
        f"{V2}/a",
        [{"op": "replace", "path": "/spec/dimensions/size", "value": 6}],
        JSON,
    ),
    Step("no-change", "PATCH", f"{V2}/a", {"spec": {"dimensions": {"size": 6}}}, MERGE),
    Step("status", "PATCH", f"{V2}/a/status", {"status": {"ready": True}}, MERGE),
    Step("put-read", "GET", f"{V2}/b", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step("put", "PUT", f"{V2}/b", {**deep("b", 20), "metadata": {"name": "b", "resourceVersion": "{rv}"}}),
    Step(
        "put-stale", "PUT", f"{V2}/b", {**deep("b", 21), "metadata": {"name": "b", "resourceVersion": "{rv}"}}
    ),
    Step("other-schema", "PATCH", f"{V2}/b", {"spec": {"dimensions": {"size": 1000}}}, MERGE),
    Step("put-back", "PATCH", f"{V2}/b", {"spec": {"dimensions": {"size": 2}}}, MERGE),
    Step("apply-one", "PATCH", f"{V1}/c?fieldManager=one", flat("c", 7), APPLY),
    Step("apply-two-conflict", "PATCH", f"{V2}/c?fieldManager=two", deep("c", 8), APPLY),
    Step("apply-two-forced", "PATCH", f"{V2}/c?fieldManager=two&force=true", deep("c", 8), APPLY),
    Step(
        "apply-two-more",
        "PATCH",
        f"{V2}/c?fieldManager=two",
        {**deep("c", 8), "spec": {"dimensions": {"size": 8}, "color": "blue"}},
        APPLY,
    ),
    Step("apply-one-again", "PATCH", f"{V1}/c?fieldManager=one", flat("c", 7), APPLY),
    Step("apply-one-agreeing", "PATCH", f"{V1}/c?fieldManager=one", flat("c", 8), APPLY),
    Step(
        "apply-two-leaves",
        "PATCH",
        f"{V2}/c?fieldManager=two",
        {**deep("c", 8), "spec": {"color": "blue"}},
        APPLY,
    ),
    Step("apply-read-v1", "GET", f"{V1}/c"),
    Step("apply-read-v2", "GET", f"{V2}/c"),
    Step("revision", "GET", V1, save={"revision": "metadata.resourceVersion"}, compared=False),
    Step(
        "watch-converted",
        "GET",
        f"{V2}?{WATCH}&resourceVersion={{revision}}",
        during=(
            Step("watch-add", "POST", V1, flat("w", 1), compared=False),
            Step("watch-change", "PATCH", f"{V1}/w", {"spec": {"size": 2}}, MERGE, compared=False),
            Step("watch-remove", "DELETE", f"{V1}/w", compared=False),
        ),
    ),
    Step(
        "watch-stored",
        "GET",
        f"{V1}?{WATCH}&resourceVersion={{revision}}",
    ),
    Step("watch-state", "GET", f"{V2}?{WATCH}&fieldSelector=metadata.name=a"),
    Step("finalized", "POST", V2, {**deep("f", 1), "metadata": {"name": "f", "finalizers": ["ex.io/f"]}}),
    Step("delete-finalized", "DELETE", f"{V2}/f"),
    Step("release", "PATCH", f"{V2}/f", {"metadata": {"finalizers": None}}, MERGE),
    *(Step(f"make-{name}", "POST", V1, flat(f"x-{name}", 1, **{"break": name})) for name in BREAKS),
    *(Step(f"read-{name}", "GET", f"{V2}/x-{name}") for name in BREAKS),
    Step("list-broken", "GET", f"{V2}?labelSelector=break=name"),
    Step("write-broken", "POST", V2, deep("y", 1, **{"break": "fail"})),
    Step("patch-broken", "PATCH", f"{V2}/x-fail", {"spec": {"color": "x"}}, MERGE),
    Step("delete-broken", "DELETE", f"{V2}/x-fail"),
    Step("delete-unread-healthy", "DELETE", f"{V1}/x-fail?{UNREAD}"),
    Step("delete-unread-dry-run-healthy", "DELETE", f"{V1}/x-fail?{UNREAD}&dryRun=All"),
    Step("delete-unread-missing", "DELETE", f"{V2}/none?{UNREAD}"),
    Step(
        "delete-unread-in-time",
        "DELETE",
        f"{V2}/x-fail?{UNREAD}&gracePeriodSeconds=0&propagationPolicy=Orphan",
    ),
    Step("delete-unread-all", "DELETE", f"{V2}?{UNREAD}"),
    Step("delete-unread-dry-run", "DELETE", f"{V2}/x-fail?{UNREAD}&dryRun=All"),
    Step("delete-unread", "DELETE", f"{V2}/x-fail?{UNREAD}"),
    Step("deleted-unread", "GET", f"{V1}/x-fail"),
    *(Step(f"remove-{name}", "DELETE", f"{V1}/x-{name}", compared=False) for name in BREAKS),
    Step(
        "store-v2",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"versions": versions("v2")}},
        MERGE,
        compared=False,
    ),
    Step("stored-versions", "GET", f"{C}/boxes.conv.ex.io", compared=False),
    Step("served-again-v1", "GET", V1, until=served, compared=False),
    Step("served-again-v2", "GET", V2, until=served, compared=False),
    Step("new-in-v2", "POST", V1, flat("n", 9), until=stored_now, compared=False),
    # While the real server opens the storage of the changed kind again, it refuses lists.
    Step("mixed-v1", "GET", V1, until=served),
    Step("mixed-v2", "GET", V2, until=served),
    Step(
        "drop-stored",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"versions": [version("v2", DEEP, ".spec.dimensions.size", storage=True)]}},
        MERGE,
    ),
    Step(
        "unserve", "PATCH", f"{C}/boxes.conv.ex.io", {"spec": {"conversion": UNSERVED}}, MERGE, compared=False
    ),
    Step(
        "unreachable",
        "GET",
        f"{V1}/n",
        until=lambda status, body: status == 500 and "none" in str(body),
    ),
    Step(
        "bad-review-versions",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"conversion": {"webhook": {"conversionReviewVersions": ["v9"]}}}},
        MERGE,
    ),
    Step(
        "bad-strategy",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"conversion": {"strategy": "Magic"}}},
        MERGE,
    ),
    Step(
        "bad-none-with-webhook",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"conversion": {"strategy": "None"}}},
        MERGE,
    ),
    Step(
        "bad-client",
        "PATCH",
        f"{C}/boxes.conv.ex.io",
        {"spec": {"conversion": {"webhook": {"clientConfig": {"url": "http://x", "service": None}}}}},
        MERGE,
    ),
    Step("end", "DELETE", f"{C}/boxes.conv.ex.io", compared=False),
]
