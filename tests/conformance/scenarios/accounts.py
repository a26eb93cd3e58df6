"""Authentication: ServiceAccount tokens, reviews, escalation, certificate requests."""

import base64
import json
from typing import Any

from conformance_exchange import Step

NAMESPACE = "accounts"
N = f"/api/v1/namespaces/{NAMESPACE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"
AUTHZ = "/apis/authorization.k8s.io/v1"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = {"Content-Type": "application/merge-patch+json"}
ROBOT = {"Authorization": "Bearer {token}"}
RBAC_GROUP = "rbac.authorization.k8s.io"
# Asks to become jane, of the people.
REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0NBZ0VBTUNBeER6QU5CZ05WQkFvTUJuQmxiM0JzWlRFTk1Bc0dBMVVF"
    "QXd3RWFtRnVaVEJaTUJNRwpCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkFXbVZQTWsxL0RxYnVTdEcwam5OYzZEdFZDam1TZ0tyNlJ6CnFR"
    "dG9oZEh2SWd2NFppc0xYTzdIMDNyM0M0QVZxRUZDWldBTkNIQ2plWTdkNXhQK2QvU2dBREFLQmdncWhrak8KUFFRREFnTkpBREJHQWlFQWs3VjVy"
    "OVNJcE9TYXBmMlhJeXFjWWhIaVJ1QkxDSWJCYkgveGZEaHpvZllDSVFDVgpiL2dXUW1GQmx5NzBVclVvNFpBY3BKc0lIU1VMSllud3pGRW44SVdl"
    "dEE9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def rule(verbs: list[str], resources: list[str], group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def binding(name: str, kind: str, target: str, user: str = "jane") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": target},
        "subjects": [{"kind": "User", "name": user}],
    }


def claims(body: Any, values: Any) -> Any:
    """Read what a token claims; who issued it and when are the server's own."""
    if "token" not in body.get("status", {}):
        return body
    part = body["status"]["token"].split(".")[1]
    found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    lasts = found["exp"] - found["iat"]
    kept = {key: value for key, value in found.items() if key in ("sub", "kubernetes.io")}
    return {**kept, "lasts": lasts, "names": sorted(found), "spec": body["spec"] | {"audiences": "SOME"}}


def asked(name: str, body: Any, path: str, **more: Any) -> Step:
    return Step(name, "POST", path, body, **more)


def answered(body: Any, values: Any) -> Any:
    """Show what a review says, without the identity of the credential."""
    text = json.dumps(body)
    status = json.loads(text).get("status", body)
    for user in (status.get("user", {}), status.get("userInfo", {})):
        if "extra" in user:
            user["extra"] = sorted(user["extra"])
    return status


TOKENS = [
    Step("account", "POST", f"{N}/serviceaccounts", {"metadata": {"name": "robot"}}),
    Step("token", "POST", f"{N}/serviceaccounts/robot/token", {}, pick=claims),
    Step(
        "token-short",
        "POST",
        f"{N}/serviceaccounts/robot/token",
        {"spec": {"expirationSeconds": 60}},
    ),
    Step(
        "token-kept",
        "POST",
        f"{N}/serviceaccounts/robot/token",
        {"spec": {"expirationSeconds": 900}},
        save={"token": "status.token"},
        compared=False,
    ),
    Step("token-of-missing", "POST", f"{N}/serviceaccounts/nobody/token", {}),
    Step(
        "token-elsewhere",
        "POST",
        f"{N}/serviceaccounts/robot/token",
        {"spec": {"audiences": ["vault"]}},
        save={"elsewhere": "status.token"},
        compared=False,
    ),
    Step(
        "pod",
        "POST",
        f"{N}/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        save={"pod": "metadata.uid"},
        compared=False,
    ),
    Step(
        "token-of-pod-wrong-account",
        "POST",
        f"{N}/serviceaccounts/robot/token",
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "{pod}"}}},
    ),
    Step("whoami", "POST", f"{AUTHN}/selfsubjectreviews", {}, ROBOT, user="nobody", pick=answered),
    Step("robot-lists", "GET", f"{N}/pods", headers=ROBOT, user="nobody"),
    Step(
        "wrong-audience",
        "GET",
        f"{N}/pods",
        headers={"Authorization": "Bearer {elsewhere}"},
        user="nobody",
    ),
    asked("review", {"spec": {"token": "{token}"}}, f"{AUTHN}/tokenreviews", pick=answered),
    asked(
        "review-audience",
        {"spec": {"token": "{elsewhere}", "audiences": ["vault", "x"]}},
        f"{AUTHN}/tokenreviews",
        pick=answered,
    ),
    asked(
        "review-wrong-audience",
        {"spec": {"token": "{elsewhere}", "audiences": ["x"]}},
        f"{AUTHN}/tokenreviews",
        pick=lambda body, _: {**body["status"], "error": body["status"]["error"].partition("[")[0]},
    ),
    Step("delete-account", "DELETE", f"{N}/serviceaccounts/robot", compared=False),
    Step(
        "robot-is-nobody",
        "GET",
        f"{N}/pods",
        headers=ROBOT,
        user="nobody",
        until=lambda status, _: status == 401,
    ),
]
WATCHING = [
    asked(
        "local-review",
        {
            "metadata": {"namespace": NAMESPACE},
            "spec": {
                "user": "jane",
                "resourceAttributes": {"namespace": NAMESPACE, "verb": "get", "resource": "pods"},
            },
        },
        f"/apis/authorization.k8s.io/v1/namespaces/{NAMESPACE}/localsubjectaccessreviews",
    ),
    asked(
        "local-review-elsewhere",
        {
            "metadata": {"namespace": NAMESPACE},
            "spec": {"user": "jane", "resourceAttributes": {"namespace": "x", "verb": "get"}},
        },
        f"/apis/authorization.k8s.io/v1/namespaces/{NAMESPACE}/localsubjectaccessreviews",
    ),
    asked("review-of-nothing", {"spec": {"user": "jane"}}, f"{AUTHZ}/subjectaccessreviews"),
    asked(
        "review-of-nobody",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        f"{AUTHZ}/subjectaccessreviews",
    ),
    asked(
        "review-of-path",
        {
            "spec": {
                "groups": ["system:authenticated"],
                "nonResourceAttributes": {"path": "/api", "verb": "get"},
            }
        },
        f"{AUTHZ}/subjectaccessreviews",
    ),
    asked(
        "review-of-masters",
        {
            "spec": {
                "user": "root",
                "groups": ["system:masters"],
                "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"},
            }
        },
        f"{AUTHZ}/subjectaccessreviews",
    ),
    asked(
        "rules",
        {"spec": {"namespace": NAMESPACE}},
        f"{AUTHZ}/selfsubjectrulesreviews",
        user="jane",
        until=lambda status, body: "secrets" in str(body),
        pick=lambda body, _: {
            "incomplete": body["status"]["incomplete"],
            "resourceRules": sorted(body["status"]["resourceRules"], key=str),
            "nonResourceRules": sorted(body["status"]["nonResourceRules"], key=str),
        },
    ),
]
GRANTING = [
    Step(
        "granting-role",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/roles",
        role(
            "granter",
            rule(["*"], ["roles", "rolebindings"], RBAC_GROUP),
            rule(["get"], ["configmaps"]),
            rule(["get"], ["secrets"], resourceNames=["mine"]),
        ),
    ),
    Step(
        "granting-binding",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        binding("granter", "Role", "granter"),
    ),
    Step(
        "jane-grants-hers",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/roles",
        role("small", rule(["get"], ["configmaps"])),
        user="jane",
        until=lambda status, _: status == 201,
    ),
    Step(
        "jane-grants-more",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/roles",
        role("more", rule(["get", "list"], ["configmaps"]), rule(["get"], ["secrets"])),
        user="jane",
    ),
    Step(
        "jane-adds-more",
        "PATCH",
        f"{RBAC}/namespaces/{NAMESPACE}/roles/small",
        {"rules": [rule(["delete"], ["pods"])]},
        MERGE,
        user="jane",
    ),
    Step(
        "jane-binds-hers",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        binding("small", "Role", "small", "mallory"),
        user="jane",
    ),
    Step(
        "jane-binds-admin",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        binding("admin", "ClusterRole", "cluster-admin", "mallory"),
        user="jane",
    ),
    Step(
        "jane-binds-missing",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        binding("none", "Role", "none", "mallory"),
        user="jane",
    ),
    Step(
        "binder-role",
        "POST",
        f"{RBAC}/clusterroles",
        role(
            "accounts-binder",
            rule(["bind"], ["clusterroles"], RBAC_GROUP, resourceNames=["edit"]),
            rule(["escalate"], ["roles"], RBAC_GROUP),
        ),
        compared=False,
    ),
    Step(
        "binder-binding",
        "POST",
        f"{RBAC}/clusterrolebindings",
        binding("accounts-binder", "ClusterRole", "accounts-binder"),
        compared=False,
    ),
    Step(
        "jane-may-bind",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
        binding("edit", "ClusterRole", "edit", "mallory"),
        user="jane",
        until=lambda status, _: status == 201,
    ),
    Step(
        "jane-may-escalate",
        "POST",
        f"{RBAC}/namespaces/{NAMESPACE}/roles",
        role("escalated", rule(["*"], ["*"])),
        user="jane",
    ),
    Step(
        "change-role-ref",
        "PATCH",
        f"{RBAC}/namespaces/{NAMESPACE}/rolebindings/small",
        {"roleRef": {"name": "granter"}},
        MERGE,
    ),
    Step("aggregate", "GET", f"{RBAC}/clusterroles/admin", pick=lambda body, _: body["aggregationRule"]),
    Step(
        "impersonate-group-alone",
        "GET",
        f"{N}/pods",
        headers={"Impersonate-Group": "g"},
    ),
    Step(
        "impersonate-extra",
        "POST",
        f"{AUTHN}/selfsubjectreviews",
        {},
        {"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Extra-scopes": "a"},
    ),
]


def csr(name: str, **spec: Any) -> dict[str, Any]:
    found = {
        "request": REQUEST,
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
        **spec,
    }
    return {"metadata": {"name": name}, "spec": found}


def approval(kind: str, status: str = "True") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}]}}


def reported(body: Any, values: Any) -> Any:
    """Leave out what the administrator's credentials say of themselves."""
    if body.get("kind") == "CertificateSigningRequest":
        body["spec"].pop("extra", None)
        body["spec"].pop("uid", None)
    return body


REQUESTS = [
    Step("csr", "POST", CSRS, csr("accounts"), pick=reported),
    Step("csr-bad-request", "POST", CSRS, csr("accounts-bad", request="bm8=")),
    Step("csr-no-signer", "POST", CSRS, csr("accounts-bad", signerName="")),
    Step("csr-bad-usage", "POST", CSRS, csr("accounts-bad", usages=["nope"])),
    Step(
        "csr-approve-and-deny",
        "PATCH",
        f"{CSRS}/accounts/approval",
        {
            "status": {
                "conditions": [
                    condition
                    for kind in ("Approved", "Denied")
                    for condition in approval(kind)["status"]["conditions"]
                ]
            }
        },
        MERGE,
        pick=reported,
    ),
    Step("csr-bad-signer", "POST", CSRS, csr("accounts-bad", signerName="ex/Bad_")),
    Step("csr-approve", "PATCH", f"{CSRS}/accounts/approval", approval("Approved"), MERGE, pick=reported),
    Step("csr-deny-approved", "PATCH", f"{CSRS}/accounts/approval", approval("Denied"), MERGE, pick=reported),
    Step("csr-approve-false", "PATCH", f"{CSRS}/accounts/approval", approval("Approved", "False"), MERGE),
    Step(
        "csr-approve-in-status",
        "PATCH",
        f"{CSRS}/accounts/status",
        approval("Approved"),
        MERGE,
        pick=reported,
    ),
    Step(
        "csr-bad-certificate", "PATCH", f"{CSRS}/accounts/status", {"status": {"certificate": "bm8="}}, MERGE
    ),
    Step("csr-jane", "POST", CSRS, csr("accounts-jane"), user="jane"),
    Step("csr-by-signer", "GET", f"{CSRS}?fieldSelector=spec.signerName%3Dnone"),
    Step("end-csr", "DELETE", f"{CSRS}/accounts", compared=False),
]

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *TOKENS,
    *GRANTING,
    *WATCHING,
    *REQUESTS,
    Step("end-binder", "DELETE", f"{RBAC}/clusterrolebindings/accounts-binder", compared=False),
    Step("end-binder-role", "DELETE", f"{RBAC}/clusterroles/accounts-binder", compared=False),
]
