"""Volumes: the default StorageClass, protection of claims and volumes in use, expansion of claims."""

from kubewright.devserver.builtin.pods.resources import quantities
from kubewright.devserver.builtin.storage import default_storage_class
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.storage import Derived, ObjectStore
from kubewright.devserver.strategy.access import Access

_FINALIZERS = {
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultStorageClass(AdmissionPlugin):
    """Set the default StorageClass of new claims without one."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "persistentvolumeclaims")})

    def __init__(self, store: ObjectStore, api: Access) -> None:
        self._api = api
        self._default = Derived(store, ["storageclasses.storage.k8s.io"], self._read_default)

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set the storage class of a new claim."""
        claim = attributes.object
        if not attributes.is_write_of("", "persistentvolumeclaims", "CREATE") or claim is None:
            return
        spec: JsonObject = claim.setdefault("spec", {})
        if spec.get("storageClassName") is not None:
            return
        if default := self._default.get():
            spec["storageClassName"] = default

    def _read_default(self) -> str:
        return default_storage_class(self._api.list("storage.k8s.io", "storageclasses"))


class StorageObjectInUseProtection(AdmissionPlugin):
    """Add a finalizer to new claims, volumes and volume attributes classes; controllers remove it when they are unused."""

    resources: frozenset[tuple[str, str]] = frozenset(_FINALIZERS)

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


class PersistentVolumeClaimResize(AdmissionPlugin):
    """Allow claims to grow only if their StorageClass allows expansion."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "persistentvolumeclaims")})

    def __init__(self, api: Access) -> None:
        self._api = api

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject the growth of a claim that cannot be expanded."""
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
