"""Requests through a proxy, and the errors of a proxy that refuses or is gone."""

import asyncio
from pathlib import Path

import pytest

from kubewright.certificates import Authority
from kubewright.client import Client, ClusterConfig, ConnectionFailed

from .conftest import Serve, server_context
from .scripted import MAPS, found

pytestmark = pytest.mark.usefixtures("transport")


class HttpProxy:
    """A proxy that tunnels CONNECT and forwards plain requests, and remembers what it was asked."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[str] = []

    async def __aenter__(self) -> "HttpProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.decode())
        method, target, _ = head.decode().split(" ", 2)
        if self.status != 200:
            writer.write(f"HTTP/1.1 {self.status} No\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()
            return
        host, _, port = target.removeprefix("http://").partition("/")[0].rpartition(":")
        upstream, downstream = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            downstream.write(head)
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


async def test_a_proxy_tunnels_to_a_server_with_tls(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.serving("api", hosts=["k8s.internal"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    async with HttpProxy() as proxy:
        config = ClusterConfig(
            server.url,
            ca_data=authority.pair.certificate,
            tls_server_name="k8s.internal",
            token="sesame",
            proxy_url=f"http://user:secret@127.0.0.1:{proxy.port}",
        )
        async with Client(config) as client:
            await client.get(MAPS, "a", "default")
    assert proxy.asked[0].startswith(f"CONNECT 127.0.0.1:{server.port}")
    assert "Proxy-Authorization: Basic" in proxy.asked[0]
    assert "sesame" not in proxy.asked[0]


async def test_a_proxy_that_refuses_is_named_without_its_password(serve: Serve) -> None:
    async with HttpProxy(status=407) as proxy:
        config = ClusterConfig(
            "https://k8s.example.com:6443",
            insecure=True,
            proxy_url=f"http://user:canary@127.0.0.1:{proxy.port}",
        )
        async with Client(config) as client:
            with pytest.raises(ConnectionFailed, match=r"the proxy to .* refused: HTTP 407") as caught:
                await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)


async def test_an_unreachable_proxy_is_named(serve: Serve) -> None:
    server = await serve(found)
    await server.stop()
    config = ClusterConfig(
        "https://k8s.example.com", insecure=True, proxy_url=f"http://u:canary@127.0.0.1:{server.port}"
    )
    async with Client(config) as client:
        with pytest.raises(ConnectionFailed, match=r"the proxy to .* cannot be reached") as caught:
            await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)


async def test_a_proxy_forwards_to_a_server_without_tls(serve: Serve) -> None:
    server = await serve(found)
    async with HttpProxy() as proxy:
        config = ClusterConfig(server.url, proxy_url=f"http://user:secret@127.0.0.1:{proxy.port}")
        async with Client(config) as client:
            await client.get(MAPS, "a", "default")
    assert proxy.asked[0].startswith(f"GET {server.url}/api/v1/namespaces/default/configmaps/a HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=" in proxy.asked[0]
    assert f"Host: 127.0.0.1:{server.port}\r\n" in proxy.asked[0]
