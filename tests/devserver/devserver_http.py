"""Requests to the embedded server, as the administrator."""

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from http_wire import HttpConnection, Reply

from kubewright.devserver import Server

MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def client_context(server: Server) -> ssl.SSLContext:
    """Make TLS settings with the administrator's certificate."""
    user = server.kubeconfig()["users"][0]["user"]
    context = ssl.create_default_context(cadata=server.ca_pem.decode())
    with TemporaryDirectory() as folder:
        file = Path(folder, "client.pem")
        file.write_bytes(
            base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"])
        )
        context.load_cert_chain(file)
    return context


class Http:
    """Requests as the administrator, one connection kept alive, more on request."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._wires: list[HttpConnection] = []
        self._own: HttpConnection | None = None

    async def __aenter__(self) -> Self:
        self._context = await asyncio.to_thread(client_context, self._server)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wire in self._wires:
            await wire.close()

    async def open(self, **options: Any) -> HttpConnection:
        """Open another connection."""
        streams = await asyncio.open_connection("127.0.0.1", self._server.port, ssl=self._context, **options)
        wire = HttpConnection(*streams)
        self._wires.append(wire)
        return wire

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request over the kept connection."""
        if self._own is None or self._own.reader.at_eof():
            self._own = await self.open()
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        sent = {"Content-Type": "application/json", **(headers or {})}
        self._own.send(method, path, data, sent)
        return await self._own.reply()

    async def get(self, path: str) -> Any:
        """Get a document, which has to be there."""
        reply = await self.request("GET", path)
        assert reply.status == 200, reply
        return reply.json()

    async def create(self, path: str, body: Any) -> Any:
        """Create an object, which has to succeed."""
        reply = await self.request("POST", path, body)
        assert reply.status == 201, reply
        return reply.json()
