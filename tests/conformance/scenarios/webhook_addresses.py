"""Where webhooks are called: paths, redirects, and the certificates that are trusted."""

from typing import Any

from conformance_exchange import Step
from conformance_hooks import hook_server

FIXTURE = hook_server

NAMESPACE = "webhook-addresses"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PATHS = {
    "plain": "/echo-path",
    "double": "//echo-path",
    "trailing": "/echo-path/",
    "inner": "/a//echo-path",
    "dots": "/a/../echo-path",
    "dot": "/./echo-path",
    "escaped": "/echo-path/%41%2Fb",
    "space": "/echo-path/a%20b",
    "redirect-301": "/redirect-301",
    "redirect-302": "/redirect-302",
    "redirect-303": "/redirect-303",
    "redirect-307": "/redirect-307",
    "redirect-308": "/redirect-308",
    "redirect-loop": "/redirect-307-loop",
}


def hook(label: str, url: str, ca: str = "{ca}") -> dict[str, Any]:
    return {
        "name": f"{label}.ex.io",
        "clientConfig": {"url": url, "caBundle": ca},
        "rules": [
            {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        ],
        "objectSelector": {"matchLabels": {"address": label}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def before_details(body: Any, _: Any) -> Any:
    """Compare an error up to the part that names the fault of the certificate, which OpenSSL does not distinguish."""
    return {
        "code": body.get("code"),
        "failed": "tls: failed to verify certificate: x509: " in body["message"],
    }


def create(label: str) -> Step:
    pick = before_details if label == "common-name-alone" else None
    return Step(label, "POST", MAPS, {"metadata": {"name": label, "labels": {"address": label}}}, pick=pick)


TRUSTED = {
    "serving-certificate": hook("serving-certificate", "https://{hook}/deny", "{leaf}"),
    "unknown-authority": hook("unknown-authority", "https://{hook}/deny", "{otherca}"),
    "common-name-alone": hook("common-name-alone", "https://{nameless}/deny", "{namelessca}"),
}
STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    Step(
        "configuration",
        "POST",
        CONFIGURATIONS,
        {
            "metadata": {"name": NAMESPACE},
            "webhooks": [
                *(hook(label, "https://{hook}" + path) for label, path in PATHS.items()),
                *TRUSTED.values(),
            ],
        },
        compared=False,
    ),
    # The configuration is in use once its first hook denies.
    Step(
        "ready",
        "POST",
        f"{MAPS}?dryRun=All",
        {"metadata": {"name": "plain", "labels": {"address": "plain"}}},
        until=lambda status, _: status == 400,
        compared=False,
    ),
    *(create(label) for label in (*PATHS, *TRUSTED)),
    Step("end", "DELETE", f"{CONFIGURATIONS}/{NAMESPACE}", compared=False),
]
