"""All built-in kinds that have something particular to them, by group and kind."""

from collections.abc import Mapping

from msgspec.structs import replace

from kubewright.devserver.builtin import (
    autoscaling,
    certificates,
    cluster,
    configuration,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    pods,
    policies,
    rbac,
    registrations,
    services,
    storage,
    workloads,
)
from kubewright.devserver.strategy import Strategy

_MODULES = (
    autoscaling,
    certificates,
    cluster,
    configuration,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    pods,
    policies,
    rbac,
    registrations,
    services,
    storage,
    workloads,
)
# How often the real server checks the finalizers of an update, where it is not once.
_UNCHECKED = {
    "": "Event",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    "apiregistration.k8s.io": "APIService",
    "coordination.k8s.io": "Lease",
    "networking.k8s.io": "ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodDisruptionBudget",
}
_CHECKED_TWICE = {
    "": "ConfigMap Endpoints Namespace Node PersistentVolume PersistentVolumeClaim Pod Secret ServiceAccount",
    "apps": "ControllerRevision",
    "batch": "Job",
    "certificates.k8s.io": "CertificateSigningRequest",
    "networking.k8s.io": "IPAddress Ingress IngressClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io": "DeviceClass ResourceClaim ResourceClaimTemplate",
    "storage.k8s.io": "CSIStorageCapacity StorageClass VolumeAttributesClass",
}


def _finalizer_checks(group: str, kind: str) -> int:
    if kind in _UNCHECKED.get(group, "").split():
        return 0
    return 2 if kind in _CHECKED_TWICE.get(group, "").split() else 1


_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    key: replace(strategy, finalizer_checks=_finalizer_checks(*key))
    for module in _MODULES
    for key, strategy in module.STRATEGIES.items()
}
_PLAIN = Strategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Give what is particular to a kind; a plain strategy where nothing is."""
    return _STRATEGIES.get((group, kind), _PLAIN)
