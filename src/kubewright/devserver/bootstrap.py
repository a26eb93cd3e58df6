"""What an empty server starts with: the first namespaces, its own service, roles and priority classes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from uuid import uuid4

from kubewright.devserver.auth import bootstrap_objects
from kubewright.devserver.core import Core
from kubewright.devserver.metadata import fill_system_fields
from kubewright.devserver.objects import JsonObject, copy, labels_of, meta, split_api_version
from kubewright.devserver.registry import Resource

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVICE_ADDRESS = "10.0.0.1"
# The real server's priorities: which group and which version kubectl prefers where names meet.
_GROUP_PRIORITIES = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
_VERSION_PRIORITIES = {
    "v1.": 1,
    "v2.autoscaling": 30,
    "v1.resource.k8s.io": 21,
    "v1.flowcontrol.apiserver.k8s.io": 21,
}
_VERSION_PRIORITY = 15
# What stands in a mould for the server's own; the service's port is another in each server.
_UID, _REVISION, _MOMENT = "22222222-0000-4000-8000-222222222222", "4444444444444", "1999-09-09T09:09:09Z"
_CHANGING = ("services", "default/kubernetes")


def first_objects(port: int) -> Iterator[JsonObject]:
    """Give the objects of an empty server that listens on a port."""
    for name in NAMESPACES:
        yield {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
    labels = {"component": "apiserver", "provider": "kubernetes"}
    yield {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "clusterIP": SERVICE_ADDRESS,
            "clusterIPs": [SERVICE_ADDRESS],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
    }


def _api_services(core: Core) -> Iterator[JsonObject]:
    """Register each built-in version as served here."""
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": _MOMENT,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    for group, version in core.registry.group_versions():
        if group in _GROUP_PRIORITIES:
            name = f"{version}.{group}"
            yield {
                "kind": "APIService",
                "apiVersion": "apiregistration.k8s.io/v1",
                "metadata": {
                    "name": name,
                    "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
                },
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": _GROUP_PRIORITIES[group],
                    "versionPriority": _VERSION_PRIORITIES.get(name, _VERSION_PRIORITY),
                },
                "status": {"conditions": [available]},
            }


@cache
def recorded_objects() -> list[JsonObject]:
    """Give the roles, bindings and priority classes of every cluster, read once."""
    return bootstrap_objects()


def seed(core: Core, objects: Iterable[JsonObject]) -> None:
    """Store the objects that are not there yet, past admission: nobody asked for them."""
    kinds = {(item.group, item.version, item.kind): item for item in core.registry if "create" in item.verbs}
    stamp = core.clock.stamp()
    for obj in chain(objects, _api_services(core)):
        resource = kinds.get((*split_api_version(obj["apiVersion"]), obj["kind"]))
        if resource is not None:
            _store(core, resource, obj, stamp)


def _store(core: Core, resource: Resource, obj: JsonObject, stamp: str) -> None:
    key = resource.key(meta(obj).get("namespace", ""), meta(obj)["name"])
    if resource.collection.get(key) is not None:
        return
    place = (resource.collection.name, key)
    mould = _moulds.get(place) if place != _CHANGING else None
    if mould is None:
        mould = _moulds[place] = _Mould.of(resource, obj)
    core.store.put(
        resource.collection,
        key,
        None,
        lambda revision: mould.cast(revision, stamp),
        resource.storage_codec.shape,
        mould.labels,
    )


@dataclass(frozen=True, slots=True)
class _Mould:
    """The bytes of an object that every new server has, but for what makes it this server's."""

    data: bytes
    labels: dict[str, str]

    @classmethod
    def of(cls, resource: Resource, obj: JsonObject) -> "_Mould":
        """Bring an object into the form in which it is stored."""
        new, _ = resource.codec.decode(copy(obj))
        resource.codec.default(new)
        fill_system_fields(new, _MOMENT)
        meta(new).update(uid=_UID, resourceVersion=_REVISION)
        if resource.strategy.has_generation:
            meta(new)["generation"] = 1
        stored = resource.strategy.convert(new, resource.storage_codec.gvk)
        return cls(resource.storage_codec.encode(stored), labels_of(stored))

    def cast(self, revision: int, stamp: str) -> bytes:
        """Give the bytes with an identity, a revision and a time."""
        data = self.data.replace(_UID.encode(), str(uuid4()).encode())
        data = data.replace(_REVISION.encode(), str(revision).encode())
        return data.replace(_MOMENT.encode(), stamp.encode())


_moulds: dict[tuple[str, str], _Mould] = {}
"""What the first server of a process has made, for those that follow: starting one is mostly this."""
