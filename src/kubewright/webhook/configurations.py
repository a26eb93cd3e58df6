"""Webhook configurations and the conversion of CRDs, rendered from declarations."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from kubewright.api import DeclarationError, JsonObject
from kubewright.schema.cel import (
    BOOL,
    DYN,
    CelEnvironment,
    CompileError,
    EvaluationError,
    authorization_library,
)
from kubewright.webhook.declaration import Admission, FailurePolicy
from kubewright.webhook.endpoints import CONVERT_PATH, Endpoints, WebhookEndpoint
from kubewright.webhook.naming import WebhookNames

GROUP = "admissionregistration.k8s.io"
REVIEW_VERSIONS = ["v1"]
SERVICE_PORT = 443
REPLACED = "kubewright/replaced"
"""Annotation with what a run by URL replaced; the run that ends last restores it."""


@dataclass(frozen=True, slots=True)
class ByService:
    """Called through a Service: the operator runs in the cluster."""

    namespace: str
    name: str
    ca_bundle: bytes = b""
    port: int = SERVICE_PORT

    def client_config(self, path: str) -> JsonObject:
        """Return the clientConfig of a webhook: its address and CA bundle."""
        service = {"name": self.name, "namespace": self.namespace, "path": path, "port": self.port}
        return {**_trust(self.ca_bundle), "service": service}

    def failure_policy(self, declared: FailurePolicy) -> FailurePolicy:
        """Return the declared policy."""
        return declared

    @property
    def other(self) -> str:
        """Return the field of clientConfig that must be absent."""
        return "url"


@dataclass(frozen=True, slots=True)
class ByUrl:
    """Called at a URL: the operator runs outside the cluster, on the API server's machine."""

    base: str
    ca_bundle: bytes = b""
    declared_policies: bool = False

    def client_config(self, path: str) -> JsonObject:
        """Return the clientConfig of a webhook: its address and CA bundle."""
        return {**_trust(self.ca_bundle), "url": f"{self.base}{path}"}

    def failure_policy(self, declared: FailurePolicy) -> FailurePolicy:
        """Return Ignore, because an operator outside the cluster is often stopped, or the declared policy with `declared_policies`.

        While it runs, an exception in a webhook with failure policy Fail still denies the request.
        """
        return declared if self.declared_policies else "Ignore"

    @property
    def other(self) -> str:
        """Return the field of clientConfig that must be absent."""
        return "service"


WebhookAddress = ByService | ByUrl


def configurations(endpoints: Endpoints, names: WebhookNames, address: WebhookAddress) -> list[JsonObject]:
    """Render the configurations of an operator: none, one or two."""
    documents: list[JsonObject] = []
    for kind, name, chosen in (
        ("MutatingWebhookConfiguration", names.mutating, endpoints.mutating),
        ("ValidatingWebhookConfiguration", names.validating, endpoints.validating),
    ):
        if chosen:
            webhooks = [_entry(endpoint, address) for endpoint in chosen]
            documents.append(
                {
                    "apiVersion": f"{GROUP}/v1",
                    "kind": kind,
                    "metadata": {"name": name},
                    "webhooks": webhooks,
                }
            )
    return documents


def conversion(address: WebhookAddress) -> JsonObject:
    """Render `spec.conversion` of a CRD."""
    webhook = {
        "clientConfig": address.client_config(CONVERT_PATH),
        "conversionReviewVersions": list(REVIEW_VERSIONS),
    }
    return {"strategy": "Webhook", "webhook": webhook}


def client_config(conversion: JsonObject) -> JsonObject:
    """Return the clientConfig of a CRD's conversion."""
    webhook: JsonObject = conversion.get("webhook") or {}
    return webhook.get("clientConfig") or {}


def switched(desired: JsonObject, other: str, replaced: str | None) -> JsonObject:
    """Render the patch that switches a conversion from a URL to a Service, or back.

    The server requires exactly one of them, and an apply cannot remove fields of other managers.
    """
    webhook: JsonObject = desired["webhook"]
    config = {"caBundle": None, **webhook["clientConfig"], other: None}
    conversion = desired | {"webhook": webhook | {"clientConfig": config}}
    return {"metadata": {"annotations": {REPLACED: replaced}}, "spec": {"conversion": conversion}}


def _entry(endpoint: WebhookEndpoint, address: WebhookAddress) -> JsonObject:
    webhook = endpoint.webhook
    match = matched(webhook, address.namespace if isinstance(address, ByService) else "")
    entry: JsonObject = {
        "name": endpoint.name,
        "admissionReviewVersions": list(REVIEW_VERSIONS),
        "clientConfig": address.client_config(endpoint.path),
        "failurePolicy": address.failure_policy(webhook.failure_policy),
        "matchPolicy": webhook.match_policy,
        "rules": match.pop("rules"),
        "sideEffects": webhook.side_effects,
        "timeoutSeconds": webhook.timeout,
        **match,
    }
    if conditions := match_conditions(webhook):
        entry["matchConditions"] = conditions
    if webhook.mutates:
        entry["reinvocationPolicy"] = webhook.reinvocation
    return entry


def matched(webhook: Admission[Any], namespace: str) -> JsonObject:
    """Render the rules and selectors of a webhook whose operator is deployed to a namespace; empty if it is not deployed."""
    selector = webhook.namespace_selector
    selectors = {
        "namespaceSelector": _elsewhere(webhook, namespace) if selector is None else selector,
        "objectSelector": webhook.object_selector,
    }
    return {"rules": [_rule(webhook)], **{name: each for name, each in selectors.items() if each is not None}}


def match_conditions(webhook: Admission[Any]) -> list[JsonObject]:
    """Render the match conditions of a webhook; raise DeclarationError for one that does not compile."""
    _check_conditions(webhook)
    return [{"name": name, "expression": text} for name, text in webhook.match_conditions.items()]


def _rule(webhook: Admission[Any]) -> JsonObject:
    resource = webhook.resource
    named = [f"{resource.plural}/{part}" for part in webhook.subresources] or [resource.plural]
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": [operation.upper() for operation in webhook.on],
        "resources": named,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def _elsewhere(webhook: Admission[Any], namespace: str) -> JsonObject | None:
    """Exclude the operator's own namespace: otherwise its Pods could not start while no webhook is available."""
    if not (namespace and webhook.resource.builtin and webhook.resource.namespaced):
        return None
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [namespace]}
    return {"matchExpressions": [expression]}


def _check_conditions(webhook: Admission[Any]) -> None:
    environment = CelEnvironment(
        {"object": DYN, "oldObject": DYN, "request": DYN, "authorizer": DYN},
        functions=authorization_library(),
    )
    for name, text in webhook.match_conditions.items():
        try:
            found = environment.compile(text).type
        except (CompileError, EvaluationError) as error:
            raise DeclarationError(f"{webhook!r}: match_conditions[{name!r}]: {error}") from None
        if found not in (BOOL, DYN):
            raise DeclarationError(
                f"{webhook!r}: match_conditions[{name!r}] must evaluate to bool, not {found}"
            )


def _trust(bundle: bytes) -> JsonObject:
    return {"caBundle": b64encode(bundle).decode()} if bundle else {}
