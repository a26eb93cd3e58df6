"""HTTP to one API server: requests with credentials, repeated if that is safe.

Transport.send(request)     a complete response
Transport.stream(request)   a response in pieces, for watches and logs
Transport.open_websocket(request)   a WebSocket, for port-forward
All use `_repeated` (429, 503, lost connections, rejected credentials) and `_prepared` (the bytes of one attempt).
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from kubewright.api import (
    ApiError,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    TimedOut,
    Unauthorized,
)
from kubewright.client.config import ClusterConfig, RateLimit
from kubewright.client.credentials import Authenticator, Credential, CredentialSource, StaticSource
from kubewright.client.explanations import explain_failure, explain_refusal, explain_surprise
from kubewright.client.proxies import proxy_for
from kubewright.client.requests import JSON, ApiRequest
from kubewright.client.retries import RateLimiter, ThrottleMeter, leaves_outcome_open, retry_delay
from kubewright.client.server_warnings import WarningLog
from kubewright.client.tls import certificate_expiry, tls_context
from kubewright.http.client import (
    SWITCHING_PROTOCOLS,
    Body,
    ClientResponse,
    ClientWebSocket,
    Exchange,
    ExchangeFailed,
    Fence,
    Origin,
    Pool,
    ReadTimeout,
    Route,
    RoutedExchange,
    check_accepted,
    encode_headers,
    encode_request,
)
from kubewright.metrics import Counter, Registry

# Loaded only for kubeconfigs that use them.
EXEC_PLUGIN = "kubewright.client.exec_plugin"
OIDC = "kubewright.client.oidc"


class ResponseStream:
    """A streamed response; `idle` is the timeout in seconds between two pieces."""

    def __init__(self, body: Body, status: int, about: str) -> None:
        self.idle: float = 0.0
        self.status = status
        self.body = body
        self._about = about

    async def read(self) -> bytes:
        """Return what has arrived since the last call, waiting for it; b"" is the end."""
        try:
            return await self.body.read(self.idle)
        except ReadTimeout:
            raise TimedOut(f"{self._about}: the stream was silent for {self.idle:.0f} s", sent=True) from None
        except ExchangeFailed:
            raise ConnectionLost(
                f"{self._about}: the connection broke in the middle of the stream", sent=True
            ) from None


T = TypeVar("T", ClientResponse, ResponseStream, ClientWebSocket)


class Transport:
    """Send requests to one API server over persistent connections."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        user_agent: str,
        timeout: float,
        rate_limit: RateLimit | None = None,
        metrics: Registry | None = None,
    ) -> None:
        self._config = config
        self._route = route_of(config)
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._server = f"{self._route.server.scheme}://{self._route.server.authority}{self._prefix}"
        self._timeout = timeout
        self._user_agent = user_agent
        self.throttling: ThrottleMeter = ThrottleMeter()
        self._limiter = RateLimiter(rate_limit, self.throttling) if rate_limit else None
        self._metrics = metrics
        self._counters: dict[tuple[str, str], Counter] = {}
        self._warnings = WarningLog()
        self._authenticator = Authenticator(_source_of(config))
        self._exchange: Exchange | None = None
        self._preparing = asyncio.Lock()
        self._prepared_for: Credential | None = None
        self._heads: dict[tuple[str, str], bytes] = {}

    async def __aenter__(self) -> Self:
        given = self._config.exchange
        self._prepared_for = None
        self._exchange = Pool(self._route, self._config.max_connections) if given is None else given()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._exchange is not None:
            exchange, self._exchange = self._exchange, None
            await exchange.close()

    def send(self, request: ApiRequest, fence: Fence | None = None) -> Coroutine[Any, Any, ClientResponse]:
        """Send a request and return its whole response, or raise the error."""
        if request.method == "GET" or fence is None:
            return self._repeated(request, self._whole, None)
        return self._repeated(request, partial(self._whole, fence=fence), fence)

    @asynccontextmanager
    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncGenerator[ResponseStream, None]:
        """Send a request and return its response as a stream."""
        stream = await self._repeated(request, self._begin, None)
        stream.idle = idle
        try:
            yield stream
        finally:
            stream.body.release()

    async def open_websocket(self, request: ApiRequest) -> ClientWebSocket:
        """Open a WebSocket: the headers of the request are those of `handshake_headers`; the caller closes it."""
        return await self._repeated(request, self._upgrade, None)

    async def _repeated(
        self,
        request: ApiRequest,
        attempt: Callable[[ApiRequest, Exchange, bytes, float], Awaitable[T]],
        fence: Fence | None,
    ) -> T:
        """Repeat attempts until one succeeds, may not be repeated, or the request times out."""
        if self._limiter is not None:
            await self._limiter.wait_turn()
        left = timeout = request.timeout or self._timeout
        started = asyncio.get_running_loop().time()
        attempts, renewed, lost = 0, False, False
        while True:
            exchange, head, used = await self._prepared(request, fence)
            try:
                response = await attempt(request, exchange, head, left)
                if self._config.observer is not None:
                    self._config.observer(request, response.status, None)
                return response
            except Unauthorized as error:
                # The credential of this attempt: other requests may use a newer one by now.
                if renewed or not await self._authenticator.replace(used):
                    error.hint = self._credential_hint()
                    raise
                renewed = True
            except (ApiError, ConnectionLost) as error:
                if self._config.observer is not None and isinstance(error, ApiError):
                    self._config.observer(request, error.status.code, error)
                if isinstance(error, ApiError):
                    error.after_lost_response = lost
                delay = retry_delay(request, error, attempts)
                left = timeout - (asyncio.get_running_loop().time() - started)
                if delay is None or delay >= left:
                    raise
                attempts += 1
                lost = lost or (request.method != "GET" and leaves_outcome_open(error))
                left -= delay
                if isinstance(error, ApiError):
                    await self.throttling.pause(delay)
                else:
                    await asyncio.sleep(delay)

    async def _whole(
        self,
        request: ApiRequest,
        exchange: Exchange,
        head: bytes,
        timeout: float,
        fence: Fence | None = None,
    ) -> ClientResponse:
        """Make one attempt and return the whole response."""
        try:
            # A connection may take seconds to open, or the whole process may be paused in the meantime.
            response = await exchange.send(head, request.body, timeout, fence)
        except ExchangeFailed as error:
            raise self._explained(error, request) from None
        except BaseException:
            self._count("<error>", request.method)
            raise
        self._note(request, response)
        if response.status < 300:
            if request.accept.startswith(JSON):
                self._check_json(request, response)
            return response
        if response.status == 304:
            return response
        raise explain_refusal(request, response, response.body, self._server)

    async def _begin(
        self, request: ApiRequest, exchange: Exchange, head: bytes, timeout: float
    ) -> ResponseStream:
        """Make one attempt and return when the headers of the response have arrived."""
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            response, body = await exchange.stream(head, request.body, timeout)
        except ExchangeFailed as error:
            raise self._explained(error, request) from None
        except BaseException:
            self._count("<error>", request.method)
            raise
        try:
            self._note(request, response)
            if response.status >= 300:
                raise explain_refusal(request, response, await body.read_all(deadline), self._server)
            if request.accept.startswith(JSON):
                self._check_json(request, response)
        except ExchangeFailed as error:
            body.release()
            raise explain_failure(error, request, self._server, request.timeout or self._timeout) from None
        except BaseException:
            body.release()
            raise
        return ResponseStream(body, response.status, f"{request.verb} {request.object}")

    async def _upgrade(
        self, request: ApiRequest, exchange: Exchange, head: bytes, timeout: float
    ) -> ClientWebSocket:
        """Make one attempt and return when the WebSocket is open."""
        if not isinstance(exchange, Pool):
            raise ConfigError(
                f"{request.verb} {request.object}: a WebSocket needs kubewright's own HTTP client"
            )
        try:
            response, websocket = await exchange.open_websocket(head, timeout)
            self._note(request, response)
            if response.status == SWITCHING_PROTOCOLS:
                check_accepted(response, request.headers)
                return websocket
        except ExchangeFailed as error:
            raise self._explained(error, request) from None
        except BaseException:
            self._count("<error>", request.method)
            raise
        websocket.close()
        raise explain_refusal(request, response, response.body, self._server)

    async def _prepared(self, request: ApiRequest, fence: Fence | None) -> tuple[Exchange, bytes, Credential]:
        """Return the head of a request with the current credential, and that credential."""
        exchange = self._exchange
        if exchange is None:
            raise ConfigError("the client is not open: use `async with Client(config) as client`")
        credential = self._authenticator.current() or await self._authenticator.renew()
        if credential is not self._prepared_for:
            await self._prepare(exchange, credential)
        if fence is not None:
            fence()
        path = f"{self._prefix}{request.path}"
        target = self._route.target(f"{path}?{request.query}" if request.query else path)
        head = encode_request(request.method, target, self._head_of(request, credential), request.body)
        return exchange, head, credential

    async def _prepare(self, exchange: Exchange, credential: Credential) -> None:
        async with self._preparing:
            before = self._prepared_for
            if before is credential:
                return
            pair = (credential.certificate, credential.key)
            if isinstance(exchange, RoutedExchange) and (
                before is None or (before.certificate, before.key) != pair
            ):
                tls = None
                if self._route.needs_tls:
                    tls = await asyncio.to_thread(tls_context, self._config, *pair)
                # Also ends the use of connections that were opened with the old certificate.
                exchange.reroute(replace(self._route, tls=tls))
            self._heads = {}
            self._prepared_for = credential

    def _head_of(self, request: ApiRequest, credential: Credential) -> bytes:
        head = self._heads.get((request.accept, request.content_type))
        if head is None:
            fields = _fields_of(self._config, self._route, self._user_agent, request, credential)
            try:
                head = encode_headers(fields)
            except ValueError as error:
                raise ConfigError(f"{self._config.source} cannot be used: {error}") from None
            if credential is self._prepared_for:
                self._heads[request.accept, request.content_type] = head
        return head + encode_headers(request.headers) if request.headers else head

    def _explained(self, error: ExchangeFailed, request: ApiRequest) -> ConnectionFailed:
        self._count("<error>", request.method)
        return explain_failure(error, request, self._server, request.timeout or self._timeout)

    def _note(self, request: ApiRequest, response: ClientResponse) -> None:
        self._count(str(response.status), request.method)
        if "Warning" in response.headers:
            self._warnings.deliver(response.headers.all("Warning"), f"{request.verb} {request.object}")

    def _count(self, code: str, method: str) -> None:
        if self._metrics is None:
            return
        counter = self._counters.get((code, method))
        if counter is None:
            counter = self._counters[code, method] = self._metrics.counter(
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                ("code", "method", "host"),
            ).labels(code=code, method=method, host=self._route.server.authority)
        counter.inc()

    def _check_json(self, request: ApiRequest, response: ClientResponse) -> None:
        if not response.headers.get("Content-Type").startswith(JSON):
            raise explain_surprise(request, response, self._server)

    def _credential_hint(self) -> str:
        credential = self._prepared_for
        source = self._config.source
        if credential is None or not (credential.authorization or credential.certificate):
            return f"{source} holds no credentials"
        if credential.certificate and (expired := certificate_expiry(credential.certificate)):
            return f"the client certificate of {source} expired on {expired:%Y-%m-%d %H:%M} UTC"
        return f"the credentials of {source} are not accepted: they may have expired or been withdrawn"


def route_of(config: ClusterConfig) -> Route:
    """Return the way to the server of a configuration, without a TLS context; raise ConfigError if its URL is none."""
    try:
        server = Origin.of(config.server)
    except ValueError:
        # The text of the ValueError may show a part of a password.
        raise ConfigError(
            f"the server of {config.source} is not an http(s) URL without spaces and line breaks"
        ) from None
    proxy = proxy_for(config.server, config.proxy_url, os.environ)
    return Route(server, Origin.of(proxy) if proxy else None, server_name=config.tls_server_name)


def _source_of(config: ClusterConfig) -> CredentialSource:
    if config.exec is not None:
        return import_module(EXEC_PLUGIN).ExecSource(config, config.exec)
    if config.oidc is not None:
        return import_module(OIDC).oidc_source(config.oidc)
    return StaticSource(config)


def _fields_of(
    config: ClusterConfig, route: Route, user_agent: str, request: ApiRequest, credential: Credential
) -> list[tuple[str, str]]:
    fields = [*route.head(), ("User-Agent", user_agent), ("Accept", request.accept)]
    fields.append(("Accept-Encoding", "gzip" if config.compression else "identity"))
    if request.content_type:
        fields.append(("Content-Type", request.content_type))
    if authorization := credential.authorization or route.server.authorization:
        fields.append(("Authorization", authorization))
    if identity := config.impersonate:
        fields.append(("Impersonate-User", identity.user))
        if identity.uid:
            fields.append(("Impersonate-Uid", identity.uid))
        fields += [("Impersonate-Group", group) for group in identity.groups]
        for key, values in identity.extra.items():
            fields += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return fields
