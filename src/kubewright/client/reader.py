"""Send requests; get, list and watch. All other verbs use `send` and `raw`."""

import copy
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import cache, partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, Unpack, cast, overload

import msgspec

from kubewright.api import (
    ConnectionLost,
    DecodeError,
    Expired,
    GroupVersionKind,
    JsonObject,
    Kind,
    NotFound,
    Object,
    RawList,
    RawObject,
    UnexpectedResponse,
    WatchEvent,
    decode,
    decode_events,
    error_from_status,
    kind_of,
    parse,
    raw_object,
    split_list,
)
from kubewright.client import requests
from kubewright.client.config import ClusterConfig, RateLimit
from kubewright.client.discovery import ApiResource, DiscoveryClient, ServerVersion
from kubewright.client.lines import LineSplitter
from kubewright.client.requests import ApiRequest, ListOptions
from kubewright.client.retries import ThrottleStatistics
from kubewright.client.transport import Transport
from kubewright.http.client import ClientResponse
from kubewright.metrics import Registry

T = TypeVar("T", bound=Object)
Item = TypeVar("Item")

PAGE = 500
WATCH_SECONDS = 300.0
"""The timeout of a watch is between one and two times this long, so that many do not end together."""
WATCH_MARGIN = 15.0
"""How long after its announced end a watch counts as stalled."""
BOOKMARK_TIMEOUT = 180.0
"""A server that sends bookmarks does so each minute: three missed ones are a stall."""


class ObjectList(list[Item], Generic[Item]):
    """A list of objects and its resourceVersion."""

    def __init__(self, items: "list[Item]", resource_version: str) -> None:
        super().__init__(items)
        self.resource_version = resource_version


class RequestObserver(Protocol):
    """A context manager around one request, whose response it is given."""

    def __enter__(self) -> Self: ...

    def responded(self, response: ClientResponse) -> None:
        """Note the response."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...


class ClientReader:
    """Read from one cluster; for kinds without a class, pass a `Kind` and get JSON objects."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str = "kubewright/0.1",
        field_manager: str = "",
        timeout: float = 30.0,
        rate_limit: RateLimit | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self.config = config
        self.field_manager = field_manager
        self._transport = Transport(
            config, user_agent=user_agent, timeout=timeout, rate_limit=rate_limit, metrics=metrics
        )
        self._discovery = DiscoveryClient(self._transport.send)
        self._fence: Callable[[], None] | None = None
        self._observe: Callable[[ApiRequest], RequestObserver | None] | None = None

    def fenced(self, fence: Callable[[], None]) -> Self:
        """Return this client, on the same connections, with a fence around its writes.

        `fence` is called right before each request except reads is sent, also before each retry; if it raises, the
        request is not sent. The returned client can be used while this one is open.
        """
        view = copy.copy(self)
        view._fence = fence
        return view

    def observed(self, observe: Callable[[ApiRequest], RequestObserver | None]) -> Self:
        """Return this client, on the same connections, with an observer around each request except watches.

        `observe` returns None for a request that need not be observed.
        """
        view = copy.copy(self)
        view._observe = observe
        return view

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._transport.__aexit__(*failure)

    @property
    def throttling(self) -> ThrottleStatistics:
        """Return how long requests waited for the rate limit, or because the server asked to send them later."""
        return self._transport.throttling.statistics()

    async def raw(self, request: ApiRequest) -> ClientResponse:
        """Send any request and return the response unchanged."""
        observer = None if self._observe is None else self._observe(request)
        if observer is None:
            return await self._transport.send(request, self._fence)
        with observer:
            response = await self._transport.send(request, self._fence)
            observer.responded(response)
            return response

    async def send(self, request: ApiRequest) -> RawObject:
        """Send a request whose response is an object, and return its bytes with decoded metadata."""
        return (await self.send_with_code(request))[0]

    async def send_with_code(self, request: ApiRequest) -> tuple[RawObject, int]:
        """Send like `send`, and return the HTTP status code as well: 201 if an apply created the object."""
        response = await self.raw(request)
        try:
            return raw_object(response.body), response.status
        except DecodeError:
            _check_is_kubernetes(request, response.body)
            raise

    @overload
    async def get(self, kind: type[T], name: str, namespace: str = "") -> T: ...
    @overload
    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject: ...
    async def get(self, kind: type[T] | Kind, name: str, namespace: str = "") -> T | JsonObject:
        """Return one object; raise NotFound if it does not exist."""
        return await self._read(kind, requests.get(kind_of(kind), name, namespace))

    @overload
    async def find(self, kind: type[T], name: str, namespace: str = "") -> T | None: ...
    @overload
    async def find(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None: ...
    async def find(self, kind: type[T] | Kind, name: str, namespace: str = "") -> T | JsonObject | None:
        """Return one object, or None if it does not exist; a kind that is not served raises NotFound."""
        try:
            return await self._read(kind, requests.get(kind_of(kind), name, namespace))
        except NotFound as missing:
            if missing.kind_missing:
                raise
            return None

    @overload
    async def list(
        self, kind: type[T], *, limit: int = PAGE, **selection: Unpack[ListOptions]
    ) -> ObjectList[T]: ...
    @overload
    async def list(
        self, kind: Kind, *, limit: int = PAGE, **selection: Unpack[ListOptions]
    ) -> ObjectList[JsonObject]: ...
    async def list(
        self, kind: type[T] | Kind, *, limit: int = PAGE, **selection: Unpack[ListOptions]
    ) -> ObjectList[T] | ObjectList[JsonObject]:
        """Read a whole collection in pages of `limit`; no namespace means all of them."""
        page_request = partial(requests.list_page, kind_of(kind), **selection)
        items: Any = []
        token = ""
        while True:
            request = page_request(limit=limit, continue_token=token)
            try:
                body = (await self.raw(request)).body
            except Expired:
                if not token:
                    raise
                # The continue token has expired: one request without a limit cannot expire.
                items, token, limit = [], "", 0
                continue
            try:
                page, meta = _typed_page(kind, body)
            except DecodeError:
                _check_is_kubernetes(request, body)
                raise
            items.extend(page)
            token = meta.continue_
            if not token:
                return ObjectList(items, meta.resource_version)

    async def list_raw(
        self,
        kind: type[Object] | Kind,
        *,
        limit: int = PAGE,
        metadata_only: bool = False,
        **selection: Unpack[ListOptions],
    ) -> AsyncGenerator[RawList, None]:
        """Yield the pages of a collection as bytes with metadata, with only one of them in memory.

        Raise Expired if the server no longer has the version of the first page.
        """
        token = ""
        while True:
            request = requests.list_page(
                kind_of(kind), limit=limit, continue_token=token, metadata_only=metadata_only, **selection
            )
            body = (await self._transport.send(request)).body
            try:
                page = split_list(body)
            except DecodeError:
                _check_is_kubernetes(request, body)
                raise
            yield page
            token = page.continue_
            if not token:
                return

    async def watch(
        self,
        kind: type[Object] | Kind,
        *,
        initial_events: bool = False,
        metadata_only: bool = False,
        timeout: float | None = None,
        **selection: Unpack[ListOptions],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield events until the server ends the watch; raise Expired if the version is too old to resume from.

        With `initial_events` the server sends the current state first, ended by a bookmark with the annotation
        `k8s.io/initial-events-end`. A stream that breaks or stalls raises ConnectionFailed.
        """
        arrivals = self.watch_raw(
            kind,
            initial_events=initial_events,
            metadata_only=metadata_only,
            timeout=timeout,
            **selection,
        )
        async with aclosing(arrivals):
            async for events in arrivals:
                for event in events:
                    yield WatchEvent(event.type, event.object.owned())

    async def watch_raw(
        self,
        kind: type[Object] | Kind,
        *,
        initial_events: bool = False,
        metadata_only: bool = False,
        timeout: float | None = None,
        **selection: Unpack[ListOptions],
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """Yield the events of a watch, as many at once as have arrived; they share one buffer.

        The first item is an empty sequence, as soon as the server has accepted the watch.
        """
        seconds = timeout if timeout is not None else WATCH_SECONDS * (1 + random.random())
        request = requests.watch(
            kind_of(kind),
            initial_events=initial_events,
            timeout_seconds=max(1, round(seconds)),
            metadata_only=metadata_only,
            **selection,
        )
        async with self._transport.stream(request, idle=seconds + WATCH_MARGIN) as stream:
            yield ()
            splitter = LineSplitter()
            while chunk := await stream.read():
                lines = splitter.feed(chunk)
                if not lines:
                    continue
                events, failure = _events(request, lines)
                if stream.idle > BOOKMARK_TIMEOUT and any(event.type == "BOOKMARK" for event in events):
                    stream.idle = BOOKMARK_TIMEOUT
                if events:
                    yield events
                if failure is not None:
                    raise failure
            if splitter.pending:
                raise ConnectionLost(
                    f"watch {request.object}: the stream ended in the middle of an event", sent=True
                )

    async def resolve(self, gvk: GroupVersionKind) -> Kind:
        """Discover the resource of a kind: its plural and scope; the result is cached."""
        return await self._discovery.resolve(gvk)

    async def api_resources(self) -> "list[ApiResource]":
        """Return all resources of the server; revalidated by each call, cached while unchanged."""
        return await self._discovery.api_resources()

    async def server_version(self) -> ServerVersion:
        """Return the version of the server."""
        return await self._discovery.server_version()

    async def _read(self, kind: type[Object] | Kind, request: ApiRequest) -> Any:
        """Send a request whose response is an object of the kind, and decode it."""
        body = (await self.raw(request)).body
        try:
            return _named(body) if isinstance(kind, Kind) else _typed(kind, body)
        except DecodeError:
            _check_is_kubernetes(request, body)
            raise


class _PageMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _WirePage(msgspec.Struct):
    metadata: _PageMeta
    items: list[JsonObject] | None = None


@cache
def _page_of(kind: type[Object]) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = [
        ("metadata", _PageMeta, msgspec.NODEFAULT),
        ("items", list[kind], msgspec.field(default_factory=list)),
    ]
    return msgspec.defstruct(f"{kind.__name__}Page", fields)


def _typed_page(kind: type[Object] | Kind, body: bytes) -> tuple[list[Any], _PageMeta]:
    if isinstance(kind, Kind):
        page = decode(_WirePage, body)
        # Items in lists of built-in kinds omit apiVersion and kind.
        named = {"apiVersion": kind.api_version, "kind": kind.kind}
        return [item if "kind" in item else {**named, **item} for item in page.items or ()], page.metadata
    typed = cast(Any, decode(_page_of(kind), body))
    return typed.items, typed.metadata


def _typed(kind: type[Object], body: bytes) -> Object:
    obj = decode(kind, body)
    # A class with defaults for all fields would accept any JSON object; reviews have no name.
    if not obj.metadata.name and b'"metadata"' not in body:
        raise DecodeError(f"{kind.__name__}: metadata: is required", path="metadata")
    return obj


def _named(body: bytes) -> JsonObject:
    document = parse(body)
    if not isinstance(document, dict) or "metadata" not in document:
        raise DecodeError("object: metadata: is required", path="metadata")
    return cast(JsonObject, document)


def _events(request: ApiRequest, lines: bytes) -> tuple[Sequence[WatchEvent], Exception | None]:
    """Decode lines; an error that ends the stream is returned together with the events before it."""
    try:
        events = decode_events(lines)
    except DecodeError:
        return _events_before(request, lines)
    for number, event in enumerate(events):
        if event.status is not None:
            return events[:number], error_from_status(event.status, verb="watch", object=request.object)
    return events, None


def _events_before(request: ApiRequest, lines: bytes) -> tuple[Sequence[WatchEvent], Exception]:
    events: list[WatchEvent] = []
    failure = UnexpectedResponse(f"watch {request.object}: a line of the stream is no event")
    for line in lines.splitlines():
        try:
            events += decode_events(line)
        except DecodeError as error:
            failure.__cause__ = error
            break
    return events, failure


def _check_is_kubernetes(request: ApiRequest, body: bytes) -> None:
    """Distinguish a response that is not an object from an object that does not match its class."""
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UnexpectedResponse(
            f"{request.verb} {request.object}: the response is not a whole JSON object"
        ) from None
    if "kind" not in document and "metadata" not in document:
        raise UnexpectedResponse(
            f"{request.verb} {request.object}: the response is no Kubernetes object"
        ) from None
