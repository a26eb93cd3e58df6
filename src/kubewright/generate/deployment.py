"""The Deployment of an operator: unprivileged, probed, with metrics behind the cluster's own authorization."""

from typing import Any

from kubewright.controller import Env, Operator, review_rules
from kubewright.generate.names import Names
from kubewright.generate.rbac import granted, named

METRICS_PORT = 8443
PROBE_PORT = 8081
WEBHOOK_PORT = 9443
GRACE_SECONDS = 40
"""Longer than the 30 seconds a manager gives its reconciles, so that Kubernetes does not cut them short."""
Wire = dict[str, Any]


def deployment(operator: Operator, names: Names, *, image: str, replicas: int = 1) -> list[Wire]:
    """Render the Deployment, the Service of its metrics, who may read them, and a budget for several replicas."""
    documents: list[Wire] = [
        {
            **named("apps/v1", "Deployment", names.manager, names, names.namespace),
            "spec": _spec(operator, names, image, replicas),
        },
        _metrics_service(names),
        *granted("ClusterRole", names.review_role, [rule.to_wire() for rule in review_rules()], names),
        _metrics_reader(names),
    ]
    if replicas > 1:
        documents.append(_budget(names))
    return documents


def _spec(operator: Operator, names: Names, image: str, replicas: int) -> Wire:
    pod: Wire = {
        "serviceAccountName": names.account,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(operator, image)],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    if replicas > 1:
        pod["affinity"] = {"podAntiAffinity": _apart(names)}
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


def _container(operator: Operator, image: str) -> Wire:
    ports = [
        {"name": "metrics", "containerPort": METRICS_PORT},
        {"name": "probes", "containerPort": PROBE_PORT},
    ]
    if operator.webhooks:
        ports.append({"name": "webhooks", "containerPort": WEBHOOK_PORT})
    container: Wire = {
        "name": "manager",
        "image": image,
        "args": [
            "--leader-elect",
            "--log-format=json",
            f"--metrics-bind-address=:{METRICS_PORT}",
            "--metrics-secure",
            f"--health-probe-bind-address=:{PROBE_PORT}",
        ],
        "ports": ports,
        "livenessProbe": _probe("/healthz", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=1, period=10),
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"cpu": "500m", "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    if operator.env:
        container["env"] = [_variable(variable) for variable in operator.env]
    return container


def _variable(variable: Env) -> Wire:
    if not variable.secret and not variable.config_map:
        return {"name": variable.name, "value": variable.value}
    kind, name = (
        ("secretKeyRef", variable.secret) if variable.secret else ("configMapKeyRef", variable.config_map)
    )
    reference: Wire = {"name": name, "key": variable.key or variable.name}
    if variable.optional:
        reference["optional"] = True
    return {"name": variable.name, "valueFrom": {kind: reference}}


def _probe(path: str, *, delay: int, period: int) -> Wire:
    return {
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
    }


def _apart(names: Names) -> Wire:
    term = {"labelSelector": {"matchLabels": names.selector}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _metrics_service(names: Names) -> Wire:
    ports = [{"name": "https", "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"}]
    document = named("v1", "Service", names.metrics_service, names, names.namespace)
    return {**document, "spec": {"ports": ports, "selector": names.selector}}


def _metrics_reader(names: Names) -> Wire:
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return {
        **named("rbac.authorization.k8s.io/v1", "ClusterRole", names.metrics_reader, names),
        "rules": rules,
    }


def _budget(names: Names) -> Wire:
    document = named("policy/v1", "PodDisruptionBudget", names.manager, names, names.namespace)
    return {**document, "spec": {"minAvailable": 1, "selector": {"matchLabels": names.selector}}}
