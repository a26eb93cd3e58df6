"""Register the group versions of custom resources as APIServices, so that `kubectl get apiservices` lists them."""

from collections.abc import Set

from kubewright.devserver.objects import JsonObject, meta
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.strategy.access import Access

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_GROUP_PRIORITY, _VERSION_PRIORITY = 1000, 100


class ApiServices:
    """Keep one APIService for each group version that custom resources are served in."""

    def __init__(self, api: Access, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def follow(self, versions: Set[tuple[str, str]]) -> None:
        """Create missing APIServices and remove those of versions that are no longer served."""
        present = {meta(item)["name"] for item in self._api.list(GROUP, PLURAL, labels=f"{_MANAGED}=true")}
        desired = {f"{version}.{group}": (group, version) for group, version in versions}
        for name in sorted(desired.keys() - present):
            if self._api.find(GROUP, PLURAL, "", name) is None:
                await self._register(name, *desired[name])
        for name in sorted(present - desired.keys()):
            await self._api.delete(GROUP, PLURAL, "", name)

    async def _register(self, name: str, group: str, version: str) -> None:
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "versionPriority": _VERSION_PRIORITY,
        }
        metadata = {"name": name, "labels": {_MANAGED: "true"}}
        await self._api.create(GROUP, PLURAL, {"metadata": metadata, "spec": spec})
        await self._api.update(GROUP, PLURAL, "", name, self._mark_available, subresource="status")

    def _mark_available(self, service: JsonObject) -> None:
        available = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": self._clock.stamp(),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        service["status"] = {"conditions": [available]}
