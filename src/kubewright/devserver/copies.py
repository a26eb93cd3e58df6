"""Objects of another cluster, stored as they are: a copy to try things on."""

from collections.abc import Iterable

from kubewright.devserver.core import Core
from kubewright.devserver.objects import JsonObject, copy, labels_of, meta, split_api_version
from kubewright.devserver.registry import Resource
from kubewright.devserver.status import StatusError


def store_copies(core: Core, objects: Iterable[JsonObject]) -> None:
    """Store objects past admission and validation, with uid, status, managers and times as they are there."""
    kinds = {(item.group, item.version, item.kind): item for item in core.registry if "create" in item.verbs}
    for obj in objects:
        resource = kinds.get((*split_api_version(obj["apiVersion"]), obj["kind"]))
        if resource is None:
            raise StatusError.bad_request(f"{obj['apiVersion']} {obj['kind']} is not served here")
        _store(core, resource, copy(obj))


def _store(core: Core, resource: Resource, obj: JsonObject) -> None:
    key = resource.key(meta(obj).get("namespace", ""), meta(obj)["name"])
    new, _ = resource.codec.decode(obj)
    stored = resource.strategy.convert(new, resource.storage_codec.gvk)

    def encode(revision: int) -> bytes:
        meta(stored)["resourceVersion"] = str(revision)
        return resource.storage_codec.encode(stored)

    before = resource.collection.get(key)
    core.store.put(resource.collection, key, before, encode, resource.storage_codec.shape, labels_of(stored))
