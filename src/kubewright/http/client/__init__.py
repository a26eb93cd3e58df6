"""Ask HTTP/1.1 servers: connections kept between requests, proxies, TLS, answers whole or piece by piece."""

from kubewright.http.client.connection import Answer, Connection
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
from kubewright.http.client.heads import head_of, request_of
from kubewright.http.client.opening import CONNECT_TIMEOUT
from kubewright.http.client.pool import Pool
from kubewright.http.client.route import Place, Route
from kubewright.http.client.sockets import Sockets

__all__ = [
    "CONNECT_TIMEOUT",
    "Answer",
    "Broken",
    "ConnectTimedOut",
    "Connection",
    "ExchangeFailed",
    "HandshakeFailed",
    "Malformed",
    "NotSent",
    "Place",
    "Pool",
    "ProxyRefused",
    "Route",
    "Silent",
    "Sockets",
    "Unreachable",
    "head_of",
    "request_of",
]
