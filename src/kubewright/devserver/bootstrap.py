"""Write objects straight into the store: those of an empty cluster, and copies of another cluster."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import uuid4

from kubewright.devserver.builtin.services import CLUSTER_NETWORK
from kubewright.devserver.core import Core
from kubewright.devserver.objects import (
    JsonObject,
    copy,
    items,
    labels_of,
    meta,
    section,
    split_api_version,
)
from kubewright.devserver.objects.metadata import fill_system_fields
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.storage import Record

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVICE_ADDRESS = "10.0.0.1"
LOOPBACK = "127.0.0.1"
# kube-apiserver's priorities: they decide which group and version kubectl prefers for an ambiguous name.
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
    "storagemigration.k8s.io": 15800,
}
_VERSION_PRIORITIES = {
    "v1.": 1,
    "v2.autoscaling": 30,
    "v1.resource.k8s.io": 21,
    "v1.flowcontrol.apiserver.k8s.io": 21,
    "v1beta3.flowcontrol.apiserver.k8s.io": 18,
}
_VERSION_PRIORITY = 15
# Placeholders in templates.
_UID, _REVISION, _MOMENT = "22222222-0000-4000-8000-222222222222", "4444444444444", "1999-09-09T09:09:09Z"
# Objects without a template, because servers differ in these fields; a server that opens a data file updates them.
_OWN: dict[tuple[str, str], Sequence[tuple[str, ...]]] = {
    ("services", "default/kubernetes"): [("spec", "ports")],
    ("endpoints", "default/kubernetes"): [("subsets",)],
    ("endpointslices.discovery.k8s.io", "default/kubernetes"): [("endpoints",), ("ports",)],
    ("configmaps", "kube-system/extension-apiserver-authentication"): [("data",)],
    ("configmaps", "kube-system/kube-apiserver-legacy-service-account-token-tracking"): [],
}


def first_objects(host: str, port: int, client_ca: str, stamp: str) -> Iterator[JsonObject]:
    """Yield the namespaces of an empty server that listens on `host` and `port`, and what it publishes about itself."""
    for name in NAMESPACES:
        yield {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
    yield from _own_service(host, port)
    yield from _service_network()
    yield {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": client_ca},
    }
    yield {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "kube-apiserver-legacy-service-account-token-tracking",
            "namespace": "kube-system",
        },
        "data": {"since": stamp[:10]},
    }


def _own_service(host: str, port: int) -> Iterator[JsonObject]:
    """Yield the Service default/kubernetes and its endpoints."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    metadata: JsonObject = {"name": "kubernetes", "namespace": "default"}
    address = host if _is_address(host) else LOOPBACK
    yield {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {**metadata, "labels": labels},
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
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    yield {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    }
    yield {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }


def _is_address(host: str) -> bool:
    """Return True if clients can connect to a host by this address."""
    try:
        return not ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _service_network() -> Iterator[JsonObject]:
    """Yield the network of cluster IPs, and the address that is in use from the start."""
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": _MOMENT,
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    yield {
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [str(CLUSTER_NETWORK)]},
        "status": {"conditions": [ready]},
    }
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    yield {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": SERVICE_ADDRESS, "labels": labels},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}},
    }


def _api_services(core: Core) -> Iterator[JsonObject]:
    """Yield an APIService for each built-in group version."""
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


def seed(core: Core, objects: Iterable[JsonObject]) -> None:
    """Store the objects that do not exist yet, bypassing admission and validation."""
    kinds = {(item.group, item.version, item.kind): item for item in core.registry if "create" in item.verbs}
    stamp = core.clock.stamp()
    for obj in chain(objects, _api_services(core)):
        resource = kinds.get((*split_api_version(obj["apiVersion"]), obj["kind"]))
        if resource is not None:
            _store(core, resource, obj, stamp)


def _store(core: Core, resource: ServedResource, obj: JsonObject, stamp: str) -> None:
    key = resource.key(meta(obj).get("namespace", ""), meta(obj)["name"])
    place = (resource.collection.name, key)
    known = _templates.setdefault(core.types.release.version, {})
    if (record := resource.collection.get(key)) is not None:
        if fields := _OWN.get(place):
            _update(core, resource, record, obj, fields)
        return
    template = known.get(place) if place not in _OWN else None
    if template is None:
        template = known[place] = _Template.of(resource, obj)
    core.store.put(
        resource.collection,
        key,
        None,
        lambda revision: template.render(revision, stamp),
        resource.storage_codec.shape,
        template.labels,
    )


def _update(
    core: Core, resource: ServedResource, record: Record, obj: JsonObject, fields: Sequence[tuple[str, ...]]
) -> None:
    """Set fields of a stored object that describe this server."""
    old = resource.read(record)
    new, desired = copy(old), resource.codec.decode(copy(obj))[0]
    for *parents, name in fields:
        section(new, *parents)[name] = section(desired, *parents)[name]
    if resource.codec.encode(new) == resource.codec.encode(old):
        return

    def encode(revision: int) -> bytes:
        meta(new)["resourceVersion"] = str(revision)
        return resource.codec.encode(new)

    core.store.put(resource.collection, record.key, record, encode, resource.codec.shape, labels_of(new))


@dataclass(frozen=True, slots=True)
class _Template:
    """The encoded bytes of a bootstrap object, with placeholders for what differs between servers."""

    data: bytes
    labels: dict[str, str]

    @classmethod
    def of(cls, resource: ServedResource, obj: JsonObject) -> "_Template":
        """Encode an object as it is stored, with placeholders."""
        new, _ = resource.codec.decode(copy(obj))
        for condition in items(section(new, "status"), "conditions"):
            condition["lastTransitionTime"] = _MOMENT
        resource.codec.default(new)
        fill_system_fields(new, _MOMENT)
        meta(new).update(uid=_UID, resourceVersion=_REVISION)
        if resource.strategy.has_generation:
            meta(new)["generation"] = 1
        stored = resource.strategy.convert(new, resource.storage_codec.gvk)
        return cls(resource.storage_codec.encode(stored), labels_of(stored))

    def render(self, revision: int, stamp: str) -> bytes:
        """Return the bytes with a new uid, a resource version and a creation time."""
        data = self.data.replace(_UID.encode(), str(uuid4()).encode())
        data = data.replace(_REVISION.encode(), str(revision).encode())
        return data.replace(_MOMENT.encode(), stamp.encode())


_templates: dict[str, dict[tuple[str, str], _Template]] = {}
"""By release, templates shared by all its servers in a process: encoding these objects is most of the time a server needs to start."""


def store_copies(core: Core, objects: Iterable[JsonObject]) -> None:
    """Store objects as they are (uid, status, managedFields, timestamps), bypassing admission and validation."""
    kinds = {(item.group, item.version, item.kind): item for item in core.registry if "create" in item.verbs}
    for obj in objects:
        resource = kinds.get((*split_api_version(obj["apiVersion"]), obj["kind"]))
        if resource is None:
            raise StatusError.bad_request(f"{obj['apiVersion']} {obj['kind']} is not served here")
        _store_copy(core, resource, copy(obj))


def _store_copy(core: Core, resource: ServedResource, obj: JsonObject) -> None:
    key = resource.key(meta(obj).get("namespace", ""), meta(obj)["name"])
    new, _ = resource.codec.decode(obj)
    stored = resource.strategy.convert(new, resource.storage_codec.gvk)

    def encode(revision: int) -> bytes:
        meta(stored)["resourceVersion"] = str(revision)
        return resource.storage_codec.encode(stored)

    before = resource.collection.get(key)
    core.store.put(resource.collection, key, before, encode, resource.storage_codec.shape, labels_of(stored))
