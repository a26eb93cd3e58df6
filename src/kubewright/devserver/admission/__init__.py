"""The admission plugins of the server.

Read in this order: `standard_admission` below (the entry point: all plugins in kube-apiserver's order), `webhooks` and
`reviews` (admission webhooks), `policies`, `mutating_policies` and `validating_policies` (CEL policies),
`matching` and `versions` (which writes match, and in which version), then one file for each other concern.
"""

from collections.abc import Callable, Collection, Mapping

from kubewright.devserver.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
    ClusterTrustBundleAttest,
    PodCertificateSigning,
)
from kubewright.devserver.admission.defaults import DefaultIngressClass, RuntimeClasses, TaintNodesByCondition
from kubewright.devserver.admission.limit_ranges import LimitRanger
from kubewright.devserver.admission.mutating_policies import MutatingPolicies
from kubewright.devserver.admission.namespace_lifecycle import NamespaceLifecycle
from kubewright.devserver.admission.optional import (
    AlwaysPullImages,
    DenyServiceExternalIPs,
    NamespaceAutoProvision,
    OwnerReferencesPermissionEnforcement,
)
from kubewright.devserver.admission.pod_security import PodSecurity
from kubewright.devserver.admission.pods import DefaultTolerationSeconds, PodPriority, ServiceAccounts
from kubewright.devserver.admission.policies import PolicySet
from kubewright.devserver.admission.quotas import ResourceQuotas, quota_usage
from kubewright.devserver.admission.validating_policies import ValidatingPolicies
from kubewright.devserver.admission.versions import VersionConverter
from kubewright.devserver.admission.volumes import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from kubewright.devserver.admission.webhooks import Hooks, MutatingWebhooks, ValidatingWebhooks
from kubewright.devserver.core import Core
from kubewright.devserver.request.admission import AdmissionChain, AdmissionPlugin
from kubewright.devserver.webhook_client import Caller


class _Shared:
    """What plugins are built from: the parts of the server, and readers that several plugins share."""

    def __init__(self, core: Core, caller: Caller) -> None:
        self.core, self.api = core, core.api
        self.versions = VersionConverter(core, self.api, core.authorizer)
        self._caller = caller

    def webhooks(self, plural: str) -> Hooks:
        """Return the reader of webhook configurations."""
        return Hooks(plural, self.core, self.api, self.versions, self._caller)

    def policies(self, plural: str) -> PolicySet:
        """Return the reader of admission policies."""
        return PolicySet(plural, self.core, self.api)


_PLUGINS: Mapping[str, Callable[[_Shared], AdmissionPlugin]] = {
    "NamespaceAutoProvision": lambda shared: NamespaceAutoProvision(shared.api),
    "NamespaceLifecycle": lambda shared: NamespaceLifecycle(shared.api),
    "LimitRanger": lambda shared: LimitRanger(shared.api),
    "ServiceAccount": lambda shared: ServiceAccounts(shared.api),
    "TaintNodesByCondition": lambda shared: TaintNodesByCondition(),
    "AlwaysPullImages": lambda shared: AlwaysPullImages(),
    "PodSecurity": lambda shared: PodSecurity(shared.api, shared.core.types.release.minor),
    "Priority": lambda shared: PodPriority(shared.core.store, shared.api),
    "DefaultTolerationSeconds": lambda shared: DefaultTolerationSeconds(),
    "DefaultStorageClass": lambda shared: DefaultStorageClass(shared.core.store, shared.api),
    "StorageObjectInUseProtection": lambda shared: StorageObjectInUseProtection(),
    "OwnerReferencesPermissionEnforcement": lambda shared: OwnerReferencesPermissionEnforcement(
        shared.core.registry, shared.core.authorizer
    ),
    "PersistentVolumeClaimResize": lambda shared: PersistentVolumeClaimResize(shared.api),
    "RuntimeClass": lambda shared: RuntimeClasses(shared.api),
    "CertificateApproval": lambda shared: CertificateApproval(shared.core.authorizer),
    "CertificateSigning": lambda shared: CertificateSigning(shared.core.authorizer),
    "ClusterTrustBundleAttest": lambda shared: ClusterTrustBundleAttest(shared.core.authorizer),
    "CertificateSubjectRestriction": lambda shared: CertificateSubjectRestriction(),
    "DefaultIngressClass": lambda shared: DefaultIngressClass(shared.api),
    "DenyServiceExternalIPs": lambda shared: DenyServiceExternalIPs(),
    "MutatingAdmissionPolicy": lambda shared: MutatingPolicies(
        shared.policies("mutatingadmissionpolicies"), shared.core, shared.versions
    ),
    "MutatingAdmissionWebhook": lambda shared: MutatingWebhooks(
        shared.webhooks("mutatingwebhookconfigurations"), shared.versions
    ),
    "ValidatingAdmissionPolicy": lambda shared: ValidatingPolicies(
        shared.policies("validatingadmissionpolicies"), shared.versions
    ),
    "ValidatingAdmissionWebhook": lambda shared: ValidatingWebhooks(
        shared.webhooks("validatingwebhookconfigurations")
    ),
    "ResourceQuota": lambda shared: ResourceQuotas(shared.api, shared.core.clock),
}
_OFF_BY_DEFAULT = frozenset(
    {
        "NamespaceAutoProvision",
        "AlwaysPullImages",
        "OwnerReferencesPermissionEnforcement",
        "DenyServiceExternalIPs",
    }
)
ADMISSION_PLUGINS = tuple(_PLUGINS)
"""The plugins of kube-apiserver that the embedded server has, in their order."""


def standard_admission(
    core: Core, caller: Caller, *, enabled: Collection[str] = (), disabled: Collection[str] = ()
) -> AdmissionChain:
    """Return the plugins that kube-apiserver runs by default, with the enabled and without the disabled ones.

    Raise ValueError for an unknown name.
    """
    if unknown := sorted({*enabled, *disabled} - _PLUGINS.keys()):
        raise ValueError(f"unknown admission plugin {unknown[0]}: there are {', '.join(_PLUGINS)}")
    left_out = {*disabled, *(_OFF_BY_DEFAULT - set(enabled))}
    shared = _Shared(core, caller)
    chosen = [create(shared) for name, create in _PLUGINS.items() if name not in left_out]
    return AdmissionChain([PodCertificateSigning(core.authorizer), *chosen])


__all__ = ["ADMISSION_PLUGINS", "quota_usage", "standard_admission"]
