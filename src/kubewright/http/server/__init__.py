"""HTTP/1.1 for servers: an asyncio protocol on httptools, and what is listened with.

In reading order: `server` (from start to stop), `listening` (its sockets), `arrivals` (before TLS stands), `connection` (one client),
`reader` (bytes become requests), `requests` and `answers` (values), `handler` and `routes` (who answers), `limits` (when it is enough).
"""

from kubewright.http.server.answers import (
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
from kubewright.http.server.connection import ServerConnection
from kubewright.http.server.handler import Handler
from kubewright.http.server.limits import Limits
from kubewright.http.server.requests import Request, split_target
from kubewright.http.server.routes import Endpoint, Router
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
