"""All built-in kinds that have something particular to them, by group and kind."""

from collections.abc import Mapping

from msgspec.structs import replace

from kubewright.devserver.builtin import (
    api_services,
    autoscaling,
    certificates,
    cluster,
    configuration,
    csi,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    persistent_volumes,
    pods,
    policies,
    rbac,
    registrations,
    service_addresses,
    services,
    storage,
    workloads,
)
from kubewright.devserver.strategy import MetaChecks, Strategy

_MODULES = (
    api_services,
    autoscaling,
    certificates,
    cluster,
    configuration,
    csi,
    endpoints,
    events,
    flowcontrol,
    jobs,
    networking,
    persistent_volumes,
    pods,
    policies,
    rbac,
    registrations,
    service_addresses,
    services,
    storage,
    workloads,
)
# How the real server looks at metadata again for these kinds: as at a new object's, at its changes, at finalizers.
_META_CHECKS: Mapping[MetaChecks, Mapping[str, str]] = {
    MetaChecks(0, 0, qualified=False): {"": "Event", "policy": "PodDisruptionBudget"},
    MetaChecks(0, 1, qualified=False): {"coordination.k8s.io": "Lease"},
    MetaChecks(1, 0, qualified=False): {
        "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    },
    MetaChecks(1, 1, qualified=False): {
        "apiregistration.k8s.io": "APIService",
        "node.k8s.io": "RuntimeClass",
    },
    MetaChecks(1, 0): {
        "": "LimitRange",
        "discovery.k8s.io": "EndpointSlice",
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
        "storage.k8s.io": "CSINode VolumeAttachment",
    },
    MetaChecks(2, 0): {"": "PersistentVolume"},
    MetaChecks(1, 1): {
        "": "ConfigMap Endpoints Namespace Node PersistentVolumeClaim Pod Secret ServiceAccount",
        "apps": "ControllerRevision",
        "batch": "Job",
        "certificates.k8s.io": "CertificateSigningRequest",
        "networking.k8s.io": "IPAddress Ingress IngressClass",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "resource.k8s.io": "DeviceClass ResourceClaim ResourceClaimTemplate",
        "storage.k8s.io": "CSIStorageCapacity StorageClass VolumeAttributesClass",
    },
}
_META_CHECKS_BY_KIND = {
    (group, kind): checks
    for checks, groups in _META_CHECKS.items()
    for group, kinds in groups.items()
    for kind in kinds.split()
}
_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    key: replace(strategy, meta_checks=_META_CHECKS_BY_KIND.get(key, MetaChecks()))
    for module in _MODULES
    for key, strategy in module.STRATEGIES.items()
}
_PLAIN = Strategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Give what is particular to a kind; a plain strategy where nothing is."""
    return _STRATEGIES.get((group, kind), _PLAIN)
