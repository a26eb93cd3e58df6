"""HTTP/1.1 for servers; the entry point is `HttpServer`.

Read in this order: `server` (accepting, evicting, stopping), `listening` (its sockets), `connection` (one client),
`reader` (requests from bytes), `requests` and `responses` (values), `handler` (what answers), `limits`.
"""

from kubewright.http.server.connection import ServerConnection
from kubewright.http.server.handler import Endpoint, Handler, Router
from kubewright.http.server.limits import Limits
from kubewright.http.server.requests import Request, split_target
from kubewright.http.server.responses import (
    JSON,
    TEXT,
    Answer,
    BodyWriter,
    DateField,
    Fields,
    HangUp,
    Response,
    Stream,
    Upgrade,
    text,
)
from kubewright.http.server.server import HttpServer

__all__ = [
    "JSON",
    "TEXT",
    "Answer",
    "BodyWriter",
    "DateField",
    "Endpoint",
    "Fields",
    "Handler",
    "HangUp",
    "HttpServer",
    "Limits",
    "Request",
    "Response",
    "Router",
    "ServerConnection",
    "Stream",
    "Upgrade",
    "split_target",
    "text",
]
