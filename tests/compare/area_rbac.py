"""RBAC: drawn roles, bindings and users; requests of these users, reviews of their rights, escalation and bind."""

import random
from typing import Any

from compare_case import APPLY_PATCH, MERGE_PATCH, CaseBuilder, query

R = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACED = f"{R}/namespaces/{{ns}}"
REVIEWS = "/apis/authorization.k8s.io/v1"
CORE = "/api/v1/namespaces/{ns}"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
_USERS = ("jane", "john", "system:serviceaccount:{ns}:robot")
_VERBS = (
    *("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"),
    *("bind", "escalate", "impersonate", "get", "list", "create", "update", "patch"),
)
_RESOURCES = (
    *(
        "configmaps",
        "configmaps",
        "secrets",
        "deployments",
        "deployments/scale",
        "deployments/status",
        "*/scale",
    ),
    *(
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "*",
        "configmaps/*",
        "*/*",
        "serviceaccounts/token",
    ),
)
_GROUPS = ("", "", "", "apps", "rbac.authorization.k8s.io", "*")
_NAMES = ("a", "b", "{run}-r0")
_URLS = ("/healthz", "/{run}/*", "*", "/version", "/{run}", "/api*")
_REQUESTS = 14


def rights(case: CaseBuilder) -> None:
    """Draw roles and bindings, wait until they are in effect, and send requests of the users."""
    case.namespace()
    for name in ("a", "b"):
        case.prepare("POST", f"{CORE}/configmaps", {"metadata": {"name": name, "labels": {"l": name}}})
    case.prepare("POST", DEPLOYMENTS, _deployment("a"))
    for index in range(case.random.choice((1, 2, 3))):
        _role(case, index)
    for index in range(case.random.choice((1, 2, 3))):
        _binding(case, index)
    _wait_until_in_effect(case)
    for _ in range(_REQUESTS):
        _request(case)


def _role(case: CaseBuilder, index: int) -> None:
    chance = case.random
    kind, path = chance.choice((("Role", f"{NAMESPACED}/roles"), ("ClusterRole", f"{R}/clusterroles")))
    body: dict[str, Any] = {"metadata": {"name": f"{{run}}-r{index}"}, "rules": draw_rules(chance, kind)}
    if kind == "ClusterRole":
        case.clean(f"{path}/{{run}}-r{index}")
    case.send("POST", path, body)


def draw_rules(chance: random.Random, kind: str) -> list[Any]:
    """Draw the rules of a role."""
    return [_rule(chance, kind) for _ in range(chance.choice((1, 1, 2, 3)))]


def _rule(chance: random.Random, kind: str) -> dict[str, Any]:
    verbs = chance.sample(_VERBS, chance.choice((1, 1, 2, 4)))
    if kind == "ClusterRole" and chance.random() < 0.15:
        return {"verbs": verbs, "nonResourceURLs": chance.sample(_URLS, chance.choice((1, 2)))}
    rule = {
        "verbs": verbs,
        "apiGroups": chance.sample(_GROUPS, chance.choice((1, 1, 2))),
        "resources": chance.sample(_RESOURCES, chance.choice((1, 1, 2, 3))),
    }
    if chance.random() < 0.25:
        rule["resourceNames"] = chance.sample(_NAMES, chance.choice((1, 2)))
    if chance.random() < 0.04:
        rule.pop(chance.choice(list(rule)))
    return rule


def _binding(case: CaseBuilder, index: int) -> None:
    chance = case.random
    name = f"{{run}}-b{index}"
    cluster = chance.random() < 0.35
    path = f"{R}/clusterrolebindings" if cluster else f"{NAMESPACED}/rolebindings"
    if cluster:
        case.clean(f"{path}/{name}")
    case.send("POST", path, {"metadata": {"name": name}, **_grant(chance, cluster)})


def _grant(chance: random.Random, cluster: bool) -> dict[str, Any]:
    kind = "ClusterRole" if cluster else chance.choice(("Role", "ClusterRole"))
    role = chance.choice(("{run}-r0", "{run}-r0", "{run}-r1", "{run}-r2", "{run}-missing"))
    if kind == "ClusterRole" and chance.random() < 0.1:
        # Not those that a controller aggregates, such as `view`.
        role = chance.choice(("cluster-admin", "system:basic-user", "system:node-proxier"))
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [_subject(chance) for _ in range(chance.choice((1, 1, 2)))],
    }


def _subject(chance: random.Random) -> dict[str, str]:
    return chance.choice(
        (
            {"kind": "User", "name": "{run}-jane"},
            {"kind": "User", "name": "{run}-john"},
            {"kind": "Group", "name": "{run}-people"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "{ns}"},
            {"kind": "ServiceAccount", "name": "robot"},
            {"kind": "Group", "name": "system:serviceaccounts:{ns}"},
        )
    )


def _wait_until_in_effect(case: CaseBuilder) -> None:
    """Create the last role and binding of each scope, and wait until the authorizer knows them."""
    user = {"kind": "User", "name": "{run}-marker"}
    markers = (
        (
            f"{NAMESPACED}/roles",
            f"{NAMESPACED}/rolebindings",
            "Role",
            {"apiGroups": [""], "resources": ["pods"]},
        ),
        (
            f"{R}/clusterroles",
            f"{R}/clusterrolebindings",
            "ClusterRole",
            {"nonResourceURLs": ["/{run}-marker"]},
        ),
    )
    for roles, bindings, kind, what in markers:
        case.prepare(
            "POST", roles, {"metadata": {"name": "{run}-marker"}, "rules": [{"verbs": ["get"], **what}]}
        )
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "{run}-marker"}
        case.prepare(
            "POST", bindings, {"metadata": {"name": "{run}-marker"}, "roleRef": reference, "subjects": [user]}
        )
    for path in (f"{R}/clusterroles/{{run}}-marker", f"{R}/clusterrolebindings/{{run}}-marker"):
        case.clean(path)
    for attributes in (
        {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}},
        {"nonResourceAttributes": {"verb": "get", "path": "/{run}-marker"}},
    ):
        spec = {"user": "{run}-marker", **attributes}
        case.prepare("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec}, until=_is_allowed)


def _is_allowed(status: int, body: Any) -> bool:
    return status == 201 and body["status"]["allowed"]


def _as_user(case: CaseBuilder) -> dict[str, str]:
    chance = case.random
    user = chance.choice(_USERS)
    headers = {"Impersonate-User": user if ":" in user else f"{{run}}-{user}"}
    if ":" not in user and chance.random() < 0.3:
        headers["Impersonate-Group"] = "{run}-people"
    return headers


def _request(case: CaseBuilder) -> None:
    chance = case.random
    headers = _as_user(case)
    kind = chance.random()
    if kind < 0.5:
        _use(case, headers)
    elif kind < 0.7:
        _review(case, headers)
    else:
        _escalate(case, headers)


def _use(case: CaseBuilder, headers: dict[str, str]) -> None:
    chance = case.random
    name = chance.choice(("a", "b", "new"))
    collection = chance.choice((f"{CORE}/configmaps", f"{CORE}/configmaps", DEPLOYMENTS, f"{CORE}/secrets"))
    path = f"{collection}/{name}"
    body = _deployment(name) if collection == DEPLOYMENTS else {"metadata": {"name": name}}
    applied = {
        "apiVersion": "apps/v1" if collection == DEPLOYMENTS else "v1",
        "kind": {DEPLOYMENTS: "Deployment", f"{CORE}/secrets": "Secret"}.get(collection, "ConfigMap"),
        **body,
    }
    selector = f"metadata.name%3D{chance.choice(('a', 'b'))}" if chance.random() < 0.4 else ""
    chance.choice(
        (
            lambda: case.send("GET", path, headers=headers),
            lambda: case.send("GET", query(collection, fieldSelector=selector), headers=headers),
            lambda: case.send(
                "GET", query(collection, watch=1, timeoutSeconds=1, resourceVersion="x"), headers=headers
            ),
            lambda: case.send("POST", query(collection, dryRun="All"), body, headers),
            lambda: case.send("PUT", query(path, dryRun="All"), body, headers),
            lambda: case.send(
                "PATCH",
                query(path, dryRun="All"),
                {"metadata": {"labels": {"x": "y"}}},
                headers | MERGE_PATCH,
            ),
            lambda: case.send(
                "PATCH",
                query(path, dryRun="All", fieldManager="one", force="true"),
                applied,
                headers | APPLY_PATCH,
            ),
            lambda: case.send("DELETE", query(path, dryRun="All"), headers=headers),
            lambda: case.send(
                "DELETE", query(collection, dryRun="All", fieldSelector=selector), headers=headers
            ),
            lambda: case.send("GET", f"{DEPLOYMENTS}/a/scale", headers=headers),
            lambda: case.send(
                "PATCH",
                query(f"{DEPLOYMENTS}/a/scale", dryRun="All"),
                {"spec": {"replicas": 2}},
                headers | MERGE_PATCH,
            ),
            lambda: case.send(
                "GET",
                chance.choice(("/healthz", "/version", "/{run}/x", "/{run}", "/apis")),
                headers=headers,
                pick=_no_body,
            ),
            lambda: case.send("GET", "/api/v1/nodes", headers=headers),
        )
    )()


def _no_body(body: Any, values: Any) -> Any:
    return body if isinstance(body, dict) and body.get("kind") == "Status" else None


def _review(case: CaseBuilder, headers: dict[str, str]) -> None:
    chance = case.random
    resource, _, sub = chance.choice(_RESOURCES).partition("/")
    attributes: dict[str, Any] = {
        "verb": chance.choice(_VERBS),
        "group": chance.choice(_GROUPS),
        "resource": resource,
        "subresource": sub,
        "namespace": chance.choice(("{ns}", "{ns}", "", "default")),
        "name": chance.choice(("", "a", "b")),
    }
    if chance.random() < 0.15:
        spec: Any = {"nonResourceAttributes": {"verb": "get", "path": chance.choice(_URLS)}}
    else:
        spec = {"resourceAttributes": attributes}
    way = chance.random()
    if way < 0.6:
        case.send("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, headers)
    elif way < 0.8:
        user = {
            "user": headers["Impersonate-User"],
            "groups": [chance.choice(("{run}-people", "system:authenticated"))],
        }
        case.send("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": {**spec, **user}})
    else:
        case.send(
            "POST",
            f"{REVIEWS}/selfsubjectrulesreviews",
            {"spec": {"namespace": "{ns}"}},
            headers,
            pick=_sorted_rules,
        )


def _sorted_rules(body: Any, values: Any) -> Any:
    """Sort the rules: kube-apiserver walks the bindings in no fixed order."""
    status = body.get("status") if isinstance(body, dict) else None
    if not isinstance(status, dict):
        return body
    lists = {name: sorted(map(str, value)) for name, value in status.items() if isinstance(value, list)}
    return {**body, "status": {**status, **lists}}


def _escalate(case: CaseBuilder, headers: dict[str, str]) -> None:
    chance = case.random
    kind = chance.choice(("Role", "ClusterRole"))
    roles = f"{NAMESPACED}/roles" if kind == "Role" else f"{R}/clusterroles"
    cluster = chance.random() < 0.3
    bindings = f"{R}/clusterrolebindings" if cluster else f"{NAMESPACED}/rolebindings"
    role = {"metadata": {"name": "{run}-r0"}, "rules": draw_rules(chance, kind)}
    grant = {"metadata": {"name": chance.choice(("{run}-new", "{run}-b0"))}, **_grant(chance, cluster)}
    new = {**role, "metadata": {"name": "{run}-new"}}
    chance.choice(
        (
            lambda: case.send("POST", query(roles, dryRun="All"), new, headers),
            lambda: case.send("PUT", query(f"{roles}/{{run}}-r0", dryRun="All"), role, headers),
            lambda: case.send(
                "PATCH",
                query(f"{roles}/{{run}}-r0", dryRun="All"),
                {"rules": role["rules"]},
                headers | MERGE_PATCH,
            ),
            lambda: case.send(
                "PATCH",
                query(f"{roles}/{{run}}-r0", dryRun="All"),
                {"metadata": {"labels": {"x": "y"}}},
                headers | MERGE_PATCH,
            ),
            lambda: case.send("POST", query(bindings, dryRun="All"), grant, headers),
            lambda: case.send(
                "PUT", query(f"{bindings}/{grant['metadata']['name']}", dryRun="All"), grant, headers
            ),
            lambda: case.send(
                "PATCH",
                query(f"{bindings}/{{run}}-b0", dryRun="All"),
                {"subjects": grant["subjects"]},
                headers | MERGE_PATCH,
            ),
        )
    )()


def _deployment(name: str) -> dict[str, Any]:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
