"""Admission: what the server changes in a write, or refuses, beyond what its kind's own rules say."""

from collections.abc import Collection

from kubewright.devserver.access import Access
from kubewright.devserver.admission.chain import AdmissionChain
from kubewright.devserver.admission.namespace_lifecycle import NamespaceLifecycle
from kubewright.devserver.admission.pods import NodeTroubleTolerations, PodPriority
from kubewright.devserver.admission.service_accounts import ServiceAccounts
from kubewright.devserver.operation import Admission


def standard_admission(api: Access, *, disabled: Collection[str] = ()) -> AdmissionChain:
    """Give the plugins of a default server in their order, less those disabled by their Kubernetes names."""
    plugins: dict[str, Admission] = {
        "NamespaceLifecycle": NamespaceLifecycle(api),
        "ServiceAccount": ServiceAccounts(api),
        "Priority": PodPriority(api),
        "DefaultTolerationSeconds": NodeTroubleTolerations(),
    }
    if unknown := sorted(set(disabled) - plugins.keys()):
        raise ValueError(f"unknown admission plugin {unknown[0]}: there are {', '.join(plugins)}")
    return AdmissionChain([plugin for name, plugin in plugins.items() if name not in disabled])


__all__ = ["AdmissionChain", "standard_admission"]
