"""From a request to the handler that answers it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kubewright.devserver.core import Core
from kubewright.devserver.discovery import Documents
from kubewright.devserver.handlers import (
    Call,
    connect,
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
from kubewright.devserver.registry import Resource
from kubewright.devserver.request.identity import User
from kubewright.devserver.request.info import RequestInfo
from kubewright.devserver.request.responses import refuse
from kubewright.devserver.storage import JournalError
from kubewright.devserver.strategy.access import Access
from kubewright.http.server import Answer, Request, text

Handler = Callable[[Call], Answer | Coroutine[Any, Any, Answer]]

_HANDLERS: dict[str, Handler] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create_object,
    "update": update_object,
    "patch": patch_object,
    "delete": delete_object,
    "deletecollection": delete_collection,
}
_log = logging.getLogger("kubewright.devserver")
_PARTS = frozenset({"status", "scale"})


class Router:
    """Find the resource and the verb, or the document, that a path asks for."""

    def __init__(self, core: Core, api: Access, documents: Documents) -> None:
        self._core = core
        self._api = api
        self._documents = documents

    def route(
        self, request: Request, info: RequestInfo, user: User, horizon: Callable[[], int | None]
    ) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer a request of a user who may make it, and who sees nothing beyond the horizon."""
        if not info.resource:
            return self._documents.answer(request)
        resource = self._core.registry.find(info.group, info.version, info.resource)
        if resource is None:
            return self._missing(info)
        if resource.custom and info.scoped and not resource.namespaced:
            return self._missing(info)
        self._check_path(resource, info)
        if request.method == "HEAD" and not resource.custom and info.subresource != "proxy":
            # Of what the real server routes itself, only proxies and custom resources take it.
            raise StatusError.method_not_allowed()
        warnings = [resource.deprecation] if resource.deprecation else []
        call = Call(self._core, self._api, request, info, resource, user, horizon, warnings)
        if info.subresource:
            return self._part(call)
        if not info.verb or info.verb not in resource.verbs:
            raise StatusError.method_not_allowed()
        return self._run(_HANDLERS[info.verb], call)

    def _missing(self, info: RequestInfo) -> Answer:
        """Say that there is no such resource: built-in groups tell it with a Status, others do not."""
        if any(not resource.custom for resource in self._core.registry.resources(info.group, info.version)):
            raise StatusError.no_such_path()
        return text(404, "404 page not found\n")

    def _check_path(self, resource: Resource, info: RequestInfo) -> None:
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

    def _part(self, call: Call) -> Answer | Coroutine[Any, Any, Answer]:
        info, resource = call.info, call.resource
        part = resource.subresources.get(info.subresource)
        if part is None or (info.rest and info.subresource != "proxy"):
            if resource.custom:
                raise StatusError.not_found(resource.group, resource.plural, info.name)
            raise StatusError.no_such_path()
        if info.verb not in part.verbs:
            raise StatusError.method_not_allowed()
        endpoint = resource.strategy.endpoints.get(info.subresource)
        plain = info.subresource in _PARTS or info.subresource in resource.strategy.parts
        if endpoint is not None or not plain:
            return self._later(connect(call, endpoint), call)
        return self._run(_HANDLERS[info.verb], call)

    def _run(self, handler: Handler, call: Call) -> Answer | Coroutine[Any, Any, Answer]:
        try:
            answer = handler(call)
        except StatusError as error:
            return refuse(call.request, error, call.warnings)
        return self._later(answer, call) if isinstance(answer, Coroutine) else answer

    @staticmethod
    async def _later(answer: Coroutine[Any, Any, Answer], call: Call) -> Answer:
        try:
            return await answer
        except StatusError as error:
            return refuse(call.request, error, call.warnings)
        except Exception as error:
            return refuse_failure(call.request, error, call.warnings)


def refuse_failure(request: Request, error: Exception, warnings: list[str]) -> Answer:
    """Answer a request that failed for no fault of its own, and log why: a full disk once, a bug with its traceback."""
    if not isinstance(error, JournalError):
        _log.error("handling %s %s failed", request.method, request.path, exc_info=error)
    elif error.first:
        _log.error("%s", error)
    return refuse(request, StatusError.internal(str(error)), warnings)
