"""ResourceQuotas: what a namespace uses of what it may."""

from collections.abc import Iterable, Mapping

from kubewright.api import Object, Quantity
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, Index, Tuning, watch
from kubewright.devcluster.nodes import requests_of
from kubewright.devcluster.pods import counts_anew

NAME = "resourcequota-controller"
_ZERO = Quantity("0")
_COUNTED: Mapping[str, type[Object]] = {
    "services": core_v1.Service,
    "configmaps": core_v1.ConfigMap,
    "secrets": core_v1.Secret,
    "persistentvolumeclaims": core_v1.PersistentVolumeClaim,
    "resourcequotas": core_v1.ResourceQuota,
}

quotas_by_namespace: Index[core_v1.ResourceQuota] = Index(
    core_v1.ResourceQuota, lambda item: [item.metadata.namespace]
)


def limits_of(pod: core_v1.Pod) -> dict[str, Quantity]:
    """Sum up the limits of a Pod's containers."""
    return _sum(container.resources.limits for container in pod.spec.containers)


def _sum(parts: Iterable[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, _ZERO) + amount
    return total


def used_by_pods(pods: Iterable[core_v1.Pod]) -> dict[str, Quantity]:
    """Sum up what Pods that have not ended use, under every name a quota may give it."""
    active = [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed")]
    requests, limits = _sum(map(requests_of, active)), _sum(map(limits_of, active))
    used = {f"limits.{name}": amount for name, amount in limits.items()}
    for name, amount in requests.items():
        used[name] = used[f"requests.{name}"] = amount
    used["pods"] = used["count/pods"] = Quantity(str(len(active)))
    return used


async def reconcile(quota: core_v1.ResourceQuota, ctx: Context) -> None:
    """Say what is used of each resource that the quota names."""
    namespace = quota.metadata.namespace
    used = used_by_pods(await ctx.list(core_v1.Pod, namespace=namespace))
    for name, kind in _COUNTED.items():
        if name in quota.spec.hard or f"count/{name}" in quota.spec.hard:
            count = Quantity(str(len(await ctx.list(kind, namespace=namespace))))
            used[name] = used[f"count/{name}"] = count
    if "requests.storage" in quota.spec.hard:
        claims = await ctx.list(core_v1.PersistentVolumeClaim, namespace=namespace)
        asked = _sum(claim.spec.resources.requests for claim in claims)
        used["requests.storage"] = asked.get("storage", _ZERO)
    status = core_v1.ResourceQuotaStatus(
        hard=quota.spec.hard, used={name: used.get(name, _ZERO) for name in quota.spec.hard}
    )
    await ctx.patch_status(quota, status)


def _home(obj: Object) -> str:
    return obj.metadata.namespace


def controller() -> Controller[core_v1.ResourceQuota]:
    """Declare the controller."""
    others = [kind for kind in _COUNTED.values() if kind is not core_v1.ResourceQuota]
    return Controller(
        core_v1.ResourceQuota,
        reconcile,
        name=NAME,
        watches=[
            watch(core_v1.Pod, via=quotas_by_namespace, key=_home, when=counts_anew),
            *(watch(kind, via=quotas_by_namespace, key=_home) for kind in others),
        ],
        tuning=Tuning(reporter=NAME),
    )
