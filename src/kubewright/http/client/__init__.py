"""Ask HTTP/1.1 servers: connections kept between requests, proxies, TLS, answers whole or piece by piece."""

from kubewright.http.client.exchange import Body, ClientResponse, Exchange, Fence
from kubewright.http.client.failures import (
    ConnectionBroken,
    ConnectTimeout,
    ExchangeFailed,
    HandshakeFailed,
    MalformedResponse,
    NotSent,
    ProxyRefused,
    ReadTimeout,
    Unreachable,
)
from kubewright.http.client.headers import Headers
from kubewright.http.client.heads import encode_headers, encode_request
from kubewright.http.client.pool import Pool
from kubewright.http.client.route import Origin, Route

__all__ = [
    "Body",
    "ClientResponse",
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
    "ProxyRefused",
    "ReadTimeout",
    "Route",
    "Unreachable",
    "encode_headers",
    "encode_request",
]
