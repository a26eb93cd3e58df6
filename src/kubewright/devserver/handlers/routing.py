"""Routing: from the path of a request to the handler of its verb."""

import asyncio
from collections.abc import Callable

from kubewright.devserver.core import Core
from kubewright.devserver.discovery import Documents
from kubewright.devserver.handlers.connect import connect
from kubewright.devserver.handlers.resource_request import ResourceRequest
from kubewright.devserver.handlers.verbs import (
    create_object,
    delete_collection,
    delete_object,
    get,
    list_objects,
    patch_object,
    update_object,
    watch,
)
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.info import RequestInfo
from kubewright.http.server import PendingResponse, ServerResponse, text

VerbHandler = Callable[[ResourceRequest], PendingResponse]

_HANDLERS: dict[str, VerbHandler] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create_object,
    "update": update_object,
    "patch": patch_object,
    "delete": delete_object,
    "deletecollection": delete_collection,
}
_STORED_SUBRESOURCES = frozenset({"status", "scale"})


class ResourceRouter:
    """Find the resource and the verb, or the document, of a path."""

    def __init__(self, core: Core, documents: Documents) -> None:
        self._core = core
        self._documents = documents

    def route(self, context: RequestContext) -> PendingResponse:
        """Respond to an authorized request."""
        request, info = context.request, context.info
        if not info.resource:
            return self._documents.respond(request)
        resource = self._core.registry.find(info.group, info.version, info.resource)
        if resource is None:
            return self._missing(info)
        if resource.custom and info.scoped and not resource.namespaced:
            return self._missing(info)
        self._check_path(resource, info)
        if request.method == "HEAD" and not resource.custom and info.subresource != "proxy":
            # kube-apiserver routes HEAD for proxies and custom resources only.
            raise StatusError.method_not_allowed()
        if resource.deprecation and resource.custom:
            # Also for a subresource that the kind does not have.
            context.warnings.append(resource.deprecation)
        handler = self._handler(resource, info)
        if resource.deprecation and not resource.custom:
            context.warnings.append(resource.deprecation)
        return handler(ResourceRequest(self._core, context, resource))

    def _missing(self, info: RequestInfo) -> ServerResponse:
        """Respond with 404 to an unknown resource: built-in groups with a Status, others with text."""
        if any(not resource.custom for resource in self._core.registry.resources(info.group, info.version)):
            raise StatusError.no_such_path()
        return text(404, "404 page not found\n")

    def _check_path(self, resource: ServedResource, info: RequestInfo) -> None:
        if info.scoped and not resource.namespaced:
            raise StatusError.no_such_path()
        if resource.namespaced and not info.scoped and info.name:
            raise StatusError.no_such_path()
        misplaced = resource.namespaced and not info.scoped and info.verb in ("create", "deletecollection")
        if misplaced or (info.verb == "create" and info.name and not info.subresource):
            raise StatusError.method_not_allowed()
        if info.verb in ("update", "patch") and not info.name:
            raise StatusError.method_not_allowed()
        if resource.ready_at > asyncio.get_running_loop().time():
            raise StatusError.too_many_requests("storage is (re)initializing")
        if info.verb in ("list", "watch", "deletecollection") and (
            failure := resource.initialization_failure
        ):
            raise StatusError.too_many_requests(f"storage is (re)initializing: {failure}")

    @staticmethod
    def _handler(resource: ServedResource, info: RequestInfo) -> VerbHandler:
        """Return the handler of a verb on a resource or on one of its subresources."""
        if not info.subresource:
            if not info.verb or info.verb not in resource.verbs:
                raise StatusError.method_not_allowed()
            return _HANDLERS[info.verb]
        subresource = resource.subresources.get(info.subresource)
        if subresource is None or (info.rest and info.subresource != "proxy"):
            if resource.custom:
                raise StatusError.not_found(resource.group, resource.plural, info.name)
            raise StatusError.no_such_path()
        if info.verb not in subresource.verbs:
            raise StatusError.method_not_allowed()
        endpoint = resource.strategy.endpoints.get(info.subresource)
        stored = info.subresource in _STORED_SUBRESOURCES or info.subresource in resource.strategy.parts
        if endpoint is None and stored:
            return _HANDLERS[info.verb]
        return lambda target: connect(target, endpoint)
