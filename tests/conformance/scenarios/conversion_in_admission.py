"""Conversions that fail inside admission: for webhooks and policies that match another version of the kind."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "conversion-in-admission"
GROUP = "admitted.ex.io"
V1 = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/boxes"
MERGE = {"Content-Type": "application/merge-patch+json"}
SPEC = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}}
DEFINITION = {
    "metadata": {"name": f"boxes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "boxes", "kind": "Box"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
            {"name": "v2", "served": True, "storage": False, "schema": SCHEMA},
        ],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"url": "https://{hook}/convert", "caBundle": "{ca}"},
                "conversionReviewVersions": ["v1"],
            },
        },
    },
}
RULE = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["v2"], "resources": ["boxes"]}


def hook(name: str, policy: str = "Fail") -> dict[str, Any]:
    return {
        "name": f"{name}.ex.io",
        "clientConfig": {"url": "https://{hook}/deny", "caBundle": "{ca}"},
        "rules": [RULE],
        "objectSelector": {"matchLabels": {"seen-by": name}},
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def box(name: str, seen_by: str) -> dict[str, Any]:
    # The webhook breaks the conversion as the label says.
    metadata = {"name": name, "labels": {"seen-by": seen_by, "break": name}}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": metadata, "spec": {"size": 1}}


def policy(name: str, failure: str) -> list[Step]:
    spec = {
        "failurePolicy": failure,
        "matchConstraints": {
            "resourceRules": [RULE],
            "objectSelector": {"matchLabels": {"seen-by": name}},
        },
        "validations": [{"expression": "false"}],
    }
    full = f"conversion-{name}"
    binding = {"policyName": full, "validationActions": ["Deny"]}
    return [
        Step(
            f"policy-{name}",
            "POST",
            f"{REGISTRATION}/validatingadmissionpolicies",
            {"metadata": {"name": full}, "spec": spec},
            compared=False,
        ),
        Step(
            f"binding-{name}",
            "POST",
            f"{REGISTRATION}/validatingadmissionpolicybindings",
            {"metadata": {"name": full}, "spec": binding},
            compared=False,
        ),
        Step(
            f"known-{name}",
            "POST",
            f"{V1}?dryRun=All",
            box("good", name),
            until=lambda status, _: status == 422,
        ),
    ]


KINDS = ("mutating", "validating")
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    Step(
        "definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        DEFINITION,
        compared=False,
    ),
    Step("served", "POST", V1, box("unseen", "none"), until=lambda status, _: status == 201, compared=False),
    *(
        Step(
            f"configuration-{kind}",
            "POST",
            f"{REGISTRATION}/{kind}webhookconfigurations",
            {
                "metadata": {"name": "conversion-in-admission"},
                "webhooks": [hook(kind), hook(f"{kind}-ignored", "Ignore")],
            },
            compared=False,
        )
        for kind in KINDS
    ),
    *(
        step
        for kind in KINDS
        for step in (
            Step(
                f"denied-{kind}",
                "POST",
                f"{V1}?dryRun=All",
                box("good", kind),
                until=lambda status, _: status == 400,
            ),
            Step(f"failed-{kind}", "POST", V1, box("fail", kind)),
            Step(f"failed-and-ignored-{kind}", "POST", V1, box("fail", f"{kind}-ignored")),
            Step(f"wrong-{kind}", "POST", V1, box("count", kind)),
            Step(f"cleared-{kind}", "DELETE", f"{V1}/fail", compared=False),
        )
    ),
    *policy("strict-policy", "Fail"),
    *policy("lenient-policy", "Ignore"),
    Step("failed-policy", "POST", V1, box("fail", "strict-policy")),
    Step("failed-lenient-policy", "POST", V1, box("fail", "lenient-policy")),
    *(
        Step(
            f"configuration-{kind}-gone",
            "DELETE",
            f"{REGISTRATION}/{kind}webhookconfigurations/conversion-in-admission",
            compared=False,
        )
        for kind in KINDS
    ),
    *(
        Step(f"{kind}-{name}-gone", "DELETE", f"{REGISTRATION}/{kind}/conversion-{name}", compared=False)
        for name in ("strict-policy", "lenient-policy")
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    ),
    Step(
        "definition-gone",
        "DELETE",
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.{GROUP}",
        compared=False,
    ),
]
