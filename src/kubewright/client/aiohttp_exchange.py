"""An `Exchange` on aiohttp, for programs that must use it for HTTP (tracing, connectors, company policies).

    config = dataclasses.replace(load_config(), exchange=AiohttpExchange)
    async with Client(config) as client: ...

It needs the extra `kubewright[aiohttp]`. The default is kubewright's own pool, which uses about half of the CPU time.
Differences: SOCKS proxies are not supported, and the number of connections is not limited.
"""

import asyncio
import io
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import aiohttp
from yarl import URL

from kubewright.http.client import (
    SOCKS,
    ClientResponse,
    ConnectionBroken,
    ConnectTimeout,
    ExchangeFailed,
    Fence,
    HandshakeFailed,
    Headers,
    MalformedResponse,
    ProxyRefused,
    ReadTimeout,
    ResponseTooLarge,
    Route,
    Unreachable,
    decode_request,
)

CONNECT_TIMEOUT = 10.0
MAX_ERROR_BODY = 8 * 1024 * 1024
MAX_BODY = 1024 * 1024 * 1024
LARGE = 1024 * 1024
# aiohttp writes these itself.
_OWN = frozenset({"content-length", "proxy-authorization"})
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class _Attempt:
    """One request in progress: aiohttp reports to it when a connection is ready and when bytes were sent."""

    def __init__(self, method: str, fence: Fence | None) -> None:
        self._method = method
        self._fence = fence
        self.sent = False
        self.reused = False

    async def connected(self, *, reused: bool) -> None:
        if self.sent and self._method != "GET":
            # aiohttp would repeat PUT and DELETE on another connection; whether that is safe is the client's decision.
            raise ConnectionBroken(begun=False, stale=True)
        self.reused = reused
        if self._fence is not None:
            self._fence()


class AiohttpBody:
    """The body of a streamed response."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self, idle: float) -> bytes:
        """Return what has arrived since the last call, waiting up to `idle` seconds; b"" is the end."""
        return await self._read(asyncio.get_running_loop().time() + idle)

    async def read_all(self, deadline: float) -> bytes:
        """Return the unread rest."""
        return await _whole(self._response, deadline)

    def release(self) -> None:
        """Return the connection to the pool if the body was read to its end; otherwise close it."""
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()

    async def _read(self, deadline: float) -> bytes:
        with_timeout = asyncio.timeout_at(deadline)
        try:
            async with with_timeout:
                return await self._response.content.readany()
        except TimeoutError:
            raise ReadTimeout from None
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionBroken(begun=True, cause=error) from None


class AiohttpExchange:
    """Send requests with an aiohttp session; a new route begins a new session."""

    def __init__(self) -> None:
        self._route: Route | None = None
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []

    def reroute(self, route: Route) -> None:
        """Use a route for new requests; the session of the old one is kept until `close` for requests in progress."""
        if route.proxy is not None and route.proxy.scheme in SOCKS:
            raise ProxyRefused("aiohttp does not support SOCKS proxies")
        if self._session is not None:
            self._retired.append(self._session)
        self._route = route
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            trace_configs=[_trace()],
            skip_auto_headers=_AUTOMATIC,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_field_size=1024 * 1024,
        )

    async def send(
        self, head: bytes, body: bytes, timeout: float, fence: Fence | None = None
    ) -> ClientResponse:
        """Send a request and return its whole response."""
        deadline = asyncio.get_running_loop().time() + timeout
        async with self._request(head, body, deadline, fence) as response:
            try:
                return _response(response, await _whole(response, deadline))
            finally:
                response.release() if response.content.at_eof() else response.close()

    async def stream(self, head: bytes, body: bytes, timeout: float) -> tuple[ClientResponse, AiohttpBody]:
        """Send a request and return its response without the body, and the body to read."""
        deadline = asyncio.get_running_loop().time() + timeout
        async with self._request(head, body, deadline, None) as response:
            return _response(response, b""), AiohttpBody(response)

    async def close(self) -> None:
        """Abort all requests in progress."""
        sessions, self._retired, self._session = [*self._retired, self._session], [], None
        for session in sessions:
            if session is not None:
                await session.close()
        # The event loop closes the sockets of aborted connections in its next iterations.
        for _ in range(3):
            await asyncio.sleep(0)

    @asynccontextmanager
    async def _request(
        self, head: bytes, body: bytes, deadline: float, fence: Fence | None
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        session, route = self._session, self._route
        if session is None or route is None:
            raise ConnectionBroken(begun=False)
        method, target, headers = decode_request(head)
        attempt = _Attempt(method, fence)
        server = f"{route.server.scheme}://{route.server.authority}"
        try:
            async with asyncio.timeout_at(deadline):
                response = await session.request(
                    method,
                    URL(f"{server}{target.removeprefix(server)}", encoded=True),
                    headers=[(name, value) for name, value in headers if name.lower() not in _OWN],
                    data=_data(method, body),
                    ssl=route.tls or True,
                    server_hostname=route.server_name or None,
                    proxy=_proxy_url(route),
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
                    trace_request_ctx=attempt,
                )
        except ExchangeFailed:
            raise
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise _failure(error, attempt) from None
        yield response


def _trace() -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()

    async def created(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        await context.trace_request_ctx.connected(reused=False)

    async def reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        await context.trace_request_ctx.connected(reused=True)

    async def sent(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.trace_request_ctx.sent = True

    trace.on_connection_create_end.append(created)
    trace.on_connection_reuseconn.append(reused)
    trace.on_request_headers_sent.append(sent)
    return trace


def _data(method: str, body: bytes) -> bytes | io.BytesIO | None:
    if not body and method in ("GET", "DELETE"):
        return None
    # aiohttp sends large bytes in one piece, and warns about it.
    return body if len(body) <= LARGE else io.BytesIO(body)


def _proxy_url(route: Route) -> URL | None:
    proxy = route.proxy
    if proxy is None:
        return None
    return URL.build(
        scheme=proxy.scheme,
        host=proxy.host,
        port=proxy.port,
        user=proxy.username,
        password=proxy.password or None,
    )


async def _whole(response: aiohttp.ClientResponse, deadline: float) -> bytes:
    """Read a body to its end, within the bounds."""
    limit = MAX_BODY if response.status < 300 else MAX_ERROR_BODY
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            while piece := await response.content.readany():
                body += piece
                if len(body) > limit:
                    raise ResponseTooLarge(response.status, limit)
    except TimeoutError:
        raise ReadTimeout from None
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionBroken(begun=True, cause=error) from None
    return bytes(body)


def _response(response: aiohttp.ClientResponse, body: bytes) -> ClientResponse:
    return ClientResponse(response.status, response.reason or "", Headers(response.raw_headers), body)


def _failure(error: Exception, attempt: _Attempt) -> ExchangeFailed:
    """Return the ExchangeFailed subclass for how far the request got."""
    match error:
        case aiohttp.ClientHttpProxyError():
            return ProxyRefused(f"HTTP {error.status}")
        case aiohttp.ClientConnectorCertificateError():
            cause = error.certificate_error
            return HandshakeFailed(cause if isinstance(cause, ssl.SSLError) else ssl.SSLError(str(cause)))
        case aiohttp.ClientConnectorSSLError():
            cause = cast("BaseException", error).__cause__
            return HandshakeFailed(cause if isinstance(cause, ssl.SSLError) else ssl.SSLError(str(cause)))
        case aiohttp.ClientProxyConnectionError():
            return Unreachable(error.os_error, proxy=True)
        case aiohttp.ClientConnectorError():
            return Unreachable(error.os_error, proxy=False)
        case aiohttp.ConnectionTimeoutError():
            return ConnectTimeout()
        case TimeoutError():
            return ReadTimeout() if attempt.sent else ConnectTimeout()
        case aiohttp.ClientResponseError():
            return MalformedResponse(error.message)
        case _:
            return ConnectionBroken(begun=False, stale=attempt.reused, cause=error)
