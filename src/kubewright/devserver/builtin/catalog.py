"""The strategies of all built-in kinds, by group and kind."""

from collections.abc import Mapping

from msgspec.structs import replace

from kubewright.devserver.builtin import (
    admission_registration,
    autoscaling,
    budgets_and_leases,
    certificates,
    cluster,
    configuration,
    cron_jobs,
    events,
    flowcontrol,
    jobs,
    namespaces,
    networking,
    pod_certificates,
    rbac,
    services,
    storage,
    workloads,
)
from kubewright.devserver.builtin.pods import strategies as pods
from kubewright.devserver.strategy import MetaChecks, Strategy

_MODULES = (
    admission_registration,
    autoscaling,
    budgets_and_leases,
    certificates,
    cluster,
    configuration,
    cron_jobs,
    events,
    flowcontrol,
    jobs,
    namespaces,
    networking,
    pod_certificates,
    pods,
    rbac,
    services,
    storage,
    workloads,
)
# How the real server repeats the validation of metadata in an update of these kinds.
_META_CHECKS: Mapping[MetaChecks, Mapping[str, str]] = {
    MetaChecks(changes=False, qualified=False, created=False): {"": "Event"},
    MetaChecks(changes=False, qualified=False, status=False, created=False): {
        "policy": "PodDisruptionBudget"
    },
    MetaChecks(status=False): {"batch": "CronJob"},
    MetaChecks(qualified=False): {"coordination.k8s.io": "Lease"},
    MetaChecks(whole=True, changes=False, qualified=False): {
        "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    },
    MetaChecks(whole=True, changes=False, qualified=False, status=False): {
        "admissionregistration.k8s.io": "ValidatingAdmissionPolicy",
    },
    MetaChecks(whole=True, qualified=False): {
        "apiregistration.k8s.io": "APIService",
        "node.k8s.io": "RuntimeClass",
    },
    MetaChecks(whole=True, changes=False): {
        "": "LimitRange PersistentVolume",
        "discovery.k8s.io": "EndpointSlice",
        "storage.k8s.io": "CSINode VolumeAttachment",
    },
    MetaChecks(whole=True, changes=False, status=False): {
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    },
    MetaChecks(whole=True): {
        "": "ConfigMap Endpoints Namespace Node PersistentVolumeClaim Pod Secret ServiceAccount",
        "apps": "ControllerRevision",
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
_DEFAULT = Strategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Return the strategy of a built-in kind; a kind without one of its own gets the default."""
    return _STRATEGIES.get((group, kind), _DEFAULT)
