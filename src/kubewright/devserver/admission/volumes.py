"""Claims get the default storage class; claims and volumes stay while they are used."""

from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.strategy.access import Access

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_FINALIZERS = {
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass:
    """Name the default class in new claims that name none."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, operation: Operation) -> None:
        """Set the class: of several defaults the youngest, then by name."""
        claim = operation.object
        if not _is_new(operation, "persistentvolumeclaims") or claim is None:
            return
        spec: JsonObject = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None:
            return
        found = [item for item in self._api.list("storage.k8s.io", "storageclasses") if _is_default(item)]
        if found:
            found.sort(key=lambda item: item["metadata"]["name"])
            found.sort(key=lambda item: item["metadata"]["creationTimestamp"], reverse=True)
            spec["storageClassName"] = found[0]["metadata"]["name"]

    async def validate(self, operation: Operation) -> None:
        """Nothing is left to check."""


class StorageProtection:
    """Put a finalizer on new claims, volumes and classes of volumes, which controllers take off when nobody uses them."""

    async def admit(self, operation: Operation) -> None:
        """Add the finalizer."""
        group, _, name = operation.resource
        finalizer = _FINALIZERS.get((group, name))
        if finalizer is None or operation.operation != "CREATE" or operation.object is None:
            return
        if operation.subresource:
            return
        metadata: JsonObject = operation.object["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]

    async def validate(self, operation: Operation) -> None:
        """Nothing is left to check."""


def _is_new(operation: Operation, resource: str) -> bool:
    group, _, name = operation.resource
    return operation.operation == "CREATE" and (group, name) == ("", resource) and not operation.subresource


def _is_default(item: JsonObject) -> bool:
    annotations: JsonObject = item["metadata"].get("annotations") or {}
    return annotations.get(DEFAULT_CLASS) == "true"
