"""HTTP/1.1 for clients; the entry point is `Pool`.

Read in this order: `exchange` (the public interface), `pool`, `connection` (one connection), `connect` (dial, proxies, TLS),
`dial`, `socks`, `tls`, `byte_transport` (what these layers have in common), `route` (where to), `headers`,
`gzip_decoder`, `failures`; `websocket` is a connection that becomes a WebSocket.
"""

from kubewright.http.client.exchange import Body, ClientResponse, Exchange, Fence, RoutedExchange
from kubewright.http.client.failures import (
    ConnectionBroken,
    ConnectTimeout,
    ExchangeFailed,
    HandshakeFailed,
    MalformedResponse,
    NotSent,
    PoolTimeout,
    ProxyRefused,
    ReadTimeout,
    ResponseTooLarge,
    Unreachable,
)
from kubewright.http.client.headers import Headers, decode_request, encode_headers, encode_request
from kubewright.http.client.pool import MAX_CONNECTIONS, Pool, PoolStatistics
from kubewright.http.client.route import SOCKS, Origin, Route
from kubewright.http.client.websocket import (
    SWITCHING_PROTOCOLS,
    ClientWebSocket,
    check_accepted,
    handshake_headers,
)

__all__ = [
    "MAX_CONNECTIONS",
    "SOCKS",
    "SWITCHING_PROTOCOLS",
    "Body",
    "ClientResponse",
    "ClientWebSocket",
    "ConnectTimeout",
    "ConnectionBroken",
    "Exchange",
    "ExchangeFailed",
    "Fence",
    "HandshakeFailed",
    "Headers",
    "MalformedResponse",
    "NotSent",
    "Origin",
    "Pool",
    "PoolStatistics",
    "PoolTimeout",
    "ProxyRefused",
    "ReadTimeout",
    "ResponseTooLarge",
    "Route",
    "RoutedExchange",
    "Unreachable",
    "check_accepted",
    "decode_request",
    "encode_headers",
    "encode_request",
    "handshake_headers",
]
