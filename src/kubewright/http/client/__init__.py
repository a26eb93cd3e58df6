"""Ask HTTP/1.1 servers: connections kept between requests, proxies, TLS, answers whole or piece by piece."""

from kubewright.http.client.exchange import Answer, Body, Exchange, Fence
from kubewright.http.client.failures import (
    Broken,
    ConnectTimedOut,
    ExchangeFailed,
    HandshakeFailed,
    Malformed,
    NotSent,
    ProxyRefused,
    Silent,
    Unreachable,
)
from kubewright.http.client.headers import Headers
from kubewright.http.client.heads import head_of, request_of
from kubewright.http.client.pool import Pool
from kubewright.http.client.route import Place, Route

__all__ = [
    "Answer",
    "Body",
    "Broken",
    "ConnectTimedOut",
    "Exchange",
    "ExchangeFailed",
    "Fence",
    "HandshakeFailed",
    "Headers",
    "Malformed",
    "NotSent",
    "Place",
    "Pool",
    "ProxyRefused",
    "Route",
    "Silent",
    "Unreachable",
    "head_of",
    "request_of",
]
