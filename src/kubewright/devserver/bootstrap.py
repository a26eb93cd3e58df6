"""What an empty server starts with: the first namespaces, its own service, roles and priority classes."""

from collections.abc import Iterable, Iterator
from functools import cache

from .auth import bootstrap_objects
from .core import Core
from .metadata import fill_system_fields
from .objects import Wire, copy, labels_of, meta, split_api_version
from .registry import Resource

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVICE_ADDRESS = "10.0.0.1"


def first_objects(port: int) -> Iterator[Wire]:
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


@cache
def recorded_objects() -> list[Wire]:
    """Give the roles, bindings and priority classes of every cluster, read once."""
    return bootstrap_objects()


def seed(core: Core, objects: Iterable[Wire]) -> None:
    """Store the objects that are not there yet, past admission: nobody asked for them."""
    kinds = {(item.group, item.version, item.kind): item for item in core.registry if "create" in item.verbs}
    stamp = core.clock.stamp()
    for obj in objects:
        resource = kinds.get((*split_api_version(obj["apiVersion"]), obj["kind"]))
        if resource is not None:
            _store(core, resource, copy(obj), stamp)


def _store(core: Core, resource: Resource, obj: Wire, stamp: str) -> None:
    key = resource.key(meta(obj).get("namespace", ""), meta(obj)["name"])
    if resource.collection.get(key) is not None:
        return
    new, _ = resource.codec.decode(obj)
    resource.codec.default(new)
    fill_system_fields(new, stamp)
    if resource.strategy.has_generation:
        meta(new)["generation"] = 1
    stored = resource.strategy.convert(new, resource.storage_codec.gvk)

    def encode(revision: int) -> bytes:
        meta(stored)["resourceVersion"] = str(revision)
        return resource.storage_codec.encode(stored)

    core.store.put(resource.collection, key, None, encode, resource.storage_codec.shape, labels_of(stored))
