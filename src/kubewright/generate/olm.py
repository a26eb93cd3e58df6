"""An operator as a bundle for OLM, in the registry+v1 layout: its ClusterServiceVersion, CRDs and annotations."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubewright.api import JsonObject, PolicyRule, lease_rules
from kubewright.controller import Operator, disruption_rules, rules_for
from kubewright.generate.capability import Capability
from kubewright.generate.crds import crds
from kubewright.generate.deployment import deployment
from kubewright.generate.descriptors import owned_kinds, spaced
from kubewright.generate.documents import HEADER, file_name, plain_yaml
from kubewright.generate.manifests import USUAL, Settings
from kubewright.generate.names import Names
from kubewright.generate.network import WEBHOOK_PORT, serving_rules, webhooks
from kubewright.generate.rbac import by_scope, user_roles
from kubewright.generate.samples import samples
from kubewright.webhook.endpoints import CONVERT_PATH

CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"
_WATCHED = "WATCH_NAMESPACE"
_ICON = (
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA2NCA2NCI+PGcgZmlsbD0ibm9uZSIgc3Ryb2tlPSIj"
    "MzI2Y2U1IiBzdHJva2Utd2lkdGg9IjYiPjxjaXJjbGUgY3g9IjMyIiBjeT0iMzIiIHI9IjIyIi8+PHBhdGggZD0iTTMyIDR2NTZNNCAzMmg1NiIv"
    "PjwvZz48L3N2Zz4="
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Catalog metadata of an operator that its declarations do not contain."""

    name: str
    version: str
    channels: Sequence[str] = ("alpha",)
    default_channel: str = ""
    display_name: str = ""
    description: str = ""
    provider: str = ""
    maintainers: Sequence[Mapping[str, str]] = ()
    links: Sequence[Mapping[str, str]] = ()
    keywords: Sequence[str] = ()
    categories: Sequence[str] = ()
    maturity: str = "alpha"
    capability: Capability = "Basic Install"
    minimum_kubernetes: str = "1.29.0"
    replaces: str = ""
    icon: str = _ICON
    """An image in base64; by default a wheel."""
    icon_type: str = "image/svg+xml"


def bundle(operator: Operator, package: Package, settings: Settings = USUAL) -> dict[str, str]:
    """Render a bundle: the folder `bundle` and the Dockerfile of its image."""
    names = Names(operator.name)
    csv = cluster_service_version(operator, package, settings)
    manifests: dict[str, JsonObject] = {f"{package.name}.clusterserviceversion.yaml": csv}
    for definition in crds(operator):
        spec = definition["spec"]
        manifests[f"{spec['group']}_{spec['names']['plural']}.yaml"] = definition
    for document in (*_beside(operator, names, settings), *user_roles(operator, names)):
        # OLM creates them in the namespace in which the operator is installed.
        document["metadata"].pop("namespace", None)
        manifests[file_name(document)] = document
    tree = {f"bundle/manifests/{name}": HEADER + plain_yaml(each) for name, each in manifests.items()}
    labels = _annotations(package)
    tree["bundle/metadata/annotations.yaml"] = HEADER + plain_yaml({"annotations": labels})
    tree["bundle.Dockerfile"] = _dockerfile(labels)
    return tree


def cluster_service_version(operator: Operator, package: Package, settings: Settings = USUAL) -> JsonObject:
    """Render the ClusterServiceVersion."""
    examples = samples(operator, settings.examples)
    annotations = {
        "alm-examples": json.dumps(examples, indent=2, sort_keys=True),
        "capabilities": package.capability,
        "containerImage": settings.image,
        "operatorframework.io/suggested-namespace": Names(operator.name).namespace,
    }
    if package.categories:
        annotations["categories"] = ", ".join(package.categories)
    title = package.display_name or spaced(package.name)
    spec: JsonObject = {
        "displayName": title,
        "description": package.description or f"The operator {package.name}.",
        "version": package.version,
        "maturity": package.maturity,
        "minKubeVersion": package.minimum_kubernetes,
        "provider": {"name": package.provider or title},
        "maintainers": [dict(each) for each in package.maintainers],
        "links": [dict(each) for each in package.links],
        "keywords": list(package.keywords) or [package.name],
        "icon": [{"base64data": package.icon, "mediatype": package.icon_type}],
        "installModes": _install_modes(operator),
        "customresourcedefinitions": {"owned": owned_kinds(operator)},
        "install": {"strategy": "deployment", "spec": _install(operator, settings)},
        "relatedImages": [{"name": "manager", "image": settings.image}],
    }
    if package.replaces:
        spec["replaces"] = package.replaces
    if definitions := _webhook_definitions(operator):
        spec["webhookdefinitions"] = definitions
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{package.name}.v{package.version}", "annotations": annotations},
        "spec": spec,
    }


def _install_modes(operator: Operator) -> list[JsonObject]:
    # A CRD is converted for the whole cluster, so OLM allows no narrower installation with conversions.
    narrow = not operator.webhooks.conversions
    modes = {
        "OwnNamespace": narrow,
        "SingleNamespace": narrow,
        "MultiNamespace": narrow,
        "AllNamespaces": True,
    }
    return [{"type": mode, "supported": supported} for mode, supported in modes.items()]


def _install(operator: Operator, settings: Settings) -> JsonObject:
    names = Names(operator.name)
    inside, outside = by_scope(rules_for(operator), operator)
    # OLM grants `permissions` in the operator's target namespaces, or in all.
    permissions = _rules(
        [
            *inside,
            *lease_rules(operator.name, sharded=operator.shards is not None),
            *disruption_rules(operator),
        ]
    )
    return {
        "deployments": [
            {"name": names.manager, "label": names.shared, "spec": _deployment(operator, names, settings)}
        ],
        "clusterPermissions": [
            {"serviceAccountName": names.account, "rules": [*_rules(outside), *serving_rules()]}
        ],
        "permissions": [{"serviceAccountName": names.account, "rules": permissions}],
    }


def _rules(rules: Sequence[PolicyRule]) -> list[JsonObject]:
    return [rule.to_wire() for rule in rules]


def _deployment(operator: Operator, names: Names, settings: Settings) -> JsonObject:
    rendered = deployment(operator, names, image=settings.image, replicas=settings.replicas)
    spec: JsonObject = rendered[0]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    selected = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
    container["env"] = [*container.get("env", []), {"name": _WATCHED, "valueFrom": selected}]
    container["args"].append(f"--namespace=$({_WATCHED})")
    if operator.webhooks:
        # OLM creates the certificates and the webhook configurations, under its own names.
        container["args"] += ["--webhook-reach=given", f"--webhook-cert-dir={CERTIFICATES}"]
    return spec


def _beside(operator: Operator, names: Names, settings: Settings) -> list[JsonObject]:
    """Render objects that OLM does not create: the metrics Service and the RBAC rules for reading metrics."""
    rendered = deployment(operator, names, image=settings.image, replicas=settings.replicas)
    bound = (names.review_role, f"{names.review_role}binding")
    return [each for each in rendered[1:] if each["metadata"]["name"] not in bound]


def _webhook_definitions(operator: Operator) -> list[JsonObject]:
    names = Names(operator.name)
    shared: JsonObject = {"deploymentName": names.manager, "containerPort": 443, "targetPort": WEBHOOK_PORT}
    definitions: list[JsonObject] = []
    for document in webhooks(operator, names):
        for entry in document.get("webhooks", ()):
            kept = {
                key: value
                for key, value in entry.items()
                if key not in ("name", "clientConfig", "namespaceSelector")
            }
            definitions.append(
                {
                    "type": document["kind"].replace("WebhookConfiguration", "AdmissionWebhook"),
                    "generateName": entry["name"],
                    "webhookPath": entry["clientConfig"]["service"]["path"],
                    **shared,
                    **kept,
                }
            )  # fmt: skip
    if operator.webhooks.conversions:
        definitions.append(
            {
                "type": "ConversionWebhook",
                "generateName": f"convert.{operator.name}",
                "webhookPath": CONVERT_PATH,
                **shared,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "conversionCRDs": list(operator.webhooks.converted),
            }
        )
    return definitions


def _annotations(package: Package) -> dict[str, str]:
    prefix = "operators.operatorframework.io"
    return {
        f"{prefix}.bundle.mediatype.v1": "registry+v1",
        f"{prefix}.bundle.manifests.v1": "manifests/",
        f"{prefix}.bundle.metadata.v1": "metadata/",
        f"{prefix}.bundle.package.v1": package.name,
        f"{prefix}.bundle.channels.v1": ",".join(package.channels),
        f"{prefix}.bundle.channel.default.v1": package.default_channel or package.channels[0],
    }


def _dockerfile(labels: Mapping[str, str]) -> str:
    lines = [f"LABEL {name}={value}" for name, value in labels.items()]
    copies = [f"COPY bundle/{part} /{part}/" for part in ("manifests", "metadata")]
    return HEADER + "\n".join(["FROM scratch", "", *lines, "", *copies]) + "\n"
