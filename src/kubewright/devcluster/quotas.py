"""The ResourceQuota controller: recounts what each namespace uses."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from kubewright.api import Conflict, Kind, NotFound, Object, Quantity, kind_of, to_wire
from kubewright.api.builtin import apps_v1, batch_v1, core_v1
from kubewright.client import Client
from kubewright.controller import Change, Context, Controller, Index, Options, Result, watch
from kubewright.devcluster import clock
from kubewright.devcluster.garbage import deletable_kinds
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import affects_pod_counts
from kubewright.devserver import quota_usage

NAME = "resourcequota-controller"
RETRY_CONFLICT = timedelta(milliseconds=50)
RECOUNT = timedelta(seconds=10)
"""How often to recount kinds that are not watched."""
_ZERO = Quantity("0")
_COUNT, _PODS = "count/", "pods"
_WATCHED: Mapping[tuple[str, str], type[Object]] = {
    (kind_of(item).group, kind_of(item).plural): item
    for item in (
        core_v1.Pod,
        core_v1.Service,
        core_v1.ConfigMap,
        core_v1.Secret,
        core_v1.PersistentVolumeClaim,
        core_v1.ResourceQuota,
        apps_v1.Deployment,
        apps_v1.ReplicaSet,
        apps_v1.StatefulSet,
        apps_v1.DaemonSet,
        batch_v1.Job,
        batch_v1.CronJob,
    )
}

quotas_by_namespace: Index[core_v1.ResourceQuota] = Index(
    core_v1.ResourceQuota, lambda item: [item.metadata.namespace]
)


def resource_of(name: str) -> tuple[str, str]:
    """Return the group and the plural of the resource that a quota limit counts."""
    if name.startswith(_COUNT):
        plural, _, group = name.removeprefix(_COUNT).partition(".")
        return group, plural
    if name == "requests.storage" or name.endswith(
        ("persistentvolumeclaims", ".storageclass.storage.k8s.io/requests.storage")
    ):
        return "", "persistentvolumeclaims"
    if name.endswith(".deviceclass.resource.k8s.io/devices"):
        return "resource.k8s.io", "resourceclaims"
    if name.startswith("services."):
        return "", "services"
    return (
        ("", name) if name in {plural for _, plural in _WATCHED} | {"replicationcontrollers"} else ("", _PODS)
    )


class Quotas:
    """Recount usage: the API server adds to it on creation, but does not subtract on deletion."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, quota: core_v1.ResourceQuota, ctx: Context) -> Result | None:
        """Update the usage of each resource that the quota limits."""
        meta = quota.metadata
        resources = {resource_of(name) for name in quota.spec.hard}
        try:
            # Read the quota before counting: usage that the server adds meanwhile makes the write
            # conflict.
            fresh = await self._client.get(core_v1.ResourceQuota, meta.name, meta.namespace)
            used = dict.fromkeys(fresh.spec.hard, _ZERO)
            for kind in await self._kinds(resources):
                for name, amount in await self._usage(fresh, kind):
                    if name in used:
                        used[name] += amount
            if (fresh.status.hard, fresh.status.used) != (fresh.spec.hard, used):
                fresh.status = core_v1.ResourceQuotaStatus(hard=fresh.spec.hard, used=used)
                await self._client.replace(fresh, subresource="status")
        except NotFound:
            return None
        except Conflict:
            return Result(after=RETRY_CONFLICT)
        return Result(after=RECOUNT) if resources - _WATCHED.keys() else None

    async def _kinds(self, resources: set[tuple[str, str]]) -> Iterable[Kind]:
        known = {resource: kind_of(_WATCHED[resource]) for resource in resources & _WATCHED.keys()}
        if resources != known.keys():
            found = await deletable_kinds(self._client)
            known |= {
                (kind.group, kind.plural): kind for kind in found if (kind.group, kind.plural) in resources
            }
        return known.values()

    async def _usage(self, quota: core_v1.ResourceQuota, kind: Kind) -> list[tuple[str, Quantity]]:
        wire, now = to_wire(quota), clock.now().timestamp()
        objects = await self._client.list(kind, namespace=quota.metadata.namespace)
        return [part for obj in objects for part in quota_usage(wire, kind, obj, now).items()]


def _limits_changed(change: Change[core_v1.ResourceQuota]) -> bool:
    """Return True if the limits are not in the status yet; the API server itself adds to the usage."""
    return change.new is not None and change.new.status.hard != change.new.spec.hard


def _is_deleted(change: Change[Any]) -> bool:
    return change.after is None


def _is_update_or_delete(change: Change[Any]) -> bool:
    return change.before is not None


def _pod_releases(change: Change[core_v1.Pod]) -> bool:
    """Return True if a Pod may count less, or in another quota: a deadline moves it to the scope Terminating."""
    old, new = change.old, change.new
    if change.before is None:
        return False
    return affects_pod_counts(change) or (
        old is not None
        and new is not None
        and old.spec.active_deadline_seconds != new.spec.active_deadline_seconds
    )


_RELEASING_CHANGES: Mapping[type[Object], Callable[[Change[Any]], bool]] = {
    core_v1.Pod: _pod_releases,
    core_v1.Service: _is_update_or_delete,
    core_v1.PersistentVolumeClaim: _is_update_or_delete,
}
"""Kinds for which an update, not only a deletion, may release quota."""


def _namespace(obj: Object) -> str:
    return obj.metadata.namespace


def controller(client: Client) -> Controller[core_v1.ResourceQuota]:
    """Declare the ResourceQuota controller."""
    return Controller(
        core_v1.ResourceQuota,
        Quotas(client),
        name=NAME,
        when=_limits_changed,
        watches=[
            watch(
                kind, via=quotas_by_namespace, key=_namespace, when=_RELEASING_CHANGES.get(kind, _is_deleted)
            )
            for kind in _WATCHED.values()
        ],
        options=Options(reporter=NAME, field_manager=FIELD_MANAGER),
    )
