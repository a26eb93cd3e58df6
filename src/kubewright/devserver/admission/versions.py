"""The objects of a write in the version that a webhook or policy asked for."""

import msgspec

from kubewright.devserver.admission.matching import Match
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import Situation
from kubewright.devserver.objects import JsonObject, copy, encode, order_object
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import Resource
from kubewright.devserver.request.admission import GroupVersionResource, Operation
from kubewright.devserver.request.identity import Authorizer
from kubewright.devserver.strategy.access import Access


class Versions:
    """Bring writes into other versions and back."""

    def __init__(self, core: Core, api: Access, authorizer: Authorizer) -> None:
        self._core = core
        self._api = api
        self._authorizer = authorizer

    def resource(self, place: GroupVersionResource) -> Resource:
        """Find a resource that is known to be served."""
        found = self._core.registry.find(*place)
        if found is None:
            raise StatusError.internal(f"unable to convert to {place.group}/{place.version}: unknown kind")
        return found

    async def situation(self, operation: Operation, match: Match) -> Situation:
        """Show a write as its match sees it."""
        new = await self._in_version(operation.object, operation, match)
        old = await self._in_version(operation.old_object, operation, match)
        return Situation(operation, match.resource, match.kind, new, old, self._authorizer)

    async def _in_version(
        self, obj: JsonObject | None, operation: Operation, match: Match
    ) -> JsonObject | None:
        if obj is None or match.resource == operation.resource:
            return obj
        return await self.resource(match.resource).convert(copy(obj))

    def encoded(self, obj: JsonObject | None, match: Match) -> msgspec.Raw:
        """Give the bytes of an object in the matched version, its fields in the real server's order."""
        if obj is None:
            return msgspec.Raw(b"null")
        resource = self.resource(match.resource)
        if match.kind == resource.gvk:
            return msgspec.Raw(resource.codec.encode(obj))
        named = {**_identity(match), **obj, **_identity(match)}
        return msgspec.Raw(encode(order_object(named) if "metadata" in obj else named))

    def namespace(self, operation: Operation) -> JsonObject | None:
        """Find the namespace of a write."""
        if not operation.namespace:
            return None
        if operation.resource.resource == "namespaces" and operation.object is not None:
            return operation.object
        return self._api.find("", "namespaces", "", operation.namespace)

    def canonical(self, obj: JsonObject, operation: Operation, match: Match) -> JsonObject:
        """Bring a changed object of the matched version into form, and complete it."""
        resource = self.resource(match.resource)
        if operation.subresource and match.kind != resource.gvk:
            types = self._core.types
            return types.decode(match.kind, obj)[0] if types.has(match.kind) else obj
        fresh, _ = resource.codec.decode(obj)
        resource.codec.default(fresh)
        return fresh

    async def replace(self, operation: Operation, match: Match, fresh: JsonObject) -> None:
        """Put a changed object of the matched version in the place of the write's own."""
        if match.resource != operation.resource:
            fresh = await self.resource(operation.resource).convert(fresh)
        if operation.object is None:
            operation.object = fresh
        else:
            operation.object.clear()
            operation.object.update(fresh)


def _identity(match: Match) -> JsonObject:
    return {"kind": match.kind.kind, "apiVersion": match.kind.api_version}
