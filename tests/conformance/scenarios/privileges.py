"""Privileges beyond RBAC verbs: granting roles, approving and signing certificate requests, and when each is checked."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "privileges"
RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{RBAC_GROUP}/v1"
ROLES = f"{RBAC}/namespaces/{NAMESPACE}/roles"
BINDINGS = f"{RBAC}/namespaces/{NAMESPACE}/rolebindings"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
POLICY_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MERGE = {"Content-Type": "application/merge-patch+json"}
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
# Requests a certificate for mallory in the group system:masters.
MASTERS_REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIbU1JR05BZ0VBTUNzeEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWE"
    "p6TVJBd0RnWURWUVFEREFkdApZV3hzYjNKNU1Ga3dFd1lIS29aSXpqMENBUVlJS29aSXpqMERBUWNEUWdBRTVtM000REEvSzl5ZEY5ZjFTbEdL"
    "CnZ3U2l4YXJSUUlzZXNLTEZ2WFBkSG9yNDVpMkdDODFOaXBraERtU3hkUTRRUkkwUXJ0dkFsWHYxelRmRVZNc28KTTZBQU1Bb0dDQ3FHU000OU"
    "JBTUNBMGdBTUVVQ0lFMnZUL3FBdjVjNS9kZ1EzOWlaL3NLeGhpcHE1ZVNPbWdpbwpTQzBsWG9xRUFpRUFxcWlod1M3OE1FQ1o4bGVKVXY3ZFFW"
    "eFlhSzBiVmMzOUlkMEFQQTROL3ZvPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
BUNDLES = "/apis/certificates.k8s.io/v1/clustertrustbundles"
POD_REQUESTS = f"/apis/certificates.k8s.io/v1/namespaces/{NAMESPACE}/podcertificaterequests"
AUTHORITY = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBHjCBxKADAgECAgEBMAoGCCqGSM49BAMCMA0xCzAJBgNVBAMMAmNhMCAXDTI2\n"
    "MDEwMTAwMDAwMFoYDzIxMjYwMTAxMDAwMDAwWjANMQswCQYDVQQDDAJjYTBZMBMG\n"
    "ByqGSM49AgEGCCqGSM49AwEHA0IABOwFj0wQfMnD2Adn55qvMwgZqX80l1WUK0MC\n"
    "5ChcIKNFcvchDyrKSdXdnPw/2SEFlky0TiqczPCl2DVgp6WMC9+jEzARMA8GA1Ud\n"
    "EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAPCNXEqFFQanp8aW7k1aT9qY\n"
    "owiZbOCCgSfamTPPhIvvAiEA6fKDrWnwyPbd28yGtiYS3c9hDGM69LEp84Zgm8lz\n"
    "ie0=\n"
    "-----END CERTIFICATE-----\n"
)
# An empty PKCS #10 request, as kubelets send.
STUB = (
    "MIG6MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGhGB6kwSZ6odIjo5b8EvUQKj0b9Nkm6prVQzAwD0OL9FajtotcSYj8INM3SQF"
    "s27Xl+3mgcCthCYZW8SdIcpWigADAKBggqhkjOPQQDAgNIADBFAiEAvwiGQD8kdeJPl1zhm9esqHUJNVClrPivZ6T/y/h/140CIBisrMPyRpIR"
    "2HdFvXRkSYDIQ65SMjfLEBdUKw68Qeyp"
)
JANE = "privileges-jane"


def rule(verbs: list[str], resources: list[str], group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, kind: str, target: str, user: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": target},
        "subjects": [{"kind": "User", "name": user}],
    }


HELD = rule(["get"], ["configmaps"])
UNHELD = rule(["delete"], ["nodes"])
# A rule needs verbs: fails validation.
INVALID = {"apiGroups": [""], "resources": ["configmaps"]}
JANES_RULES = (
    HELD,
    rule(["get", "create", "update", "patch"], ["roles", "rolebindings", "clusterroles"], RBAC_GROUP),
    rule(["*"], ["certificatesigningrequests"], "certificates.k8s.io"),
    rule(
        ["update", "patch"],
        ["certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "certificates.k8s.io",
    ),
    rule(["*"], ["clustertrustbundles", "podcertificaterequests/status"], "certificates.k8s.io"),
)

ESCALATION = [
    Step("janes-role", "POST", CLUSTER_ROLES, role(JANE, *JANES_RULES), compared=False),
    Step(
        "janes-binding",
        "POST",
        f"{RBAC}/clusterrolebindings",
        binding(JANE, "ClusterRole", JANE, "jane"),
        compared=False,
    ),
    Step("held", "POST", ROLES, role("held", HELD), user="jane", until=lambda status, _: status == 201),
    Step("unheld-and-invalid", "POST", ROLES, role("bad", UNHELD, INVALID), user="jane"),
    Step("held-and-invalid", "POST", ROLES, role("bad", HELD, INVALID), user="jane"),
    Step("unheld-dry-run", "POST", f"{ROLES}?dryRun=All", role("dry", UNHELD), user="jane"),
    Step(
        "unheld-generated-name",
        "POST",
        ROLES,
        {"metadata": {"generateName": "unheld-"}, "rules": [UNHELD]},
        user="jane",
    ),
    Step("unheld-and-existing", "POST", ROLES, role("held", UNHELD), user="jane"),
    Step("big", "POST", ROLES, role("big", UNHELD), save={"revision": "metadata.resourceVersion"}),
    Step(
        "label-of-unheld", "PATCH", f"{ROLES}/big", {"metadata": {"labels": {"a": "b"}}}, MERGE, user="jane"
    ),
    Step(
        "finalizer-of-unheld",
        "PATCH",
        f"{ROLES}/big",
        {"metadata": {"finalizers": ["example.com/hold"]}},
        MERGE,
        user="jane",
    ),
    Step(
        "no-finalizer-of-unheld",
        "PATCH",
        f"{ROLES}/big",
        {"metadata": {"finalizers": []}},
        MERGE,
        user="jane",
    ),
    Step(
        "unheld-with-old-revision",
        "PUT",
        f"{ROLES}/held",
        {**role("held", UNHELD), "metadata": {"name": "held", "resourceVersion": "{revision}"}},
        user="jane",
    ),
    Step("fewer-rules-of-unheld", "PATCH", f"{ROLES}/big", {"rules": [HELD]}, MERGE, user="jane"),
    Step(
        "aggregation",
        "POST",
        CLUSTER_ROLES,
        role(
            "privileges-aggregated",
            aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        ),
        user="jane",
    ),
    Step(
        "empty-aggregation",
        "POST",
        f"{CLUSTER_ROLES}?dryRun=All",
        role("privileges-aggregated", aggregationRule={"clusterRoleSelectors": []}),
        user="jane",
    ),
    Step(
        "bind-missing-cluster-role",
        "POST",
        BINDINGS,
        binding("b", "ClusterRole", "none-such", "x"),
        user="jane",
    ),
    Step("bind-missing-role", "POST", BINDINGS, binding("b", "Role", "none-such", "x"), user="jane"),
    Step("bind-unknown-kind", "POST", BINDINGS, binding("b", "Recipe", "none-such", "x"), user="jane"),
    Step(
        "bind-dry-run",
        "POST",
        f"{BINDINGS}?dryRun=All",
        binding("b", "ClusterRole", "cluster-admin", "x"),
        user="jane",
    ),
    Step("bind-held", "POST", BINDINGS, binding("held", "Role", "held", "x"), user="jane"),
    Step("widen", "PATCH", f"{ROLES}/held", {"rules": [UNHELD]}, MERGE),
    Step(
        "label-of-unheld-binding",
        "PATCH",
        f"{BINDINGS}/held",
        {"metadata": {"labels": {"a": "b"}}},
        MERGE,
        user="jane",
    ),
]

POLICY = [
    Step(
        "policy",
        "POST",
        POLICIES,
        {
            "metadata": {"name": "privileges"},
            "spec": {
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [RBAC_GROUP],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["roles"],
                        }
                    ]
                },
                "validations": [{"expression": "false", "message": "no roles"}],
            },
        },
        compared=False,
    ),
    Step(
        "policy-binding",
        "POST",
        POLICY_BINDINGS,
        {
            "metadata": {"name": "privileges"},
            "spec": {"policyName": "privileges", "validationActions": ["Deny"]},
        },
        compared=False,
    ),
    Step(
        "held-and-denied",
        "POST",
        f"{ROLES}?dryRun=All",
        role("denied", HELD),
        user="jane",
        until=lambda status, _: status != 201,
    ),
    Step("unheld-and-denied", "POST", f"{ROLES}?dryRun=All", role("denied", UNHELD), user="jane"),
    Step("end-policy-binding", "DELETE", f"{POLICY_BINDINGS}/privileges", compared=False),
    Step("end-policy", "DELETE", f"{POLICIES}/privileges", compared=False),
    # The server applies a policy for a moment after it was deleted, also to the requests of the next scenario.
    Step(
        "policy-ended",
        "POST",
        f"{ROLES}?dryRun=All",
        role("ended", UNHELD),
        until=lambda status, _: status == 201,
        compared=False,
    ),
]


def csr(name: str, **spec: Any) -> dict[str, Any]:
    found = {"request": MASTERS_REQUEST, "signerName": "example.com/serving", "usages": ["client auth"]}
    return {"metadata": {"name": name}, "spec": {**found, **spec}}


def condition(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m"}]}}


def without_identity(body: Any, values: Any) -> Any:
    """Leave out what differs between the credentials of the two servers."""
    if body.get("kind") == "CertificateSigningRequest":
        for name in ("extra", "uid", "username", "groups"):
            body["spec"].pop(name, None)
    return body


CSR, APPROVAL, STATUS = f"{CSRS}/privileges", f"{CSRS}/privileges/approval", f"{CSRS}/privileges/status"
FAILED = condition("Failed")
BUNDLE = {
    "metadata": {"name": "example.com:serving:privileges"},
    "spec": {"signerName": "example.com/serving", "trustBundle": AUTHORITY},
}
POD_REQUEST = {
    "metadata": {"name": "privileges"},
    "spec": {
        "signerName": "example.com/serving",
        **{f"{part}Name": "x" for part in ("pod", "serviceAccount", "node")},
        **{f"{part}UID": "1" for part in ("pod", "serviceAccount", "node")},
        "maxExpirationSeconds": 3600,
        "stubPKCS10Request": STUB,
    },
}
UNSIGNED_BUNDLE = {"metadata": {"name": "privileges"}, "spec": {"trustBundle": AUTHORITY}}
DENIED = {
    "status": {
        "conditions": [
            {
                "type": "Denied",
                "status": "True",
                "reason": "R",
                "message": "m",
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            }
        ]
    }
}
CERTIFICATES = [
    Step("masters", "POST", CSRS, csr("privileges-masters", signerName=CLIENT_SIGNER)),
    Step(
        "masters-dry-run", "POST", f"{CSRS}?dryRun=All", csr("privileges-masters", signerName=CLIENT_SIGNER)
    ),
    Step(
        "masters-and-invalid",
        "POST",
        CSRS,
        csr("privileges-masters", signerName=CLIENT_SIGNER, usages=["nope"]),
    ),
    Step("csr", "POST", CSRS, csr("privileges"), pick=without_identity),
    Step("approve", "PATCH", APPROVAL, condition("Approved"), MERGE, user="jane"),
    Step("approve-dry-run", "PATCH", f"{APPROVAL}?dryRun=All", condition("Approved"), MERGE, user="jane"),
    Step(
        "approve-invalid",
        "PATCH",
        APPROVAL,
        {"status": {"conditions": [{"type": "Approved", "status": "False"}]}},
        MERGE,
        user="jane",
    ),
    Step("sign", "PATCH", STATUS, FAILED, MERGE, user="jane"),
    Step("attest", "POST", BUNDLES, BUNDLE, user="jane"),
    Step("attest-for-none", "POST", f"{BUNDLES}?dryRun=All", UNSIGNED_BUNDLE, user="jane"),
    Step("pod-request", "POST", POD_REQUESTS, POD_REQUEST),
    Step("deny-pod", "PATCH", f"{POD_REQUESTS}/privileges/status", DENIED, MERGE, user="jane"),
    Step(
        "unchanged-status",
        "PATCH",
        STATUS,
        {"metadata": {"labels": {"a": "b"}}},
        MERGE,
        user="jane",
        pick=without_identity,
    ),
    Step(
        "signer-role",
        "POST",
        CLUSTER_ROLES,
        role(
            "privileges-signer",
            rule(["approve"], ["signers"], "certificates.k8s.io", resourceNames=["example.com/*"]),
            rule(
                ["sign", "attest"], ["signers"], "certificates.k8s.io", resourceNames=["example.com/serving"]
            ),
        ),
        compared=False,
    ),
    Step(
        "signer-binding",
        "POST",
        f"{RBAC}/clusterrolebindings",
        binding("privileges-signer", "ClusterRole", "privileges-signer", "jane"),
        compared=False,
    ),
    Step(
        "may-approve",
        "PATCH",
        APPROVAL,
        condition("Approved"),
        MERGE,
        user="jane",
        until=lambda status, _: status == 200,
        pick=without_identity,
    ),
    Step("may-sign", "PATCH", STATUS, FAILED, MERGE, user="jane", pick=without_identity),
    Step("may-attest", "POST", BUNDLES, BUNDLE, user="jane"),
    Step("may-deny-pod", "PATCH", f"{POD_REQUESTS}/privileges/status", DENIED, MERGE, user="jane"),
    Step("end-bundle", "DELETE", f"{BUNDLES}/example.com:serving:privileges", compared=False),
]

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    *ESCALATION,
    *POLICY,
    *CERTIFICATES,
    Step("end-csr", "DELETE", CSR, compared=False),
    *(
        Step(f"end-{resource}-{name}", "DELETE", f"{RBAC}/{resource}/{name}", compared=False)
        for name in (JANE, "privileges-signer")
        for resource in ("clusterrolebindings", "clusterroles")
    ),
]
