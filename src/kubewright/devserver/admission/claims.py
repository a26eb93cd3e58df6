"""Claims that want to grow may do so only where it works."""

from kubewright.devserver.admission.refusals import forbidden
from kubewright.devserver.builtin.pods.resources import quantities
from kubewright.devserver.objects import section
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.strategy.access import Access


def is_written(operation: Operation, group: str, plural: str, *verbs: str) -> bool:
    """Tell whether a write is one of an object of a kind, not of a part of it."""
    found, _, resource = operation.resource
    return (found, resource, operation.subresource) == (group, plural, "") and operation.operation in verbs


class ClaimGrowth:
    """Let claims grow only where their class can do it."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, operation: Operation) -> None:
        """Change nothing."""

    async def validate(self, operation: Operation) -> None:
        """Refuse growth that would never happen."""
        new, old = operation.object, operation.old_object
        if not is_written(operation, "", "persistentvolumeclaims", "UPDATE") or new is None or old is None:
            return
        before, after = (
            quantities(section(obj, "spec", "resources").get("requests")).get("storage") for obj in (old, new)
        )
        if before is None or after is None or not after > before:
            return
        if section(old, "status").get("phase") != "Bound":
            raise forbidden(operation, "Only bound persistent volume claims can be expanded")
        name = section(old, "spec").get("storageClassName", "")
        found = self._api.find("storage.k8s.io", "storageclasses", "", name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
                "must support resize"
            )
            raise forbidden(operation, why)
