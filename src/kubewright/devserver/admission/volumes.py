"""Claims get the default storage class; claims and volumes stay while they are used."""

from kubewright.devserver.builtin.pods.resources import quantities
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_FINALIZERS = {
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass(AdmissionPlugin):
    """Name the default class in new claims that name none."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set the class: of several defaults the youngest, then by name."""
        claim = attributes.object
        if not attributes.is_write_of("", "persistentvolumeclaims", "CREATE") or claim is None:
            return
        spec: JsonObject = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None:
            return
        found = [item for item in self._api.list("storage.k8s.io", "storageclasses") if _is_default(item)]
        if found:
            found.sort(key=lambda item: item["metadata"]["name"])
            found.sort(key=lambda item: item["metadata"]["creationTimestamp"], reverse=True)
            spec["storageClassName"] = found[0]["metadata"]["name"]


class StorageProtection(AdmissionPlugin):
    """Add a finalizer to new claims, volumes and volume attributes classes; controllers remove it when they are unused."""

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Add the finalizer."""
        group, _, name = attributes.resource
        finalizer = _FINALIZERS.get((group, name))
        if finalizer is None or attributes.operation != "CREATE" or attributes.object is None:
            return
        if attributes.subresource:
            return
        metadata: JsonObject = attributes.object["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]


class ClaimGrowth(AdmissionPlugin):
    """Let claims grow only where their class can do it."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Refuse growth that would never happen."""
        new, old = attributes.object, attributes.old_object
        if not attributes.is_write_of("", "persistentvolumeclaims", "UPDATE") or new is None or old is None:
            return
        before, after = (
            quantities(section(obj, "spec", "resources").get("requests")).get("storage") for obj in (old, new)
        )
        if before is None or after is None or not after > before:
            return
        if section(old, "status").get("phase") != "Bound":
            raise attributes.forbidden("Only bound persistent volume claims can be expanded")
        name = section(old, "spec").get("storageClassName", "")
        found = self._api.find("storage.k8s.io", "storageclasses", "", name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
                "must support resize"
            )
            raise attributes.forbidden(why)


def _is_default(item: JsonObject) -> bool:
    annotations: JsonObject = item["metadata"].get("annotations") or {}
    return annotations.get(DEFAULT_CLASS) == "true"
