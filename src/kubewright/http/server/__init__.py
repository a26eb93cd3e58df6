"""HTTP/1.1 for servers; the entry point is `HttpServer`.

Read in this order: `server` (accepting, evicting, stopping), `listening` (its sockets), `connection` (one client),
`reader` (requests from bytes), `requests` and `responses` (values), `handler` (what responds), `limits`.
"""

from kubewright.http.server.connection import ServerConnection
from kubewright.http.server.handler import Handler, PathEndpoint, Router
from kubewright.http.server.limits import Limits
from kubewright.http.server.requests import Request, split_target
from kubewright.http.server.responses import (
    JSON,
    TEXT,
    BodyWriter,
    DateField,
    HangUp,
    HeaderFields,
    PendingResponse,
    Response,
    ServerResponse,
    Stream,
    Upgrade,
    text,
)
from kubewright.http.server.server import HttpServer

__all__ = [
    "JSON",
    "TEXT",
    "BodyWriter",
    "DateField",
    "Handler",
    "HangUp",
    "HeaderFields",
    "HttpServer",
    "Limits",
    "PathEndpoint",
    "PendingResponse",
    "Request",
    "Response",
    "Router",
    "ServerConnection",
    "ServerResponse",
    "Stream",
    "Upgrade",
    "split_target",
    "text",
]
