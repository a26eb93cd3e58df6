"""Probes of servers with invalid responses."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from kubewright.api.builtin import core_v1
from kubewright.processpods.probes import ProbeError, probe

CONTAINER = core_v1.Container(name="main")


async def nothing(_: Sequence[str]) -> tuple[int, str]:
    return 0, ""


@asynccontextmanager
async def answering(answer: bytes) -> AsyncGenerator[int, None]:
    """Serve one response to any client."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("answer", [b"", b"hello\r\n", b"x" * 200_000, b"HTTP/1.1 OK\r\n"])
async def test_a_response_that_is_not_http_fails_the_probe(answer: bytes) -> None:
    async with answering(answer) as port:
        what = core_v1.Probe(http_get=core_v1.HTTPGetAction(path="/", port=port), timeout_seconds=60)
        with pytest.raises(ProbeError):
            await probe(CONTAINER, what, "127.0.0.1", nothing)


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "no\0name"])
async def test_an_invalid_host_name_fails_the_probe(host: str) -> None:
    http = core_v1.Probe(http_get=core_v1.HTTPGetAction(path="/", host=host, port=80), timeout_seconds=60)
    tcp = core_v1.Probe(tcp_socket=core_v1.TCPSocketAction(host=host, port=80), timeout_seconds=60)
    for what in (http, tcp):
        with pytest.raises(ProbeError):
            await probe(CONTAINER, what, "127.0.0.1", nothing)
