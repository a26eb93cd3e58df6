"""Admission: what the server changes in a write, or refuses, beyond what its kind's own rules say."""

from collections.abc import Collection

from kubewright.devserver.admission.chain import AdmissionChain
from kubewright.devserver.admission.claims import ClaimGrowth
from kubewright.devserver.admission.defaults import DefaultIngressClass, NewNodeTaint, RuntimeClasses
from kubewright.devserver.admission.hooks import Hooks
from kubewright.devserver.admission.limit_ranges import LimitRanger
from kubewright.devserver.admission.mutating_policies import MutatingPolicies
from kubewright.devserver.admission.mutating_webhooks import MutatingWebhooks
from kubewright.devserver.admission.namespace_lifecycle import NamespaceLifecycle
from kubewright.devserver.admission.pod_security import PodSecurity
from kubewright.devserver.admission.pods import NodeTroubleTolerations, PodPriority
from kubewright.devserver.admission.policies import Policies
from kubewright.devserver.admission.quota_usage import quota_usage
from kubewright.devserver.admission.quotas import ResourceQuotas
from kubewright.devserver.admission.service_accounts import ServiceAccounts
from kubewright.devserver.admission.validating_policies import ValidatingPolicies
from kubewright.devserver.admission.validating_webhooks import ValidatingWebhooks
from kubewright.devserver.admission.versions import Versions
from kubewright.devserver.admission.volumes import DefaultStorageClass, StorageProtection
from kubewright.devserver.core import Core
from kubewright.devserver.request.admission import Admission
from kubewright.devserver.request.identity import Authorizer
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client import Caller


def standard_admission(
    core: Core, api: Access, authorizer: Authorizer, caller: Caller, *, disabled: Collection[str] = ()
) -> AdmissionChain:
    """Give the plugins of a default server in their order, less those disabled by their Kubernetes names."""
    versions = Versions(core, api, authorizer)
    mutating = Hooks("mutatingwebhookconfigurations", core, api, versions, caller)
    validating = Hooks("validatingwebhookconfigurations", core, api, versions, caller)
    judging = Policies("validatingadmissionpolicies", core, api)
    changing = Policies("mutatingadmissionpolicies", core, api)
    plugins: dict[str, Admission] = {
        "NamespaceLifecycle": NamespaceLifecycle(api),
        "LimitRanger": LimitRanger(api),
        "ServiceAccount": ServiceAccounts(api),
        "TaintNodesByCondition": NewNodeTaint(),
        "PodSecurity": PodSecurity(api),
        "Priority": PodPriority(api),
        "DefaultTolerationSeconds": NodeTroubleTolerations(),
        "DefaultStorageClass": DefaultStorageClass(api),
        "StorageObjectInUseProtection": StorageProtection(),
        "PersistentVolumeClaimResize": ClaimGrowth(api),
        "RuntimeClass": RuntimeClasses(api),
        "DefaultIngressClass": DefaultIngressClass(api),
        "MutatingAdmissionPolicy": MutatingPolicies(changing, core, versions),
        "MutatingAdmissionWebhook": MutatingWebhooks(mutating, versions),
        "ValidatingAdmissionPolicy": ValidatingPolicies(judging, versions),
        "ValidatingAdmissionWebhook": ValidatingWebhooks(validating),
        "ResourceQuota": ResourceQuotas(api, core.clock),
    }
    if unknown := sorted(set(disabled) - plugins.keys()):
        raise ValueError(f"unknown admission plugin {unknown[0]}: there are {', '.join(plugins)}")
    return AdmissionChain([plugin for name, plugin in plugins.items() if name not in disabled])


__all__ = ["AdmissionChain", "quota_usage", "standard_admission"]
