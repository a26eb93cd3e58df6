"""Discovery documents, of the older and the aggregated form, made once for each state of the registry."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import JsonObject, api_version, encode
from kubewright.devserver.registry.resources import ResourceRegistry, ServedResource
from kubewright.schema import version_priority

# Kinds that kube-apiserver stores in a version it does not serve by default; only their hash shows it.
_STORED_OTHERWISE = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "v1beta1",
    ("certificates.k8s.io", "ClusterTrustBundle"): "v1beta1",
    ("certificates.k8s.io", "PodCertificateRequest"): "v1beta1",
    ("resource.k8s.io", "DeviceTaintRule"): "v1beta2",
    ("storagemigration.k8s.io", "StorageVersionMigration"): "v1beta1",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Document:
    """A discovery document's bytes and the tag that names them."""

    body: bytes
    etag: str


def storage_version_hash(resource: ServedResource) -> str:
    """Return the hash of a resource's storage version, as kube-apiserver computes it."""
    gvk = resource.storage_codec.gvk
    version = _STORED_OTHERWISE.get((gvk.group, gvk.kind), gvk.version)
    digest = hashlib.sha256(f"{gvk.group}/{version}/{gvk.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


class Discovery:
    """Serve the discovery documents."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._made: dict[str, Document] = {}
        self._generation = -1
        self.address = ""

    def _document(self, name: str, build: JsonObject | None) -> Document | None:
        if build is None:
            return None
        body = encode(build)
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        found = self._made[name] = Document(body, tag)
        return found

    def _known(self, name: str) -> Document | None:
        if self._generation != self._registry.generation:
            self._made.clear()
            self._generation = self._registry.generation
        return self._made.get(name)

    def versions(self) -> Document:
        """Return `/api`."""
        found = self._known("/api") or self._document("/api", self._core_versions())
        assert found is not None
        return found

    def groups(self) -> Document:
        """Return `/apis`."""
        groups = [self._group(name) for name in self._group_names()]
        document: JsonObject = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        found = self._known("/apis") or self._document("/apis", document)
        assert found is not None
        return found

    def group(self, name: str) -> Document | None:
        """Return `/apis/GROUP`."""
        if name not in self._group_names():
            return None
        key = f"/apis/{name}"
        return self._known(key) or self._document(
            key, {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}
        )

    def resources(self, group: str, version: str) -> Document | None:
        """Return `/api/v1` or `/apis/GROUP/VERSION`."""
        if not self._registry.serves(group, version):
            return None
        key = f"{group}/{version}"
        return self._known(key) or self._document(key, self._resource_list(group, version))

    def aggregated(self, version: str, *, core: bool) -> Document:
        """Return everything at once: the core group, or all the others."""
        key = f"aggregated/{version}/{core}"
        found = self._known(key)
        if found is None:
            names: Sequence[str] = ("",) if core else self._group_names()
            document: JsonObject = {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{version}",
                "metadata": {},
                "items": [self._aggregated_group(name) for name in names],
            }
            found = self._document(key, document)
        assert found is not None
        return found

    def paths(self) -> list[str]:
        """Return the paths that the root document lists."""
        found = ["/api", "/api/v1", "/apis", "/apis/"]
        for group, version in self._registry.group_versions():
            if group:
                found += [f"/apis/{group}", f"/apis/{group}/{version}"]
        return sorted(set(found))

    def _group_names(self) -> list[str]:
        return list(dict.fromkeys(group for group, _ in self._registry.group_versions() if group))

    def _group_versions(self, name: str) -> list[str]:
        found = [version for group, version in self._registry.group_versions() if group == name]
        return sorted(found, key=version_priority, reverse=True)

    def _core_versions(self) -> JsonObject:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    def _group(self, name: str) -> JsonObject:
        versions = [
            {"groupVersion": api_version(name, version), "version": version}
            for version in self._group_versions(name)
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> JsonObject:
        entries: list[JsonObject] = []
        for resource in self._registry.resources(group, version):
            entries += _legacy_entries(resource)
        document: JsonObject = {"kind": "APIResourceList"}
        if group:
            document["apiVersion"] = "v1"
        return {**document, "groupVersion": api_version(group, version), "resources": entries}

    def _aggregated_group(self, name: str) -> JsonObject:
        metadata: JsonObject = {"name": name} if name else {}
        versions = [
            {
                "version": version,
                "resources": [_aggregated_entry(item) for item in self._registry.resources(name, version)],
                "freshness": "Current",
            }
            for version in self._group_versions(name)
        ]
        return {"metadata": metadata, "versions": versions}


def _legacy_entries(resource: ServedResource) -> Iterable[JsonObject]:
    entry: JsonObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = storage_version_hash(resource)
    yield entry
    for sub in resource.subresources.values():
        part: JsonObject = {
            "name": f"{resource.plural}/{sub.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
        }
        if (sub.gvk.group, sub.gvk.version) != (resource.group, resource.version):
            part["group"], part["version"] = sub.gvk.group, sub.gvk.version
        yield {**part, "kind": sub.gvk.kind, "verbs": list(sub.verbs)}


def _aggregated_entry(resource: ServedResource) -> JsonObject:
    entry: JsonObject = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource, resource.gvk),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _response_kind(resource, sub.gvk),
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources.values()
        ]
    return entry


def _response_kind(resource: ServedResource, gvk: GroupVersionKind) -> JsonObject:
    """Return a kind for discovery; built-in resources leave out the group version in which they are served."""
    if not resource.custom and (gvk.group, gvk.version) == (resource.group, resource.version):
        return {"group": "", "version": "", "kind": gvk.kind}
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
