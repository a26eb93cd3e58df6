"""The HTTP side of the live page: static files, the stream, reads and actions."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

import msgspec

from kubewright.api import JsonObject, KubewrightError
from kubewright.documents import MAX_DEPTH, depth_of
from kubewright.http.server import (
    JSON,
    Handler,
    HeaderFields,
    PendingResponse,
    Request,
    Response,
    ServerResponse,
    Stream,
    text,
)
from kubewright.ui.access import SECURITY_HEADERS, PageAccess
from kubewright.ui.actions import ActionRequest, PageActions, status_of
from kubewright.ui.history import KeptVersion
from kubewright.ui.state import PageState, format_time, parse_object
from kubewright.ui.stream import BATCH_SECONDS, PageDescription, PageStream
from kubewright.why.explanation import managed_field_paths

MAX_ACTION = 3 * 1024 * 1024
"""Maximum size of an action in bytes: that of the largest object that an API server accepts."""
MAX_RECONCILES = 50
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": JSON,
    "png": "image/png",
    "svg": "image/svg+xml",
}

_log = logging.getLogger("kubewright.ui")
_actions = msgspec.json.Decoder(ActionRequest)


class StaticFile(NamedTuple):
    """A file of the page."""

    content: bytes
    content_type: str


class SampleManifest(msgspec.Struct, frozen=True):
    """A manifest that the page offers to apply."""

    title: str
    manifest: str


class FieldOwner(msgspec.Struct, frozen=True, rename="camel"):
    """The manager of one field."""

    path: str
    manager: str
    operation: str
    subresource: str
    time: str


def static_files() -> Mapping[str, StaticFile]:
    """Return the files of the page, which are part of the package, by their URL path."""
    found: dict[str, StaticFile] = {}

    def add(folder: Traversable, path: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                add(entry, f"{path}{entry.name}/")
            elif content_type := _TYPES.get(entry.name.rpartition(".")[2]):
                found[f"{path}{entry.name}"] = StaticFile(entry.read_bytes(), content_type)

    add(resources.files("kubewright.ui") / "static", "/static/")
    if "/static/index.html" in found:
        found["/"] = found.pop("/static/index.html")
    return found


class PageHandler(Handler):
    """Respond to the page's requests; `access` decides which requests are allowed."""

    def __init__(
        self,
        state: PageState,
        access: PageAccess,
        describe: Callable[[], PageDescription],
        *,
        files: Mapping[str, StaticFile],
        actions: PageActions | None = None,
        samples: Callable[[], list[SampleManifest]] = list,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        self._state = state
        self._access = access
        self._describe = describe
        self._files = files
        self._actions = actions
        self._samples = samples
        self._batch_seconds = batch_seconds

    def admit(self, request: Request) -> int | Response:
        """Return the maximum size of the body, or a refusal; called before the body is read."""
        refusal = self._access.refusal(request)
        if refusal is not None:
            return refusal
        if request.method == "POST" and request.path == "/api/actions":
            return MAX_ACTION
        if request.method not in ("GET", "HEAD"):
            return Response(405, b"405 Method Not Allowed\n", "text/plain", [("Allow", "GET, HEAD")])
        return 0

    def preamble(self, headers: HeaderFields) -> str:
        """Add the security headers to every response."""
        fixed = "".join(f"{name}: {value}\r\n" for name, value in SECURITY_HEADERS)
        caching = "" if any(name == "Cache-Control" for name, _ in headers) else "Cache-Control: no-store\r\n"
        return f"{super().preamble(headers)}{fixed}{caching}"

    def handle(self, request: Request) -> PendingResponse:
        """Respond to an allowed request."""
        refusal = self._access.refusal(request)
        if refusal is not None:
            return refusal
        if self._access.gives_token(request):
            return self._access.admission()
        match request.path:
            case "/api/stream":
                stream = PageStream(self._state, self._describe, batch_seconds=self._batch_seconds)
                return Stream(stream.run, "text/event-stream")
            case "/api/snapshot":
                return self._snapshot(request)
            case "/api/object":
                return self._object(request)
            case "/api/reconcile":
                return self._reconcile(request)
            case "/api/samples":
                return self._sample_manifests()
            case "/api/actions" if request.method == "POST":
                return self._act(request)
            case "/api/actions":
                return Response(405, b"405 Method Not Allowed\n", "text/plain", [("Allow", "POST")])
            case path:
                return self._static(path)

    def _static(self, path: str) -> Response:
        file = self._files.get(path)
        if file is None:
            return text(404, "404 page not found\n")
        return Response(200, file.content, file.content_type, [("Cache-Control", "no-cache")])

    def _snapshot(self, request: Request) -> Response:
        try:
            at = self._moment(request)
        except ValueError as error:
            return _message(400, str(error))
        if at is None:
            return _message(400, "at= is missing: pass a time such as 2026-01-31T12:00:00Z")
        history = self._state.history
        if at < history.start or at > max(history.end, self._state.clock()):
            return _message(
                404,
                f"the state at {format_time(at)} is not available: the history begins at "
                f"{format_time(history.start)}",
            )
        objects = b",".join(self._state.summaries_at(at))
        return Response(200, b'{"objects":[%b],"at":"%b"}' % (objects, format_time(at).encode()), JSON)

    def _object(self, request: Request) -> Response:
        state, uid = self._state, request.one("uid")
        try:
            at = self._moment(request)
        except ValueError as error:
            return _message(400, str(error))
        version = state.history.find(uid, at)
        if version is None:
            when = "" if at is None else f" at {format_time(at)}"
            return _message(404, f"no object with uid {uid} in the history{when}")
        document = parse_object(version.content)
        reconciles = [
            msgspec.Raw(kept.encoded)
            for kept in state.reconciles_of(version, MAX_RECONCILES)
            if at is None or kept.summary.started_at.timestamp() <= at
        ]
        moment = None if at is None else format_time(at)
        return _json(
            {
                "managers": field_owners(document),
                "object": _without_managed_fields(document),
                "events": [
                    event for event in state.events_of(uid) if moment is None or event.last_seen <= moment
                ],
                "reconciles": reconciles,
                "versions": [_version(each) for each in state.history.versions(uid)],
            }
        )

    def _reconcile(self, request: Request) -> Response:
        operator, name = request.one("operator"), request.one("id")
        kept = self._state.reconciles.get(operator, name)
        if kept is None:
            return _message(
                404, f"reconcile {name} of {operator} not found: the page keeps only the latest reconciles"
            )
        return _json({"reconcile": msgspec.Raw(kept.record), "operator": operator})

    async def _sample_manifests(self) -> Response:
        return _json({"samples": await asyncio.to_thread(self._samples)})

    def _act(self, request: Request) -> Response | Coroutine[Any, Any, ServerResponse]:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return _message(415, f"Content-Type must be {JSON}")
        if self._actions is None or not self._describe().writable:
            return _message(
                403,
                "the page is read-only: start it with --allow-writes to change objects of this cluster",
            )
        try:
            action = _actions.decode(request.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return _message(400, f"the action is not valid: {error}")
        return self._perform(self._actions, action)

    async def _perform(self, actions: PageActions, action: ActionRequest) -> Response:
        try:
            return _json({"message": await actions.perform(action)})
        except KubewrightError as error:
            return _message(status_of(error), str(error))

    def _moment(self, request: Request) -> float | None:
        given = request.one("at")
        if not given:
            return None
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ValueError(f"at={given!r} is not a time such as 2026-01-31T12:00:00Z") from None
        if moment.tzinfo is None:
            raise ValueError(f"at={given!r} has no time zone: write it as 2026-01-31T12:00:00Z")
        return moment.timestamp()


def field_owners(document: JsonObject) -> list[FieldOwner]:
    """Return the manager of each field in an object's managedFields."""
    found = list[FieldOwner]()
    for entry in document.get("metadata", {}).get("managedFields") or ():
        manager, operation = str(entry.get("manager", "")), str(entry.get("operation", ""))
        subresource, time = str(entry.get("subresource") or ""), str(entry.get("time") or "")
        fields: JsonObject = entry.get("fieldsV1") or {}
        if depth_of(fields) > MAX_DEPTH:
            _log.debug("The managedFields of %s are nested too deeply", manager)
            continue
        for path in managed_field_paths(fields):
            found.append(FieldOwner(path, manager, operation, subresource, time))
    return sorted(found, key=lambda owner: owner.path)


def _without_managed_fields(document: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in document["metadata"].items() if name != "managedFields"}
    return {**document, "metadata": metadata}


def _version(version: KeptVersion) -> dict[str, str]:
    return {"resourceVersion": version.resource_version, "at": format_time(version.at)}


def _json(value: object) -> Response:
    return Response(200, msgspec.json.encode(value), JSON)


def _message(status: int, message: str) -> Response:
    return Response(status, msgspec.json.encode({"message": message}), JSON)
