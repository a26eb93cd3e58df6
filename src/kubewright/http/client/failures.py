"""Failures of exchanges. The classes differ by how far the request got: retries depend on it."""

import ssl


class ExchangeFailed(Exception):
    """There is no complete response."""


class PoolTimeout(ExchangeFailed):
    """All connections stayed in use by other requests: nothing was sent."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"all {limit} connections are in use")
        self.limit = limit


class ConnectTimeout(ExchangeFailed):
    """The connection was not established in time: nothing was sent."""


class Unreachable(ExchangeFailed):
    """Connecting to the server, or to the proxy, failed: nothing was sent."""

    def __init__(self, cause: OSError, *, proxy: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.proxy = proxy


class HandshakeFailed(ExchangeFailed):
    """The TLS handshake with the server, or with the proxy, failed: nothing was sent."""

    def __init__(self, cause: ssl.SSLError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ProxyRefused(ExchangeFailed):
    """The proxy does not connect to the server: nothing was sent. `reason` is an HTTP status or a SOCKS reply."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotSent(ExchangeFailed):
    """The connection was closed before the first byte of the request was sent."""


class ReadTimeout(ExchangeFailed):
    """The response, or the next piece of it, did not arrive in time."""


class MalformedResponse(ExchangeFailed):
    """The bytes received are not HTTP/1.1; `shown` is how they begin."""

    def __init__(self, why: str, shown: bytes = b"") -> None:
        super().__init__(why)
        self.shown = shown


class ResponseTooLarge(ExchangeFailed):
    """The body of a whole response exceeds its limit."""

    def __init__(self, status: int, limit: int) -> None:
        super().__init__(f"the body of an HTTP {status} response is larger than {limit} bytes")
        self.status = status
        self.limit = limit


class ConnectionBroken(ExchangeFailed):
    """The connection ended before the response did; `cause` is the error of the transport, if any.

    `begun`: the head of the response had arrived. `stale`: the connection was a reused one, so the server may have
    closed it just before the request arrived.
    """

    def __init__(self, *, begun: bool, stale: bool = False, cause: Exception | None = None) -> None:
        super().__init__("in the middle of the response" if begun else "before the response")
        self.begun = begun
        self.stale = stale
        self.cause = cause
