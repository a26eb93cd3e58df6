"""A proxy in front of any API server that delays, refuses, loses and counts requests.

    async with FaultProxy(config) as proxy:
        endpoint = await proxy.open_endpoint("first")
        async with Client(endpoint.config) as client: ...

Each client has an endpoint of its own, with a port of its own: so requests are distinguished and counted without anything
in them that a real API server would see. A request is forwarded with the credentials of its client; the proxy adds none,
so its ports give no access to the cluster. It speaks plain HTTP on the loopback interface to its clients, and TLS to
the API server as the configuration says.

Faults are those of the embedded server (`RequestFaults`), injected between a client and the API server. If a request is
lost `after` it was carried out, the proxy receives the response and does not pass it on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from msgspec import structs

from kubewright.api import ConfigError
from kubewright.client import ClusterConfig
from kubewright.client.tls import tls_context
from kubewright.client.transport import route_of
from kubewright.devserver import Match, RequestContext, RequestFaults, StatusError, UserInfo
from kubewright.devserver.faults import Matcher, Moment, without_bookmarks
from kubewright.devserver.request.info import request_info
from kubewright.devserver.request.responses import refuse
from kubewright.http.client import Body, ClientResponse, ExchangeFailed, Pool, encode_headers, encode_request
from kubewright.http.server import (
    JSON,
    BodyWriter,
    Handler,
    HangUp,
    HttpServer,
    PendingResponse,
    Request,
    Response,
    ServerResponse,
    Stream,
)

HOST = "127.0.0.1"
WATCH_AWAY = 13.0
"""Seconds in which an operator reopens a watch after any failure; a watch that is closed for longer was given up."""
_REQUEST_SECONDS = 120.0
"""Longer than any client waits before it closes its connection."""
_SILENCE_SECONDS = 3600.0
"""Longer than an API server keeps a watch open."""
_LARGEST_BODY = 16 * 1024 * 1024
_SHOWN_REQUESTS = 20
_READS = frozenset({"get", "list", "watch"})
_REPORTS = frozenset({"events", "leases"})
"""Resources that an idle operator writes, too."""
_NOT_FORWARDED = frozenset(
    {
        # Headers of one connection, and headers that the client or server of the proxy sets itself.
        *("connection", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"),
        *("host", "expect", "content-length", "accept-encoding"),
    }
)
_NOT_RETURNED = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "date"}
    | {"content-type", "trailer"}
)


@dataclass(eq=False, slots=True)
class ProxiedRequest(RequestContext):
    """A request that passes through the proxy."""

    endpoint: str = ""
    """The name of the endpoint that received it."""
    number: int = 0
    """Its number among the requests of that endpoint, from 1."""
    streamed: tuple[Stream, Body] | None = None
    """The response of the API server, and its body if it is streamed."""


@dataclass(eq=False, slots=True)
class _WatchedPath:
    """The watches of one path."""

    open: int = 0
    closed_at: float = 0.0


class ProxyEndpoint(Handler):
    """The address of one client, the number of its requests, and the faults of its connection."""

    def __init__(self, name: str, user: str, forward: "Forward", faults: RequestFaults) -> None:
        self.name = name
        self.config: ClusterConfig
        """How the client connects."""
        self.requests: int = 0
        self.drops_bookmarks: bool = False
        self.holds_events: bool = False
        self.crash_at: dict[int, Moment] = {}
        self.on_crash: Callable[[], None] = lambda: None
        """Ends the process of the client."""
        self.closed: bool = False
        """Whether connections are closed instead of served: the client is gone, and what it has sent last is lost."""
        self.last_write: float = 0.0
        """When it wrote something other than Events and Leases, by the event loop's clock."""
        self.last_requests: deque[str] = deque(maxlen=_SHOWN_REQUESTS)
        self._user = UserInfo(user)
        self._forward = forward
        self._faults = faults
        self._watched: dict[str, _WatchedPath] = {}
        self._released = asyncio.Event()

    def match(self, **which: Any) -> Matcher:
        """Return a function that matches requests of this client with the fields of `Match`."""
        narrowed = Match(**which)

        def matches(context: RequestContext) -> bool:
            return isinstance(context, ProxiedRequest) and context.endpoint == self.name and narrowed(context)

        return matches

    def match_number(self, request: int) -> Matcher:
        """Return a function that matches the n-th request of this client from now."""
        number = self.requests + request

        def matches(context: RequestContext) -> bool:
            return (
                isinstance(context, ProxiedRequest)
                and context.endpoint == self.name
                and context.number == number
            )

        return matches

    def release_events(self) -> None:
        """Send the events that were held back, in order, and hold back no more."""
        self.holds_events = False
        self._released.set()
        self._released = asyncio.Event()

    def reopen(self) -> None:
        """Serve a new process of the client."""
        self.closed = False
        self._watched.clear()

    def missing_watches(self) -> list[str]:
        """Return the paths that were watched a moment ago and are not watched now."""
        since = asyncio.get_running_loop().time() - WATCH_AWAY
        return [path for path, found in self._watched.items() if not found.open and found.closed_at > since]

    def admit(self, request: Request) -> int | Response:
        """Accept requests of any size that an API server accepts."""
        return _LARGEST_BODY

    def handle(self, request: Request) -> PendingResponse:
        """Forward a request, with the faults that apply to it."""
        if self.closed:
            raise HangUp("the client of this endpoint was ended")
        self.requests += 1
        context = ProxiedRequest(
            request, request_info(request), self._user, endpoint=self.name, number=self.requests
        )
        info = context.info
        self.last_requests.append(f"{self.name} {self.requests} {info.verb} {info.path}")
        if info.verb not in _READS and info.resource not in _REPORTS:
            self.last_write = asyncio.get_running_loop().time()
        crash = self.crash_at.pop(self.requests, None)
        if crash == "before":
            self.on_crash()
            raise HangUp("a test injected this fault")
        return self._respond(context, crash)

    async def _respond(self, context: ProxiedRequest, crash: Moment | None) -> ServerResponse:
        response: ServerResponse | None = None
        try:
            found = self._faults.around(context, lambda: self._forwarded(context))
            response = await found if isinstance(found, Coroutine) else found
            if crash is None:
                return response
            raise HangUp("a test injected this fault")
        except HangUp:
            response = None
            if crash is not None:
                self.on_crash()
            raise
        finally:
            # If a fault has replaced or dropped the response, nothing reads the API server's stream.
            if context.streamed is not None and context.streamed[0] is not response:
                context.streamed[1].release()

    async def _forwarded(self, context: ProxiedRequest) -> ServerResponse:
        request = context.request
        if request.upgrade:
            error = StatusError(501, "", "the fault proxy does not forward exec, attach and port-forward")
            return refuse(request, error, [])
        watches = context.info.verb == "watch"
        try:
            found, body = await self._forward(request, watches or request.flag("follow"))
        except ExchangeFailed as error:
            raise HangUp(f"the API server did not respond: {error}") from None
        media = found.headers.get("Content-Type")
        headers = [
            (name, value)
            for name in found.headers
            if name.lower() not in _NOT_RETURNED
            for value in found.headers.all(name)
        ]
        if body is None:
            return Response(found.status, found.body, media, headers)
        send = self._send_events if watches and media.startswith(JSON) else self._send
        watched = self._watched.setdefault(context.info.path, _WatchedPath()) if watches else _WatchedPath()
        stream = Stream(partial(send, watched, body), media, found.status, headers)
        context.streamed = stream, body
        return stream

    async def _send(self, watched: _WatchedPath, body: Body, writer: BodyWriter) -> None:
        """Send a stream to the client as it arrives."""
        with self._sending(watched, body):
            while data := await body.read(_SILENCE_SECONDS):
                await writer.write(data)

    async def _send_events(self, watched: _WatchedPath, body: Body, writer: BodyWriter) -> None:
        """Send the events of a watch to the client, each as a whole."""
        rest = b""
        with self._sending(watched, body):
            while data := await body.read(_SILENCE_SECONDS):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                while self.holds_events:
                    await self._released.wait()
                lines = whole + newline
                await writer.write(without_bookmarks(lines) if self.drops_bookmarks else lines)

    @staticmethod
    @contextmanager
    def _sending(watched: _WatchedPath, body: Body) -> Generator[None]:
        watched.open += 1
        try:
            yield
        except ExchangeFailed as error:
            raise HangUp(f"the API server broke the stream: {error}") from None
        finally:
            body.release()
            watched.open -= 1
            watched.closed_at = asyncio.get_running_loop().time()


Forward = Callable[[Request, bool], Coroutine[Any, Any, tuple[ClientResponse, Body | None]]]
"""Sends a request to the API server and returns its response, with a body to read if it is streamed."""


@dataclass(eq=False)
class FaultProxy:
    """Forward requests to the API server of a configuration while an `async with` is open.

    The configuration has a token, or other credentials that are sent with each request: a client certificate belongs to a
    connection and does not pass a proxy.
    """

    config: ClusterConfig
    faults: RequestFaults = field(default_factory=RequestFaults)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __post_init__(self) -> None:
        if self.config.client_cert_data or self.config.client_cert_file:
            raise ConfigError(
                f"{self.config.source} has a client certificate, which does not pass the fault proxy: use a token"
            )

    async def __aenter__(self) -> Self:
        route = route_of(self.config)
        if route.needs_tls:
            tls = await asyncio.to_thread(tls_context, self.config, b"", b"")
            route = structs.replace(route, tls=tls)
        self._route = route
        self._prefix = urlsplit(self.config.server).path.rstrip("/")
        self._pool = Pool(route)
        self._stack.push_async_callback(self._pool.close)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def open_endpoint(self, name: str, *, user: str = "") -> ProxyEndpoint:
        """Open an address for one client; `user` is what the field of that name in `Match` is compared with."""
        endpoint = ProxyEndpoint(name, user, self._forward, self.faults)
        server = await self._stack.enter_async_context(HttpServer(endpoint, HOST, 0, grace=0.0))
        endpoint.config = replace(
            self.config,
            server=f"http://{HOST}:{server.port}",
            ca_data=b"",
            insecure=False,
            tls_server_name="",
            proxy_url="",
            source=f"the endpoint {name!r} of the fault proxy",
        )
        return endpoint

    async def _forward(self, request: Request, streamed: bool) -> tuple[ClientResponse, Body | None]:
        head = self._head(request)
        if not streamed:
            return await self._pool.send(head, request.body, _REQUEST_SECONDS), None
        response, body = await self._pool.stream(head, request.body, _REQUEST_SECONDS)
        if response.status < 300:
            return response, body
        try:
            deadline = asyncio.get_running_loop().time() + _REQUEST_SECONDS
            return response._replace(body=await body.read_all(deadline)), None
        finally:
            body.release()

    def _head(self, request: Request) -> bytes:
        path = self._prefix + quote(request.path, safe="/:@!$&'()*+,;=~")
        query = urlencode(request.query, doseq=True, quote_via=quote)
        fields = [*self._route.head(), ("Accept-Encoding", "identity")]
        fields += [(name, value) for name, value in request.fields if name not in _NOT_FORWARDED]
        target = self._route.target(f"{path}?{query}" if query else path)
        # The response to HEAD has no body, which the client does not know: the server of the proxy sends none.
        method = "GET" if request.method == "HEAD" else request.method
        return encode_request(method, target, encode_headers(fields), request.body)
