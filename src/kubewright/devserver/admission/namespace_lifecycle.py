"""Objects live in namespaces that exist and are not going away."""

from kubewright.devserver.admission.refusals import forbidden
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.strategy.access import Access

IMMORTAL = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_UNDELETABLE = IMMORTAL - {"kube-node-lease"}
# Controllers ask who may do what while they clean a namespace up.
_ALWAYS_WELCOME = frozenset({("authorization.k8s.io", "localsubjectaccessreviews")})


class NamespaceLifecycle:
    """Refuse new objects in absent or terminating namespaces, and the removal of the first ones."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, operation: Operation) -> None:
        """Check the namespace before anything else looks at the object."""
        group, _, resource = operation.resource
        if (group, resource) == ("", "namespaces"):
            if operation.operation == "DELETE" and operation.name in _UNDELETABLE:
                raise forbidden(operation, "this namespace may not be deleted")
            return
        if operation.operation != "CREATE" or not operation.namespace or (group, resource) in _ALWAYS_WELCOME:
            return
        namespace = self._api.find("", "namespaces", "", operation.namespace)
        if namespace is None:
            raise StatusError.not_found("", "namespaces", operation.namespace)
        status: JsonObject = namespace.get("status") or {}
        if status.get("phase") != "Terminating":
            return
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {operation.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = (
            f"unable to create new content in namespace {operation.namespace} because it is being terminated"
        )
        raise forbidden(operation, why, [cause])

    async def validate(self, operation: Operation) -> None:
        """Nothing is left to check."""
