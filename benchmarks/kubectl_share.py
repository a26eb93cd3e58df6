"""What of kubectl's first command is kubectl's own, and how long it waits for the server's responses."""

import asyncio
import json
import socket
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import yaml


async def own_start(kubectl: Path) -> float:
    """Time a kubectl that sends no request, in milliseconds: the least that any of its commands takes."""
    with tempfile.TemporaryDirectory() as home:
        return await _timed(kubectl, home, "version", "--client")


async def first_get(kubectl: Path, kubeconfig: Path) -> float:
    """Time kubectl's first `get` with nothing in its cache, in milliseconds."""
    with tempfile.TemporaryDirectory() as home:
        return await _timed(kubectl, home, f"--kubeconfig={kubeconfig}", "get", "configmaps")


async def waited(kubectl: Path, kubeconfig: Path) -> float:
    """Return how long kubectl waits for the server in its first `get`, in milliseconds, as measured by a relay."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    async with Relay().open(cluster["server"]) as relay:
        cluster["server"] = relay.url
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            await first_get(kubectl, Path(file.name))
        return relay.waited() * 1000


async def _timed(kubectl: Path, home: str, *arguments: str) -> float:
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        kubectl,
        *arguments,
        env={"HOME": home},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    return (time.perf_counter() - started) * 1000


class Relay:
    """Pass bytes on between a client and a server, and note when which side spoke."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[tuple[float, float]] = []
        """From the last word on a connection to each word of the server's."""

    @asynccontextmanager
    async def open(self, server: str) -> AsyncGenerator["Relay", None]:
        """Listen for clients of a server."""
        address = urlsplit(server)
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: _Caller(self, (address.hostname or "", address.port or 443)), "127.0.0.1", 0
        )
        async with listener:
            self.url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            yield self

    def waited(self) -> float:
        """Return the seconds during which a response of the server was pending on any connection."""
        total, reached = 0.0, 0.0
        for start, end in sorted(self.spans):
            total += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return total


class _Caller(asyncio.Protocol):
    """The client's side of a relayed connection."""

    def __init__(self, relay: Relay, server: tuple[str, int]) -> None:
        self._relay = relay
        self._socket = socket.create_connection(server)
        self._socket.setblocking(False)
        self._server: asyncio.Transport | None = None
        self._early = bytearray()
        self.spoken = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._joining = loop.create_task(
            loop.create_connection(lambda: _Callee(self, self._relay), sock=self._socket)
        )

    def joined(self, server: asyncio.Transport) -> None:
        self._server = server
        if self._early:
            self.data_received(bytes(self._early))

    def data_received(self, data: bytes) -> None:
        if self._server is None:
            self._early += data
            return
        self._server.write(data)
        self.spoken = time.perf_counter()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._server is not None:
            self._server.close()


class _Callee(asyncio.Protocol):
    """The server's side."""

    def __init__(self, caller: _Caller, relay: Relay) -> None:
        self._caller = caller
        self._relay = relay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._caller.joined(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._relay.spans.append((self._caller.spoken, now))
        self._caller.spoken = now
        self._caller.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._caller.transport.close()
