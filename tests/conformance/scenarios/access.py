"""Authorization: anonymous users, users without permissions, roles, impersonation, reviews."""

from conformance_exchange import Step

RBAC = "/apis/rbac.authorization.k8s.io/v1"
P = "/api/v1/namespaces/access"
AUTHZ = "/apis/authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"


def role(
    name: str, verbs: list[str], resources: list[str], groups: list[str] | None = None
) -> dict[str, object]:
    rules = [{"apiGroups": groups or [""], "resources": resources, "verbs": verbs}]
    return {"metadata": {"name": name}, "rules": rules}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "access"}}, compared=False),
    Step("unknown-token", "GET", f"{P}/pods", user="garbage"),
    Step("unknown-token-on-health", "GET", "/healthz", user="garbage"),
    Step("nobody-lists", "GET", f"{P}/pods", user="nobody"),
    Step("nobody-on-health", "GET", "/healthz", user="nobody"),
    Step("nobody-discovers", "GET", "/api", user="nobody"),
    Step("jane-lists", "GET", f"{P}/pods", user="jane"),
    Step("jane-lists-everywhere", "GET", "/api/v1/pods", user="jane"),
    Step("jane-gets-node", "GET", "/api/v1/nodes/n1", user="jane"),
    Step("jane-metrics", "GET", "/metrics", user="jane"),
    Step("jane-creates", "POST", f"{P}/configmaps", {}, user="jane"),
    Step("jane-creates-elsewhere", "POST", "/apis/apps/v1/namespaces/access/deployments", {}, user="jane"),
    Step("jane-status", "GET", f"{P}/pods/p/status", user="jane"),
    Step("jane-watches", "GET", f"{P}/configmaps?watch=1", user="jane"),
    Step("jane-deletes-all", "DELETE", f"{P}/configmaps", user="jane"),
    Step(
        "jane-patches",
        "PATCH",
        f"{P}/configmaps/a",
        {},
        {"Content-Type": "application/merge-patch+json"},
        user="jane",
    ),
    Step("jane-unknown-resource", "GET", f"{P}/bogus", user="jane"),
    Step("jane-unknown-group", "GET", "/apis/nope/v1/things", user="jane"),
    Step("who-am-i", "POST", f"{AUTHN}/selfsubjectreviews", {}, user="jane"),
    Step(
        "may-i",
        "POST",
        f"{AUTHZ}/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        user="jane",
    ),
    Step(
        "may-jane",
        "POST",
        f"{AUTHZ}/subjectaccessreviews",
        {
            "spec": {
                "user": "jane",
                "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "access"},
            }
        },
    ),
    Step("bad-token-review", "POST", f"{AUTHN}/tokenreviews", {"spec": {"token": "bad"}}),
    Step("role", "POST", f"{RBAC}/namespaces/access/roles", role("reader", ["get", "list"], ["configmaps"])),
    Step(
        "binding",
        "POST",
        f"{RBAC}/namespaces/access/rolebindings",
        {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "jane"}],
        },
    ),
    Step("jane-may-list", "GET", f"{P}/configmaps", user="jane", until=lambda status, _: status == 200),
    Step("jane-may-not-create", "POST", f"{P}/configmaps", {"metadata": {"name": "x"}}, user="jane"),
    Step("jane-may-not-list-elsewhere", "GET", "/api/v1/namespaces/default/configmaps", user="jane"),
    Step(
        "roles-role",
        "POST",
        f"{RBAC}/clusterroles",
        role("roles", ["*"], ["roles", "clusterroles"], ["rbac.authorization.k8s.io"]),
        compared=False,
    ),
    Step(
        "roles-binding",
        "POST",
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "roles"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "roles"},
            "subjects": [{"kind": "User", "name": "mallory"}],
        },
        compared=False,
    ),
    Step(
        "mallory-reads",
        "GET",
        f"{RBAC}/clusterroles/roles",
        user="mallory",
        until=lambda status, _: status == 200,
    ),
    Step("impersonate", "GET", f"{P}/pods", headers={"Impersonate-User": "bob", "Impersonate-Group": "g1"}),
    Step(
        "impersonate-account",
        "POST",
        f"{AUTHN}/selfsubjectreviews",
        {},
        {"Impersonate-User": "system:serviceaccount:access:sa"},
    ),
    Step("jane-impersonates", "GET", f"{P}/configmaps", headers={"Impersonate-User": "bob"}, user="jane"),
]
