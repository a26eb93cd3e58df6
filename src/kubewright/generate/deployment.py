"""The Deployment of an operator: unprivileged, probed, with metrics behind the cluster's own authorization."""

from collections.abc import Mapping, Sequence

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.network import METRICS_PORT, WEBHOOK_PORT, metrics
from kubewright.generate.rbac import named
from kubewright.packaging import Env, Volume

PROBE_PORT = 8081
GRACE_SECONDS = 40
"""Longer than the manager's graceful timeout of 30 s, so that Kubernetes does not kill running reconciles."""
REQUESTS = {"cpu": "10m", "memory": "64Mi"}
LIMITS = {"memory": "256Mi"}
"""Without CPU: a limit would throttle an operator after a start or a burst of changes."""


def deployment(
    operator: Operator,
    names: Names,
    *,
    image: str,
    replicas: int | None = None,
    namespaces: Sequence[str] = (),
    args: Sequence[str] = (),
) -> list[JsonObject]:
    """Render the Deployment, the objects for its metrics, and a PodDisruptionBudget for several replicas.

    `args` are further arguments of `kubewright run`.
    """
    options = [*(f"--namespace={namespace}" for namespace in dict.fromkeys(namespaces)), *args]
    count = replicas_of(operator) if replicas is None else replicas
    documents: list[JsonObject] = [
        {
            **named("apps/v1", "Deployment", names.manager, names, names.namespace),
            "spec": _spec(operator, names, image, count, options),
        },
        *metrics(names),
    ]
    if count > 1:
        documents.append(budget(names))
    return documents


def replicas_of(operator: Operator) -> int:
    """Return the declared number of replicas; by default two if writes fail while the webhooks are away."""
    if operator.workload.replicas is not None:
        return operator.workload.replicas
    webhooks = operator.webhooks
    required = webhooks.conversions or any(
        each.webhook.failure_policy == "Fail" for each in webhooks.admissions
    )
    return 2 if required else 1


def budget(names: Names) -> JsonObject:
    """Render the PodDisruptionBudget that keeps one of several replicas."""
    document = named("policy/v1", "PodDisruptionBudget", names.manager, names, names.namespace)
    return {**document, "spec": {"minAvailable": 1, "selector": {"matchLabels": names.selector}}}


def anti_affinity(names: Names) -> JsonObject:
    """Render a preferred anti-affinity, so that replicas run on different nodes."""
    term = {"labelSelector": {"matchLabels": names.selector}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _spec(operator: Operator, names: Names, image: str, replicas: int, options: Sequence[str]) -> JsonObject:
    volumes = operator.workload.volumes
    pod: JsonObject = {
        "serviceAccountName": names.account,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(operator, image, options)],
        "volumes": [{"name": "tmp", "emptyDir": {}}, *map(_volume, volumes)],
    }
    if replicas > 1:
        pod["affinity"] = anti_affinity(names)
    return {
        "replicas": replicas,
        "selector": {"matchLabels": names.selector},
        "template": {
            "metadata": {
                "labels": {**names.labels, **names.selector},
                "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
            },
            "spec": pod,
        },
    }


def _container(operator: Operator, image: str, options: Sequence[str]) -> JsonObject:
    workload = operator.workload
    ports = [
        {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        {"name": "probes", "containerPort": PROBE_PORT, "protocol": "TCP"},
    ]
    if operator.webhooks:
        ports.append({"name": "webhooks", "containerPort": WEBHOOK_PORT, "protocol": "TCP"})
    container: JsonObject = {
        "name": "manager",
        "image": image,
        "args": [
            "--leader-elect",
            "--log-format=json",
            f"--metrics-bind-address=:{METRICS_PORT}",
            "--metrics-secure",
            f"--health-probe-bind-address=:{PROBE_PORT}",
            *options,
            *workload.args,
        ],
        "ports": ports,
        "livenessProbe": _probe("/healthz", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=1, period=10),
        "resources": {
            "requests": _amounts(REQUESTS, workload.requests),
            "limits": _amounts(LIMITS, workload.limits),
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *map(_mount, workload.volumes)],
    }
    if operator.env:
        container["env"] = [_variable(variable) for variable in operator.env]
    return container


def _amounts(defaults: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {resource: amount for resource, amount in {**defaults, **given}.items() if amount}


def _volume(volume: Volume) -> JsonObject:
    if volume.secret:
        source: JsonObject = {"secret": {"secretName": volume.secret}}
    elif volume.config_map:
        source = {"configMap": {"name": volume.config_map}}
    elif volume.claim:
        source = {"persistentVolumeClaim": {"claimName": volume.claim}}
    else:
        source = {"emptyDir": {"sizeLimit": volume.size} if volume.size else {}}
    if volume.optional:
        next(iter(source.values()))["optional"] = True
    return {"name": volume.name, **source}


def _mount(volume: Volume) -> JsonObject:
    mount: JsonObject = {"name": volume.name, "mountPath": volume.path}
    if volume.read_only or volume.secret or volume.config_map:
        mount["readOnly"] = True
    return mount


def _variable(variable: Env) -> JsonObject:
    if not variable.secret and not variable.config_map:
        return {"name": variable.name, "value": variable.value}
    kind, name = (
        ("secretKeyRef", variable.secret) if variable.secret else ("configMapKeyRef", variable.config_map)
    )
    reference: JsonObject = {"name": name, "key": variable.key or variable.name}
    if variable.optional:
        reference["optional"] = True
    return {"name": variable.name, "valueFrom": {kind: reference}}


def _probe(path: str, *, delay: int, period: int) -> JsonObject:
    return {
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
    }
