"""Why an exchange gave no whole answer, told apart by how far it came."""

import ssl


class ExchangeFailed(Exception):
    """No whole answer came."""


class ConnectTimeout(ExchangeFailed):
    """No connection came about in time: nothing was sent."""


class Unreachable(ExchangeFailed):
    """The server, or the proxy before it, cannot be connected to: nothing was sent."""

    def __init__(self, cause: OSError, *, proxy: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.proxy = proxy


class HandshakeFailed(ExchangeFailed):
    """TLS with the server, or with the proxy before it, did not come about: nothing was sent."""

    def __init__(self, cause: ssl.SSLError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ProxyRefused(ExchangeFailed):
    """The proxy does not open a way to the server: nothing was sent."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class NotSent(ExchangeFailed):
    """The connection was closed before the first byte of the request was out."""


class ReadTimeout(ExchangeFailed):
    """No answer, or no further piece of it, came in time."""


class MalformedResponse(ExchangeFailed):
    """What came is not HTTP/1.1; `shown` is how it begins."""

    def __init__(self, why: str, shown: bytes = b"") -> None:
        super().__init__(why)
        self.shown = shown


class ConnectionBroken(ExchangeFailed):
    """The connection ended before the answer did, for a cause if one was told.

    `stale`: it had served before, so the server may have closed it just when it was to serve again.
    """

    def __init__(self, *, begun: bool, stale: bool = False, cause: Exception | None = None) -> None:
        super().__init__("in the middle of the answer" if begun else "before the answer")
        self.begun = begun
        self.stale = stale
        self.cause = cause
