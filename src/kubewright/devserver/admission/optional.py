"""Plugins that kube-apiserver has but does not run by default."""

from collections.abc import Iterator

from kubewright.devserver.admission.security_checks import containers
from kubewright.devserver.auth import RoleAuthorizer
from kubewright.devserver.objects import JsonObject, items, meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ResourceRegistry
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.request.identity import AuthorizationAttributes
from kubewright.devserver.strategy.access import Access


class AlwaysPullImages(AdmissionPlugin):
    """Pull the images of new Pods each time, so that a Pod cannot use an image without the permission to pull it."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods")})

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set the pull policy of a Pod's containers and image volumes."""
        pod = attributes.object
        if pod is None or not attributes.is_write_of("", "pods", "CREATE", "UPDATE"):
            return
        if attributes.old_object is not None and _images(pod) <= _images(attributes.old_object):
            return
        for container in containers(pod):
            container["imagePullPolicy"] = "Always"
        for volume in items(section(pod, "spec"), "volumes"):
            if volume.get("image") is not None:
                volume["image"]["pullPolicy"] = "Always"


def _images(pod: JsonObject) -> set[str]:
    return {container.get("image", "") for container in containers(pod)}


class NamespaceAutoProvision(AdmissionPlugin):
    """Create the namespace of a new object if it does not exist."""

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Create the namespace."""
        name = attributes.namespace
        if attributes.operation != "CREATE" or attributes.dry_run or not name:
            return
        if attributes.kind.kind == "Namespace" or self._api.find("", "namespaces", "", name) is not None:
            return
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await self._api.create("", "namespaces", namespace)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise attributes.forbidden(error.message) from None


class DenyServiceExternalIPs(AdmissionPlugin):
    """Refuse new external IPs of Services."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "services")})

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Refuse addresses that the Service did not have before."""
        if attributes.object is None or not attributes.is_write_of("", "services", "CREATE", "UPDATE"):
            return
        new, old = (section(obj or {}, "spec") for obj in (attributes.object, attributes.old_object))
        if not set(new.get("externalIPs") or ()) <= set(old.get("externalIPs") or ()):
            raise attributes.forbidden("Use of external IPs is denied by admission control")


class OwnerReferencesPermissionEnforcement(AdmissionPlugin):
    """Change owner references only with the permission to delete the object, and block owners only with that to finalize them."""

    def __init__(self, registry: ResourceRegistry, authorizer: RoleAuthorizer) -> None:
        self._registry = registry
        self._authorizer = authorizer

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Refuse a change of owner references by a user without the permissions."""
        new, old = attributes.object, attributes.old_object
        group, version, resource = attributes.resource
        if new is None or attributes.operation not in ("CREATE", "UPDATE"):
            return
        if (group, resource, attributes.subresource) == ("", "pods", "status"):
            return
        owners, before = items(meta(new), "ownerReferences"), items(meta(old or {}), "ownerReferences")
        if owners == before:
            return
        if attributes.operation != "CREATE":
            where = (attributes.subresource, attributes.namespace, attributes.name)
            self._require(
                attributes,
                AuthorizationAttributes("delete", group, version, resource, *where),
                "cannot set an ownerRef on a resource you can't delete",
            )
        blocked = {owner.get("uid") for owner in before if owner.get("blockOwnerDeletion")}
        blocking = [
            owner for owner in owners if owner.get("blockOwnerDeletion") and owner.get("uid") not in blocked
        ]
        anything = AuthorizationAttributes("update", "*", "*", "*", "finalizers", name="*")
        if not blocking or self._authorizer.may(attributes.user, anything):
            return
        for owner in blocking:
            for needed in self._finalizers_of(attributes, owner):
                text = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
                self._require(attributes, needed, text)

    def _require(self, attributes: AdmissionAttributes, needed: AuthorizationAttributes, text: str) -> None:
        decision = self._authorizer.authorize(attributes.user, needed)
        if not decision.allowed:
            raise attributes.forbidden(f"{text}: {decision.reason}, <nil>")

    def _finalizers_of(
        self, attributes: AdmissionAttributes, owner: JsonObject
    ) -> Iterator[AuthorizationAttributes]:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        group, _, version = api_version.rpartition("/")
        found = [
            item
            for item in self._registry
            if (item.group, item.version, item.kind) == (group, version, kind) and "create" in item.verbs
        ]
        if not found:
            why = f'no matches for kind "{kind}" in version "{api_version}"'
            text = f"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}"
            raise attributes.forbidden(f"{text}: {why}")
        for item in found:
            namespace = attributes.namespace if item.namespaced else ""
            yield AuthorizationAttributes(
                "update", group, version, item.plural, "finalizers", namespace, owner.get("name", "")
            )
