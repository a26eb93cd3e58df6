"""A SOCKS5 proxy on loopback that notes what it is asked, and refuses as a test says."""

import asyncio
import ipaddress
from collections.abc import Mapping
from typing import Any, Self


class SocksServer:
    """Connect clients to where they ask, names by a table of the proxy's own."""

    def __init__(
        self,
        *,
        user: tuple[str, str] | None = None,
        names: Mapping[str, str] | None = None,
        reply: int = 0,
        greeting: bytes | None = None,
    ) -> None:
        self._user = user
        self._names = names or {}
        self._reply = reply
        self._greeting = greeting
        self.asked: list[tuple[int, str, int]] = []
        self.users: list[tuple[str, str]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        if self._serving:
            await asyncio.wait(self._serving)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.append(writer)
        try:
            await self._negotiate(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self._serving.discard(task)

    async def _negotiate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, count = await reader.readexactly(2)
        assert version == 5
        methods = await reader.readexactly(count)
        if self._greeting is not None:
            writer.write(self._greeting)
            return
        wanted = 2 if self._user else 0
        if wanted not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes([5, wanted]))
        if self._user:
            (_,) = await reader.readexactly(1)
            name = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            password = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            self.users.append((name, password))
            writer.write(bytes([1, (name, password) != self._user]))
            if (name, password) != self._user:
                return
        await self._connect(reader, writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, command, _, kind = await reader.readexactly(4)
        assert (version, command) == (5, 1)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == 1 else 16)))
        port = int.from_bytes(await reader.readexactly(2))
        self.asked.append((kind, host, port))
        if self._reply:
            writer.write(bytes([5, self._reply, 0, 1]) + bytes(6))
            return
        upstream, downstream = await asyncio.open_connection(self._names.get(host, host), port)
        self._writers.append(downstream)
        # A name as bound address is allowed, and rare.
        bound = b"\x03\x05proxy" if kind == 3 else b"\x04" + bytes(16)
        writer.write(b"\x05\x00\x00" + bound + bytes(2))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pump(reader, downstream))
            group.create_task(self._pump(upstream, writer))

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        except ConnectionError:
            pass
        target.close()
