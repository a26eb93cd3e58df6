"""Reject new objects in namespaces that do not exist or are being deleted."""

from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

IMMORTAL = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_UNDELETABLE = IMMORTAL - {"kube-node-lease"}
# Controllers create access reviews while they delete the content of a namespace.
_ALLOWED_WHILE_TERMINATING = frozenset({("authorization.k8s.io", "localsubjectaccessreviews")})


class NamespaceLifecycle(AdmissionPlugin):
    """Reject new objects in absent or terminating namespaces, and the deletion of the default namespaces."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Check the namespace before any other plugin runs."""
        group, _, resource = attributes.resource
        if (group, resource) == ("", "namespaces"):
            if attributes.operation == "DELETE" and attributes.name in _UNDELETABLE:
                raise attributes.forbidden("this namespace may not be deleted")
            return
        if (
            attributes.operation != "CREATE"
            or not attributes.namespace
            or (group, resource) in _ALLOWED_WHILE_TERMINATING
        ):
            return
        namespace = self._api.find("", "namespaces", "", attributes.namespace)
        if namespace is None:
            raise StatusError.not_found("", "namespaces", attributes.namespace)
        status: JsonObject = namespace.get("status") or {}
        if status.get("phase") != "Terminating":
            return
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {attributes.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = (
            f"unable to create new content in namespace {attributes.namespace} because it is being terminated"
        )
        raise attributes.forbidden(why, [cause])
