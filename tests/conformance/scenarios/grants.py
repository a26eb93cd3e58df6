"""RBAC rules for single names and for writes that create: what they allow, and what they do not."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "grants"
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
SELECTED = "fieldSelector=metadata.name%3Done"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def grant(user: str, *rules: dict[str, Any]) -> tuple[Step, Step]:
    """Create a role and bind it to a user."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    binding = {"metadata": {"name": user}, "roleRef": reference, "subjects": [{"kind": "User", "name": user}]}
    return (
        Step(
            f"role-of-{user}",
            "POST",
            f"{RBAC}/roles",
            {"metadata": {"name": user}, "rules": rules},
            compared=False,
        ),
        Step(f"binding-of-{user}", "POST", f"{RBAC}/rolebindings", binding, compared=False),
    )


def applied(name: str, kind: str = "ConfigMap") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {}}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *grant(
        "jane",
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["one"],
            "verbs": ["get", "list", "watch", "deletecollection"],
        },
    ),
    *grant(
        "mallory",
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "patch", "update", "create"]},
    ),
    *(
        Step(f"map-{name}", "POST", MAPS, {"metadata": {"name": name}}, compared=False)
        for name in ("one", "two")
    ),
    Step("list-of-a-name", "GET", f"{MAPS}?{SELECTED}", user="jane", until=lambda status, _: status == 200),
    Step("list-of-a-name-by-equals", "GET", f"{MAPS}?fieldSelector=metadata.name%3D%3Done", user="jane"),
    Step("list-of-another-name", "GET", f"{MAPS}?fieldSelector=metadata.name%3Dtwo", user="jane"),
    Step("list-of-no-name", "GET", MAPS, user="jane"),
    Step("list-of-all-but-a-name", "GET", f"{MAPS}?fieldSelector=metadata.name%21%3Done", user="jane"),
    Step(
        "list-of-a-name-and-a-namespace",
        "GET",
        f"{MAPS}?fieldSelector=metadata.name%3Done%2Cmetadata.namespace%3D{NAMESPACE}",
        user="jane",
    ),
    Step(
        "list-of-a-name-twice",
        "GET",
        f"{MAPS}?fieldSelector=metadata.name%3Done%2Cmetadata.name%3Dtwo",
        user="jane",
    ),
    Step("list-of-a-broken-selector", "GET", f"{MAPS}?fieldSelector=metadata.name", user="jane"),
    Step("list-of-a-name-in-all-namespaces", "GET", f"/api/v1/configmaps?{SELECTED}", user="jane"),
    Step("watch-of-a-name", "GET", f"{MAPS}?watch=1&timeoutSeconds=1&{SELECTED}", user="jane"),
    Step("watch-of-no-name", "GET", f"{MAPS}?watch=1&timeoutSeconds=1", user="jane"),
    Step("deletion-of-a-name", "DELETE", f"{MAPS}?{SELECTED}&dryRun=All", user="jane"),
    Step("deletion-of-no-name", "DELETE", f"{MAPS}?dryRun=All", user="jane"),
    Step("get-with-a-selector", "GET", f"{MAPS}/two?{SELECTED}", user="jane"),
    Step(
        "apply-creates-without-create",
        "PATCH",
        f"{MAPS}/new?fieldManager=m",
        applied("new"),
        APPLY,
        user="mallory",
    ),
    Step(
        "apply-creates-without-create-in-a-dry-run",
        "PATCH",
        f"{MAPS}/new?fieldManager=m&dryRun=All",
        applied("new"),
        APPLY,
        user="mallory",
    ),
    Step(
        "apply-changes-without-create",
        "PATCH",
        f"{MAPS}/one?fieldManager=m",
        applied("one"),
        APPLY,
        user="mallory",
    ),
    Step("merge-patch-of-nothing", "PATCH", f"{MAPS}/new", {"data": {}}, MERGE, user="mallory"),
    Step("put-of-nothing", "PUT", f"{MAPS}/new", {"metadata": {"name": "new"}}, user="mallory"),
    Step(
        "apply-creates-with-create",
        "PATCH",
        f"{SECRETS}/new?fieldManager=m",
        applied("new", "Secret"),
        APPLY,
        user="mallory",
    ),
    Step(
        "put-creates-lease-without-create",
        "PUT",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/new",
        {"metadata": {"name": "new"}, "spec": {}},
        user="mallory",
    ),
    *grant(
        "people",
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]},
    ),
    Step(
        "binding-of-all-people",
        "POST",
        f"{RBAC}/rolebindings",
        {
            "metadata": {"name": "all-people"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "people"},
            "subjects": [{"kind": "Group", "name": "people"}],
        },
        compared=False,
    ),
    Step(
        "put-creates-with-update-alone",
        "PUT",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/new",
        {"metadata": {"name": "new"}, "spec": {}},
        user="mallory",
        until=lambda _, body: "cannot update" not in body.get("message", ""),
    ),
    Step(
        "extra-with-a-comma",
        "POST",
        REVIEWS,
        {},
        {"Impersonate-User": "bob", "Impersonate-Extra-Key1": "one,two"},
    ),
    Step(
        "extra-with-an-escaped-key",
        "POST",
        REVIEWS,
        {},
        {"Impersonate-User": "bob", "Impersonate-Extra-example.com%2fKey": "one"},
    ),
    Step(
        "groups-with-a-comma",
        "POST",
        REVIEWS,
        {},
        {"Impersonate-User": "bob", "Impersonate-Group": "one,two"},
    ),
    Step(
        "review-as-a-table",
        "POST",
        ACCESS_REVIEWS,
        {"spec": {"resourceAttributes": {"verb": "get"}}},
        {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    ),
    Step(
        "review-of-a-selected-name",
        "POST",
        ACCESS_REVIEWS,
        {
            "spec": {
                "resourceAttributes": {
                    "namespace": NAMESPACE,
                    "verb": "list",
                    "resource": "configmaps",
                    "name": "one",
                }
            }
        },
        user="jane",
    ),
]
