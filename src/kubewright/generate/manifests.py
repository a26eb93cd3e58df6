"""An operator's manifests, part by part, in the order in which they must be applied."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.names import Names
from kubewright.generate.network import monitoring, network, webhooks
from kubewright.generate.rbac import WebhookReach, rbac, user_roles
from kubewright.generate.samples import samples

USUAL_PARTS = ("crds", "rbac", "webhooks", "deployment")
FURTHER_PARTS = ("monitoring", "network", "samples")
"""Parts that are rendered only when asked for: they are optional or need other components (the Prometheus operator, a network plugin)."""
PARTS = (*USUAL_PARTS, *FURTHER_PARTS)
DEFAULT_IMAGE = "controller:latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that are chosen when manifests are rendered, not where the operator is declared.

    `namespaces` limits what the operator may read and watches; `replicas` replaces the declared number;
    `metrics_reader` is a ServiceAccount (`namespace/name`); `examples` are objects written by hand; `webhook_reach` is
    `url` for the roles of a run outside the cluster.
    """

    image: str = DEFAULT_IMAGE
    namespaces: Sequence[str] = ()
    replicas: int | None = None
    metrics_reader: str = ""
    examples: Sequence[JsonObject] = ()
    webhook_reach: WebhookReach = "service"


USUAL = Settings()


def parts_of(
    operator: Operator, names: Names, parts: Collection[str] = USUAL_PARTS, settings: Settings = USUAL
) -> dict[str, list[JsonObject]]:
    """Render the chosen parts, each by itself."""
    rendered: dict[str, Callable[[], list[JsonObject]]] = {
        "crds": lambda: crds(operator, names),
        "rbac": lambda: [
            *rbac(operator, names, settings.namespaces, settings.webhook_reach),
            *user_roles(operator, names),
        ],
        "webhooks": lambda: webhooks(operator, names),
        "deployment": lambda: deployment(
            operator,
            names,
            image=settings.image,
            replicas=settings.replicas,
            namespaces=settings.namespaces,
        ),
        "monitoring": lambda: monitoring(names, reader=settings.metrics_reader),
        "network": lambda: network(operator, names),
        "samples": lambda: samples(operator, settings.examples),
    }
    return {part: rendered[part]() for part in PARTS if part in parts}


def manifests(
    operator: Operator, parts: Collection[str] = USUAL_PARTS, settings: Settings = USUAL
) -> list[JsonObject]:
    """Render the chosen parts, one after the other."""
    rendered = parts_of(operator, Names(operator.name), parts, settings)
    return [document for documents in rendered.values() for document in documents]
