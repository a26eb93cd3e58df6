"""HTTP to one API server: the only place in the client that knows the HTTP library.

Transport.send(request)     one answer, whole
Transport.stream(request)   an answer that comes in pieces, for watches and logs
Both go through `_repeated` (429, 503, lost connections, refused credentials) and `_open` (one attempt).
"""

import asyncio
import io
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, Self, TypeVar
from urllib.parse import quote

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from kubewright.api import (
    ApiError,
    ConfigError,
    ConnectionFailed,
    ConnectionLost,
    DecodeError,
    Status,
    TimedOut,
    Unauthorized,
    UnexpectedAnswer,
    decode,
    error_from_status,
)
from kubewright.client.config import ClusterConfig, OidcProvider, RateLimit
from kubewright.client.credentials import (
    Authenticator,
    Credential,
    CredentialSource,
    StaticSource,
    basic_authorization,
)
from kubewright.client.exec_plugin import ExecSource
from kubewright.client.limits import RateLimiter
from kubewright.client.oidc import OidcSource
from kubewright.client.proxies import proxy_for
from kubewright.client.redaction import hide_secret_data
from kubewright.client.requests import JSON, Request
from kubewright.client.retries import retry_delay
from kubewright.client.server_warnings import WarningLog
from kubewright.client.sockets import Sockets
from kubewright.client.tls import certificate_expiry, explain_tls, tls_context, trusting_only
from kubewright.metrics import Counter, Registry

Fence = Callable[[], None]
"""Called before each attempt of a request that may change something; raises to keep it from leaving."""

CONNECT_TIMEOUT = 10.0
IDENTITY_TIMEOUT = 30.0
GOODBYE_TIMEOUT = 1.0
READ_BUFFER = 256 * 1024
BIG_BODY = 512 * 1024
_GATEWAY = (429, 502, 503, 504)
_EXCERPT = 200


class Answer(NamedTuple):
    """A whole answer that says yes."""

    status: int
    headers: Mapping[str, str]
    body: bytes


T = TypeVar("T", Answer, aiohttp.ClientResponse)


class Stream:
    """An answer that comes in pieces; `idle` is how many seconds may pass between two of them."""

    def __init__(self, response: aiohttp.ClientResponse, about: str, idle: float) -> None:
        self.idle = idle
        self._content = response.content
        self._about = about

    async def read(self) -> bytes:
        """Return the next piece, or nothing at the end."""
        try:
            async with asyncio.timeout(self.idle):
                return await self._content.readany()
        except TimeoutError:
            raise TimedOut(f"{self._about}: the stream was silent for {self.idle:.0f} s", sent=True) from None
        except (aiohttp.ClientError, OSError):
            raise ConnectionLost(
                f"{self._about}: the connection broke in the middle of the stream", sent=True
            ) from None


class Transport:
    """Send requests to one API server over pooled connections."""

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
        self._base = config.server.rstrip("/")
        self._authority = _authority_of(self._base, config.source)
        self._proxy = proxy_for(config.server, config.proxy_url, os.environ) or None
        self._timeout = timeout
        self._limits = _limits(timeout)
        self._user_agent = user_agent
        self._limiter = RateLimiter(rate_limit) if rate_limit else None
        self._metrics = metrics
        self._counters: dict[tuple[str, str], Counter] = {}
        self._warnings = WarningLog()
        self._authenticator = Authenticator(_source_of(config))
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()
        self._prepared_for: Credential | None = None
        self._headers: dict[tuple[str, str], CIMultiDict[str]] = {}
        self._tls: ssl.SSLContext | bool = True

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=60.0, socket_factory=self._sockets.make
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            # All headers are made here, once for each kind of request.
            skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        )
        # It would repeat PUT and DELETE whose fate is unknown; retries.py decides that.
        self._session._retry_connection = False  # pyright: ignore[reportPrivateUsage]  (no public switch exists)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            # The library does not wait for connections that ended streams and cancelled requests gave up.
            await self._sockets.all_closed(GOODBYE_TIMEOUT)

    async def send(self, request: Request, fence: Fence | None = None) -> Answer:
        """Send a request and return its whole answer, or raise what went wrong."""
        return await self._repeated(request, self._exchange, None if request.method == "GET" else fence)

    @asynccontextmanager
    async def stream(self, request: Request, *, idle: float) -> AsyncGenerator[Stream, None]:
        """Send a request and read its answer piece by piece."""
        response = await self._repeated(request, self._begin, None)
        try:
            yield Stream(response, f"{request.verb} {request.object}", idle)
        finally:
            response.close()

    async def _repeated(
        self,
        request: Request,
        attempt: Callable[[Request, aiohttp.ClientTimeout, Fence | None], Awaitable[T]],
        fence: Fence | None,
    ) -> T:
        """Attempt until it succeeds, may not be repeated, or the request's time is over."""
        if self._limiter is not None:
            await self._limiter.wait_turn()
        patience = request.timeout or self._timeout
        limits = _limits(patience) if request.timeout else self._limits
        started = asyncio.get_running_loop().time()
        attempts, renewed = 0, False
        while True:
            try:
                answer = await attempt(request, limits, fence)
                if self._config.observer is not None:
                    self._config.observer(request, answer.status, None)
                return answer
            except Unauthorized as error:
                used = self._prepared_for
                if renewed or used is None or not await self._authenticator.replace(used):
                    error.hint = self._credential_hint()
                    raise
                renewed = True
            except (ApiError, ConnectionLost) as error:
                if self._config.observer is not None and isinstance(error, ApiError):
                    self._config.observer(request, error.status.code, error)
                delay = retry_delay(request, error, attempts)
                left = patience - (asyncio.get_running_loop().time() - started)
                if delay is None or delay >= left:
                    raise
                attempts += 1
                limits = _limits(left - delay)
                await asyncio.sleep(delay)

    async def _exchange(self, request: Request, limits: aiohttp.ClientTimeout, fence: Fence | None) -> Answer:
        try:
            response = await self._open(request, limits, fence)
            try:
                body = await response.read()
            finally:
                response.release()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # The library's own errors hold the headers that were sent, tokens and all: they end here.
            raise self._failure(error, request) from None
        if response.status < 300:
            if request.accept.startswith(JSON):
                self._check_json(request, response)
            return Answer(response.status, response.headers, body)
        if response.status == 304:
            return Answer(304, response.headers, b"")
        raise self._refusal(request, response, body)

    async def _begin(
        self, request: Request, limits: aiohttp.ClientTimeout, fence: Fence | None
    ) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(limits.total):
                response = await self._open(
                    request, aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT), fence
                )
                body = await response.read() if response.status >= 300 else b""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._failure(error, request) from None
        if response.status >= 300:
            raise self._refusal(request, response, body)
        if request.accept.startswith(JSON):
            try:
                self._check_json(request, response)
            except UnexpectedAnswer:
                response.close()
                raise
        return response

    async def _open(
        self, request: Request, limits: aiohttp.ClientTimeout, fence: Fence | None
    ) -> aiohttp.ClientResponse:
        """Make one attempt and return once the answer's headers are there."""
        if self._session is None:
            raise ConfigError("the client is not open: use `async with Client(config) as client`")
        credential = self._authenticator.current() or await self._authenticator.renew()
        if credential is not self._prepared_for:
            await self._prepare(credential)
        if fence is not None:
            fence()
        path = f"{request.path}?{request.query}" if request.query else request.path
        try:
            response = await self._session.request(
                request.method,
                URL(self._base + path, encoded=True),
                data=_payload(request.body),
                headers=self._headers_of(request, credential),
                allow_redirects=False,
                proxy=self._proxy,
                ssl=self._tls,
                server_hostname=self._config.tls_server_name or None,
                timeout=limits,
            )
        except BaseException:
            self._count("<error>", request.method)
            raise
        self._count(str(response.status), request.method)
        if "Warning" in response.headers:
            self._warnings.deliver(response.headers.getall("Warning"), f"{request.verb} {request.object}")
        return response

    async def _prepare(self, credential: Credential) -> None:
        before = self._prepared_for
        if self._base.startswith("https://") and (
            before is None or (before.certificate, before.key) != (credential.certificate, credential.key)
        ):
            # A new context also parts us from connections that were opened with the old certificate.
            self._tls = await asyncio.to_thread(
                tls_context, self._config, credential.certificate, credential.key
            )
        self._headers = {}
        self._prepared_for = credential

    def _headers_of(self, request: Request, credential: Credential) -> CIMultiDict[str]:
        prepared = self._headers.get((request.accept, request.content_type))
        if prepared is None:
            prepared = _make_headers(self._config, self._user_agent, request, credential)
            if credential is self._prepared_for:
                self._headers[request.accept, request.content_type] = prepared
        if not request.headers:
            return prepared
        special = prepared.copy()
        special.update(request.headers)
        return special

    def _count(self, code: str, method: str) -> None:
        if self._metrics is None:
            return
        counter = self._counters.get((code, method))
        if counter is None:
            counter = self._counters[code, method] = self._metrics.counter(
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                ("code", "method", "host"),
            ).labels(code=code, method=method, host=self._authority)
        counter.inc()

    def _check_json(self, request: Request, response: aiohttp.ClientResponse) -> None:
        if not response.headers.get("Content-Type", "").startswith(JSON):
            raise self._unexpected(request, response)

    def _failure(self, error: Exception, request: Request) -> ConnectionFailed:
        """Say in one line why no whole answer came."""
        asked, server = f"{request.verb} {request.object}", self._base
        match error:
            case aiohttp.ConnectionTimeoutError():
                return TimedOut(f"{asked}: no connection to {server} in time")
            case TimeoutError():
                seconds = request.timeout or self._timeout
                return TimedOut(f"{asked}: {server} did not answer within {seconds:g} s", sent=True)
            case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLError() as cause):
                return ConnectionFailed(f"{asked}: {explain_tls(cause, server)}")
            case aiohttp.ClientConnectorSSLError(os_error=ssl.SSLError() as cause):
                return ConnectionFailed(f"{asked}: {explain_tls(cause, server)}")
            case ssl.SSLError():
                return ConnectionFailed(f"{asked}: {explain_tls(error, server)}", sent=True)
            case aiohttp.ClientProxyConnectionError():
                return ConnectionFailed(
                    f"{asked}: the proxy to {server} cannot be reached: {_os_text(error)}"
                )
            case aiohttp.ClientConnectorError():
                return ConnectionFailed(f"{asked}: {server} cannot be reached: {_os_text(error)}")
            case aiohttp.ClientHttpProxyError():
                return ConnectionFailed(f"{asked}: the proxy to {server} refused with HTTP {error.status}")
            case aiohttp.ClientResponseError():
                return ConnectionFailed(f"{asked}: {server} does not answer in HTTP", sent=True)
            case aiohttp.ClientConnectionResetError():
                return ConnectionLost(
                    f"{asked}: the connection to {server} was closed before the request was out"
                )
            case aiohttp.ClientPayloadError():
                return ConnectionLost(
                    f"{asked}: the connection to {server} broke in the middle of the answer", sent=True
                )
            case _:
                return ConnectionLost(f"{asked}: the connection to {server} broke", sent=True)

    def _refusal(self, request: Request, response: aiohttp.ClientResponse, body: bytes) -> Exception:
        content_type = response.headers.get("Content-Type", "")
        status = Status(code=response.status)
        if content_type.startswith(JSON):
            try:
                status = decode(Status, body)
            except DecodeError:
                return self._unexpected(request, response)
            status.code = status.code or response.status
        elif content_type.startswith("text/plain"):
            status.message = body[:_EXCERPT].decode(errors="replace").strip()
        elif response.status in _GATEWAY:
            status.message = response.reason or ""
        else:
            return self._unexpected(request, response)
        if request.body and request.resource == "secrets":
            status.message = hide_secret_data(status.message, request.body)
            for cause in status.details.causes:
                cause.message = hide_secret_data(cause.message, request.body)
        given = response.headers.get("Retry-After", "")
        return error_from_status(
            status,
            verb=request.verb,
            object=request.object,
            retry_after=float(given) if given.isdecimal() else None,
        )

    def _unexpected(self, request: Request, response: aiohttp.ClientResponse) -> UnexpectedAnswer:
        what = response.headers.get("Content-Type") or "no content type"
        return UnexpectedAnswer(
            f"{request.verb} {request.object}: {self._base} answered HTTP {response.status} with {what}, which is not "
            "Kubernetes' API: check the server's address and any proxy between"
        )

    def _credential_hint(self) -> str:
        credential = self._prepared_for
        source = self._config.source
        if credential is None or not (credential.authorization or credential.certificate):
            return f"{source} holds no credentials"
        if credential.certificate and (expired := certificate_expiry(credential.certificate)):
            return f"the client certificate of {source} expired on {expired:%Y-%m-%d %H:%M} UTC"
        return f"the credentials of {source} are not accepted: they may have expired or been withdrawn"


def _authority_of(server: str, source: str) -> str:
    try:
        url = URL(server)
    except ValueError:
        raise ConfigError(f"the server of {source} is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"the server of {source} is no http(s) URL")
    return url.authority


def _source_of(config: ClusterConfig) -> CredentialSource:
    if config.exec is not None:
        return ExecSource(config, config.exec)
    provider = config.oidc
    if provider is not None:
        return OidcSource(provider, lambda url, form, basic: _ask_provider(provider, url, form, basic))
    return StaticSource(config)


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    """Hand over a big body as a file, which is written in pieces that leave the loop room for others."""
    if len(body) > BIG_BODY:
        return io.BytesIO(body)
    return body or None


def _limits(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=min(CONNECT_TIMEOUT, seconds))


def _make_headers(
    config: ClusterConfig, user_agent: str, request: Request, credential: Credential
) -> CIMultiDict[str]:
    headers = CIMultiDict({"User-Agent": user_agent, "Accept": request.accept})
    headers["Accept-Encoding"] = "gzip" if config.compression else "identity"
    if request.content_type:
        headers["Content-Type"] = request.content_type
    if credential.authorization:
        headers["Authorization"] = credential.authorization
    if whom := config.impersonate:
        headers["Impersonate-User"] = whom.user
        if whom.uid:
            headers["Impersonate-Uid"] = whom.uid
        for group in whom.groups:
            headers.add("Impersonate-Group", group)
        for key, values in whom.extra.items():
            for value in values:
                headers.add(f"Impersonate-Extra-{quote(key, safe='')}", value)
    return headers


async def _ask_provider(
    provider: OidcProvider, url: str, form: Mapping[str, str] | None, basic: tuple[str, str] | None
) -> tuple[int, bytes]:
    """Ask an identity provider, which is another server with another authority than the cluster."""
    trusted: ssl.SSLContext | bool = True
    if provider.ca_data:
        trusted = await asyncio.to_thread(trusting_only, provider.ca_data, provider.issuer_url)
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=IDENTITY_TIMEOUT)) as session,
            session.request(
                "POST" if form else "GET",
                url,
                data=form,
                headers={"Authorization": basic_authorization(*basic)} if basic else None,
                ssl=trusted,
                allow_redirects=False,
                proxy=proxy_for(url, "", os.environ) or None,
            ) as response,
        ):
            return response.status, await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        # The library's own text may show the proxy's password.
        raise ConnectionFailed(f"{url}: {type(error).__name__}") from None


def _os_text(error: aiohttp.ClientConnectorError) -> str:
    number = error.os_error.errno
    return os.strerror(number) if number and number > 0 else error.os_error.strerror or "unknown host"
