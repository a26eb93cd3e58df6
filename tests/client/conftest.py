"""Servers for the client's tests: a Kubernetes API server by the --server switch, and loopback ones that misbehave."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.certificates import Authority
from kubewright.client import Client, ClusterConfig, config_from_kubeconfig, load_config
from kubewright.client.aiohttp_exchange import AiohttpExchange
from kubewright.testing import ControlPlane


@dataclass
class ApiServer:
    """A running API server: its admin's configuration and the tokens of two users without any role."""

    config: ClusterConfig
    tokens: dict[str, str] = field(default_factory=dict)
    binaries: Path | None = None


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api_server(server_name: str, bare_plane: ControlPlane | None) -> AsyncIterator[ApiServer]:
    """Run the server that --server names, once for all tests."""
    if bare_plane is not None:
        yield ApiServer(load_config(bare_plane.kubeconfig), bare_plane.tokens, bare_plane.binaries)
    elif server_name == "existing":
        yield ApiServer(load_config())
    else:
        from kubewright.devserver import Server

        async with Server() as server:
            tokens = {"jane": server.add_user("jane", ["readers"]), "bob": server.add_user("bob", [])}
            yield ApiServer(config_from_kubeconfig(server.kubeconfig()), tokens)


@pytest_asyncio.fixture(loop_scope="session")
async def client(api_server: ApiServer, transport: str) -> AsyncIterator[Client]:
    async with Client(api_server.config, field_manager="tests") as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(client: Client) -> AsyncIterator[str]:
    """Create a namespace for each test."""
    name = f"client-{secrets.token_hex(4)}"
    await client.create(core_v1.Namespace(Meta(name)))
    yield name
    await client.delete(core_v1.Namespace, name)


class Exchange:
    """One request that a loopback server received, and the means to answer it byte by byte."""

    def __init__(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        line, *headers = head.decode().split("\r\n")
        self.method, self.target, _ = line.split(" ", 2)
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (header.partition(":") for header in headers if header)
        }
        self.body = body
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def answer(self, document: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Answer with JSON, or with bytes of the Content-Type given."""
        body = document if isinstance(document, bytes) else msgspec.json.encode(document)
        given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.send(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    def begin_chunks(self) -> None:
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def refuse(
        self, code: int, reason: str, message: str = "", headers: dict[str, str] | None = None
    ) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self.answer({**status, "message": message, "reason": reason, "code": code}, code, headers)

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        self.writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]
Serve = Callable[..., Awaitable["Loopback"]]


class Loopback:
    """A server on loopback that answers as a test's handler says."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.received: list[Exchange] = []
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, tls: Any = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                exchange = Exchange(head, b"", writer)
                exchange.body = await reader.readexactly(int(exchange.headers.get("content-length", 0)))
                self.received.append(exchange)
                await self.handler(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start loopback servers: `server = await serve(handler)`."""
    running: list[Loopback] = []

    async def start(handler: Handler, tls: Any = None) -> Loopback:
        server = Loopback(handler)
        await server.start(tls)
        running.append(server)
        return server

    yield start
    for server in running:
        await server.stop()


@pytest.fixture(params=["pool", "aiohttp"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test on kubewright's own HTTP, and on the documented adapter for aiohttp."""
    if request.param == "aiohttp":
        monkeypatch.setattr("kubewright.client.transport.Pool", lambda *_: AiohttpExchange())
    return request.param


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create()


def server_context(pair_certificate: bytes, pair_key: bytes, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (folder / "pair.pem").write_bytes(pair_certificate + pair_key)
    context.load_cert_chain(folder / "pair.pem")
    return context
