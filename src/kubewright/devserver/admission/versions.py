"""A write in the version that a webhook or policy matches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubewright.api import GroupVersionKind
from kubewright.api.identity import GroupVersionResource
from kubewright.devserver.admission.matching import ResourceMatch
from kubewright.devserver.auth.rbac import RoleAuthorizer
from kubewright.devserver.core import Core
from kubewright.devserver.objects import JsonObject, copy, encode, meta, order_object, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.admission import AdmissionAttributes
from kubewright.devserver.request.identity import AuthorizationAttributes, UserInfo
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.wire import UnknownKind, find_kind
from kubewright.schema import cel


@dataclass(slots=True)
class VersionedAttributes:
    """A write as expressions see it, in the version that was matched."""

    attributes: AdmissionAttributes
    resource: GroupVersionResource
    kind: GroupVersionKind
    object: JsonObject | None
    old_object: JsonObject | None
    authorizer: RoleAuthorizer
    namespace: JsonObject | None = None
    params: JsonObject | None = None
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def values(self) -> dict[str, Any]:
        """Return the variables."""
        ask = _asking(self.authorizer, self.attributes.user)
        group, _, plural = self.attributes.resource
        question = cel.AuthorizationCheck(
            group=group,
            resource=plural,
            subresource=self.attributes.subresource,
            namespace=self.attributes.namespace,
            name=self.attributes.name,
        )
        return {
            "object": self.object,
            "oldObject": self.old_object,
            "request": admission_request(self.attributes, self.resource, self.kind),
            "namespaceObject": _namespace_object(self.namespace),
            "params": self.params,
            "variables": self.variables,
            "authorizer": cel.Authorizer(ask),
            "authorizer.requestResource": cel.ResourceCheck(ask, question),
        }


def _namespace_object(namespace: JsonObject | None) -> JsonObject | None:
    if namespace is None:
        return None
    metadata = {
        name: value
        for name, value in meta(namespace).items()
        if name not in ("managedFields", "ownerReferences", "selfLink")
    }
    return {
        "metadata": metadata,
        "spec": section(namespace, "spec"),
        "status": section(namespace, "status"),
    }


def admission_request(
    attributes: AdmissionAttributes, resource: GroupVersionResource, kind: GroupVersionKind
) -> JsonObject:
    """Return the AdmissionRequest of a write without its objects, as webhooks and expressions see it."""
    request: JsonObject = {"kind": kind._asdict(), "resource": resource._asdict()}
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = attributes.kind._asdict()
    request["requestResource"] = attributes.resource._asdict()
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request["operation"] = attributes.operation
    request["userInfo"] = attributes.user.to_wire()
    request["dryRun"] = attributes.dry_run
    request["options"] = attributes.options
    return request


def _asking(
    authorizer: RoleAuthorizer, user: UserInfo
) -> Callable[[cel.AuthorizationCheck], cel.AuthorizationDecision]:
    def ask(question: cel.AuthorizationCheck) -> cel.AuthorizationDecision:
        asker = user if question.service_account is None else _service_account(*question.service_account)
        attributes = AuthorizationAttributes(
            question.verb,
            group=question.group,
            version="*" if question.resource else "",
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            path=question.path,
        )
        decision = authorizer.decide(asker, attributes)
        return cel.AuthorizationDecision(decision.allowed, decision.reason)

    return ask


def _service_account(namespace: str, name: str) -> UserInfo:
    everyone = "system:serviceaccounts"
    groups = (everyone, f"{everyone}:{namespace}", "system:authenticated")
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", groups=groups)


class ConversionFailed(Exception):
    """An object cannot be converted to the version that a webhook or policy matches."""


class VersionConverter:
    """Convert writes to other versions and back; raise ConversionFailed if that fails."""

    def __init__(self, core: Core, api: Access, authorizer: RoleAuthorizer) -> None:
        self._core = core
        self._api = api
        self._authorizer = authorizer

    def resource(self, place: GroupVersionResource) -> ServedResource:
        """Find a resource that is known to be served."""
        found = self._core.registry.find(*place)
        if found is None:
            raise StatusError.internal(f"unable to convert to {place.group}/{place.version}: unknown kind")
        return found

    async def versioned(self, attributes: AdmissionAttributes, match: ResourceMatch) -> VersionedAttributes:
        """Return a write in the version that was matched."""
        new = await self._in_version(attributes.object, attributes, match)
        old = await self._in_version(attributes.old_object, attributes, match)
        return VersionedAttributes(attributes, match.resource, match.kind, new, old, self._authorizer)

    async def _in_version(
        self, obj: JsonObject | None, attributes: AdmissionAttributes, match: ResourceMatch
    ) -> JsonObject | None:
        if obj is None or match.resource == attributes.resource:
            return obj
        return await self._convert(match.resource, copy(obj))

    async def _convert(self, place: GroupVersionResource, obj: JsonObject) -> JsonObject:
        try:
            return await self.resource(place).convert(obj)
        except StatusError as error:
            raise ConversionFailed(error.message) from None

    def encoded(self, obj: JsonObject | None, match: ResourceMatch) -> msgspec.Raw:
        """Return the bytes of an object in the matched version, its fields in kube-apiserver's order."""
        if obj is None:
            return msgspec.Raw(b"null")
        resource = self.resource(match.resource)
        if match.kind == resource.gvk:
            return msgspec.Raw(resource.codec.encode(obj))
        named = {**_identity(match), **obj, **_identity(match)}
        return msgspec.Raw(encode(order_object(named) if "metadata" in obj else named))

    def namespace(self, attributes: AdmissionAttributes) -> JsonObject | None:
        """Find the namespace of a write."""
        if not attributes.namespace:
            return None
        if attributes.resource.resource == "namespaces" and attributes.object is not None:
            return attributes.object
        return self._api.find("", "namespaces", "", attributes.namespace)

    def canonical(self, obj: JsonObject, attributes: AdmissionAttributes, match: ResourceMatch) -> JsonObject:
        """Decode a changed object as one of the matched kind, and complete it.

        Raise WireDecodeError if it cannot be decoded, StatusError if it is of another kind now.
        """
        resource = self.resource(match.resource)
        self._check_kind(obj, match, custom=resource.custom)
        if attributes.subresource and match.kind != resource.gvk:
            types = self._core.types
            return types.decode(match.kind, obj)[0] if types.has(match.kind) else obj
        fresh, _ = resource.codec.decode(obj)
        resource.codec.default(fresh)
        return fresh

    def _check_kind(self, obj: JsonObject, match: ResourceMatch, *, custom: bool) -> None:
        header = find_kind(obj)
        actual = GroupVersionKind.parse(
            header.get("apiVersion") or match.kind.api_version, header.get("kind") or match.kind.kind
        )
        if custom or actual == match.kind:
            return
        if not self._core.types.has(actual):
            raise UnknownKind(actual)
        package = match.kind.group.partition(".")[0] or "core"
        raise StatusError.unknown(
            f"converting ({actual.version}.{actual.kind}) to ({package}.{match.kind.kind}): unknown conversion"
        )

    async def replace(self, attributes: AdmissionAttributes, match: ResourceMatch, fresh: JsonObject) -> None:
        """Replace the object of a write by a changed one of the matched version."""
        if match.resource != attributes.resource:
            fresh = await self._convert(attributes.resource, fresh)
        if attributes.object is None:
            attributes.object = fresh
        else:
            attributes.object.clear()
            attributes.object.update(fresh)


def _identity(match: ResourceMatch) -> JsonObject:
    return {"kind": match.kind.kind, "apiVersion": match.kind.api_version}
