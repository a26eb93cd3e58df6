"""An operator's manifests, part by part, in the order in which they must be applied."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from kubewright.api import JsonObject
from kubewright.api.scoping import NamespaceSelector
from kubewright.controller import Operator
from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.monitoring import monitoring
from kubewright.generate.names import Names
from kubewright.generate.network import metrics_certificate, network, webhooks
from kubewright.generate.policies import KeptWebhook, translate
from kubewright.generate.rbac import WebhookReach, rbac, user_roles
from kubewright.generate.samples import samples

USUAL_PARTS = ("crds", "rbac", "webhooks", "deployment")
FURTHER_PARTS = ("monitoring", "network", "samples")
"""Parts that are rendered only when requested: they are optional or need other components (the Prometheus operator, a network plugin)."""
PARTS = (*USUAL_PARTS, *FURTHER_PARTS)
_SHARED_PARTS = ("crds", "webhooks", "samples")
_OF_A_PROCESS = ("deployment", "monitoring", "network")
DEFAULT_IMAGE = "controller:latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that are chosen when manifests are rendered, not where the operator is declared.

    `namespaces` limits what the operator may read and watches. `namespace_selector` limits what it watches to the namespaces with
    certain labels, in place of the operator's own setting; then `namespaces` limits only what it may read. `selector` is the
    label selector of the objects that it reconciles. `name` is for a second Deployment with another selector: its objects are
    named by it, and what all Deployments share is left out: the Namespace, CRDs, webhooks and the roles of users. `replicas` replaces the declared number;
    `metrics_reader` is a ServiceAccount (`namespace/name`); `examples` are objects written by hand; `webhook_reach` is
    `url` for the roles of a run outside the cluster. `policies` and `replaced_webhooks` are set by `with_policies`.
    """

    image: str = DEFAULT_IMAGE
    namespaces: Sequence[str] = ()
    namespace_selector: NamespaceSelector | None = None
    selector: str = ""
    name: str = ""
    replicas: int | None = None
    metrics_reader: str = ""
    examples: Sequence[JsonObject] = ()
    webhook_reach: WebhookReach = "service"
    policies: Sequence[JsonObject] = ()
    replaced_webhooks: Sequence[str] = ()


USUAL = Settings()


def with_policies(
    operator: Operator, settings: Settings = USUAL
) -> tuple[Operator, Settings, Sequence[KeptWebhook]]:
    """Replace admission webhooks by policies; return what to render, and the webhooks that stay."""
    made = translate(operator, Names(operator.name))
    chosen = replace(settings, policies=made.documents, replaced_webhooks=made.replaced)
    return made.operator, chosen, made.kept


def is_idle(operator: Operator) -> bool:
    """Return True if an operator has nothing to run: all that it declared are policies."""
    return not operator.controllers and not operator.webhooks


def parts_of(
    operator: Operator, names: Names, parts: Collection[str] = USUAL_PARTS, settings: Settings = USUAL
) -> dict[str, list[JsonObject]]:
    """Render the chosen parts, each by itself; those that belong to a process are empty if there is nothing to run."""
    idle = is_idle(operator)
    if settings.namespace_selector is not None:
        operator = operator.following(settings.namespace_selector)
    rendered: dict[str, Callable[[], list[JsonObject]]] = {
        "crds": lambda: crds(operator, names),
        "rbac": lambda: [
            *(
                []
                if idle
                else rbac(operator, names, settings.namespaces, settings.webhook_reach, settings.selector)
            ),
            *user_roles(operator, names),
        ],
        "webhooks": lambda: [*webhooks(operator, names), *settings.policies],
        "deployment": lambda: [
            *deployment(
                operator,
                names,
                image=settings.image,
                replicas=settings.replicas,
                namespaces=() if operator.namespaces is not None else settings.namespaces,
                args=[f"--metrics-service={names.metrics_service}", *_scope_args(operator, settings)],
            ),
            *metrics_certificate(names),
        ],
        "monitoring": lambda: monitoring(operator, names, reader=settings.metrics_reader),
        "network": lambda: network(operator, names),
        "samples": lambda: samples(operator, settings.examples),
    }
    chosen = {
        part: [] if idle and part in _OF_A_PROCESS else rendered[part]() for part in PARTS if part in parts
    }
    return _own_objects(chosen, operator, names) if settings.name else chosen


def names_of(operator: Operator, settings: Settings) -> Names:
    """Return the names of the objects; those of a second Deployment are in the namespace of the first one."""
    return Names(settings.name or operator.name, Names(operator.name).namespace)


def _scope_args(operator: Operator, settings: Settings) -> list[str]:
    """Return the arguments of `kubewright run` for what it works on."""
    args = [f"--without-webhook={name}" for name in settings.replaced_webhooks]
    if settings.namespace_selector is not None:
        args.append(f"--namespace-selector={settings.namespace_selector}")
    if settings.selector:
        args.append(f"--selector={settings.selector}")
    if settings.name and operator.webhooks:
        # They are served, and their configurations updated, by the first Deployment alone.
        args.append("--webhook-bind-address=0")
    return args


def _own_objects(
    parts: dict[str, list[JsonObject]], operator: Operator, names: Names
) -> dict[str, list[JsonObject]]:
    """Leave out what the Deployments of one operator share."""
    shared = {role["metadata"]["name"] for role in user_roles(operator, names)}
    return {
        part: [
            document
            for document in documents
            if document["kind"] != "Namespace" and document["metadata"]["name"] not in shared
        ]
        for part, documents in parts.items()
        if part not in _SHARED_PARTS
    }


def manifests(
    operator: Operator, parts: Collection[str] = USUAL_PARTS, settings: Settings = USUAL
) -> list[JsonObject]:
    """Render the chosen parts, one after the other."""
    rendered = parts_of(operator, names_of(operator, settings), parts, settings)
    return [document for documents in rendered.values() for document in documents]
