"""The admission plugins of the server.

Read in this order: `standard_admission` below (the entry point: all plugins in kube-apiserver's order), `webhooks` and
`reviews` (admission webhooks), `policies`, `mutating_policies` and `validating_policies` (CEL policies),
`matching` and `versions` (which writes match, and in which version), then one file for each other concern.
"""

from collections.abc import Collection

from kubewright.devserver.admission.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from kubewright.devserver.admission.defaults import DefaultIngressClass, RuntimeClasses, TaintNodesByCondition
from kubewright.devserver.admission.limit_ranges import LimitRanger
from kubewright.devserver.admission.mutating_policies import MutatingPolicies
from kubewright.devserver.admission.namespace_lifecycle import NamespaceLifecycle
from kubewright.devserver.admission.pod_security import PodSecurity
from kubewright.devserver.admission.pods import DefaultTolerationSeconds, PodPriority, ServiceAccounts
from kubewright.devserver.admission.policies import PolicySet
from kubewright.devserver.admission.quotas import ResourceQuotas, quota_usage
from kubewright.devserver.admission.validating_policies import ValidatingPolicies
from kubewright.devserver.admission.versions import Versions
from kubewright.devserver.admission.volumes import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from kubewright.devserver.admission.webhooks import Hooks, MutatingWebhooks, ValidatingWebhooks
from kubewright.devserver.core import Core
from kubewright.devserver.request.admission import AdmissionChain, AdmissionPlugin
from kubewright.devserver.webhook_client import Caller


def standard_admission(core: Core, caller: Caller, *, disabled: Collection[str] = ()) -> AdmissionChain:
    """Return the plugins that kube-apiserver runs by default, in its order, without the disabled ones."""
    api, authorizer = core.api, core.authorizer
    versions = Versions(core, api, authorizer)
    mutating = Hooks("mutatingwebhookconfigurations", core, api, versions, caller)
    validating = Hooks("validatingwebhookconfigurations", core, api, versions, caller)
    validating_policies = PolicySet("validatingadmissionpolicies", core, api)
    mutating_policies = PolicySet("mutatingadmissionpolicies", core, api)
    plugins: dict[str, AdmissionPlugin] = {
        "NamespaceLifecycle": NamespaceLifecycle(api),
        "LimitRanger": LimitRanger(api),
        "ServiceAccount": ServiceAccounts(api),
        "TaintNodesByCondition": TaintNodesByCondition(),
        "PodSecurity": PodSecurity(api),
        "Priority": PodPriority(core.store, api),
        "DefaultTolerationSeconds": DefaultTolerationSeconds(),
        "DefaultStorageClass": DefaultStorageClass(core.store, api),
        "StorageObjectInUseProtection": StorageObjectInUseProtection(),
        "PersistentVolumeClaimResize": PersistentVolumeClaimResize(api),
        "RuntimeClass": RuntimeClasses(api),
        "CertificateApproval": CertificateApproval(core.authorizer),
        "CertificateSigning": CertificateSigning(core.authorizer),
        "CertificateSubjectRestriction": CertificateSubjectRestriction(),
        "DefaultIngressClass": DefaultIngressClass(api),
        "MutatingAdmissionPolicy": MutatingPolicies(mutating_policies, core, versions),
        "MutatingAdmissionWebhook": MutatingWebhooks(mutating, versions),
        "ValidatingAdmissionPolicy": ValidatingPolicies(validating_policies, versions),
        "ValidatingAdmissionWebhook": ValidatingWebhooks(validating),
        "ResourceQuota": ResourceQuotas(api, core.clock),
    }
    if unknown := sorted(set(disabled) - plugins.keys()):
        raise ValueError(f"unknown admission plugin {unknown[0]}: there are {', '.join(plugins)}")
    return AdmissionChain([plugin for name, plugin in plugins.items() if name not in disabled])


__all__ = ["quota_usage", "standard_admission"]
