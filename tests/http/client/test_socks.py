"""SOCKS5 proxies: the proxy resolves names, users are authenticated, and every refusal says why."""

import asyncio
import socket
import ssl

import pytest

from kubewright.client import Client, ClusterConfig, ConnectionFailed, config_from_kubeconfig
from kubewright.http.client import (
    ConnectTimeout,
    ExchangeFailed,
    Origin,
    Pool,
    ProxyRefused,
    Route,
    Unreachable,
    encode_request,
)
from kubewright.testing.virtual_time import virtual_time

from .http_servers import Listener
from .socks_server import SocksServer

REQUEST = encode_request("GET", "/", b"Host: a\r\n", b"")


def through(proxy: SocksServer, server: str, login: str = "", tls: ssl.SSLContext | None = None) -> Pool:
    return Pool(Route(Origin.of(server), Origin.of(f"socks5://{login}127.0.0.1:{proxy.port}"), tls))


async def ask(pool: Pool) -> bytes:
    try:
        return (await pool.send(REQUEST, b"", 5.0)).body
    finally:
        await pool.close()


async def test_the_proxy_resolves_the_name_of_the_server() -> None:
    name = "only-the-proxy-knows.invalid"
    async with Listener() as server, SocksServer(names={name: "127.0.0.1"}) as proxy:
        assert await ask(through(proxy, f"http://{name}:{server.port}")) == b"hello"
        assert proxy.asked == [(3, name, server.port)]
        assert server.heads[0].startswith(b"GET / HTTP/1.1\r\n"), "a tunnel does not change requests"


async def test_tls_goes_through_the_proxy_to_the_server(
    server_tls: ssl.SSLContext, trust: ssl.SSLContext
) -> None:
    async with Listener(tls=server_tls) as server, SocksServer() as proxy:
        assert await ask(through(proxy, server.url, tls=trust)) == b"hello"
        assert proxy.asked == [(1, "127.0.0.1", server.port)]


async def test_an_ipv6_address_is_sent_as_one() -> None:
    async with Listener() as server, SocksServer(names={"fd00::1": "127.0.0.1"}) as proxy:
        assert await ask(through(proxy, f"http://[fd00::1]:{server.port}")) == b"hello"
        assert proxy.asked == [(4, "fd00::1", server.port)]


async def test_the_user_of_the_url_is_authenticated() -> None:
    async with Listener() as server, SocksServer(user=("us@er", "p:ss")) as proxy:
        assert await ask(through(proxy, server.url, "us%40er:p%3Ass@")) == b"hello"
        assert proxy.users == [("us@er", "p:ss")]


async def test_a_proxy_that_needs_no_user_is_used_with_one() -> None:
    async with Listener() as server, SocksServer() as proxy:
        assert await ask(through(proxy, server.url, "user:secret@")) == b"hello"
        assert proxy.users == []


@pytest.mark.parametrize(
    ("proxy", "login", "reason"),
    [
        (SocksServer(reply=1), "", "general SOCKS server failure"),
        (SocksServer(reply=2), "", "connection not allowed by ruleset"),
        (SocksServer(reply=4), "", "host unreachable"),
        (SocksServer(reply=5), "", "connection refused"),
        (SocksServer(reply=99), "", "SOCKS5 reply 99"),
        (SocksServer(user=("u", "p")), "", "it requires authentication"),
        (SocksServer(user=("u", "p")), "u:canary@", "user name or password not accepted"),
        (SocksServer(user=("u", "p")), f"u:{'canary' * 50}@", "a password of 1 to 255 bytes, got 300"),
        (SocksServer(user=("u", "p")), "u@", "a password of 1 to 255 bytes, got 0"),
        (SocksServer(greeting=b"\x05\x07"), "u:p@", "no acceptable authentication method"),
        (SocksServer(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n"), "", "not a SOCKS5 proxy.* 0x48"),
        (SocksServer(greeting=b"\x04\x5b"), "", "not a SOCKS5 proxy.* 0x04"),
    ],
)
async def test_a_refusal_says_why_without_the_password(proxy: SocksServer, login: str, reason: str) -> None:
    async with proxy:
        pool = through(proxy, "http://server.example:80", login)
        with pytest.raises(ProxyRefused, match=reason) as caught:
            await ask(pool)
        assert "canary" not in str(caught.value)
        assert pool.statistics().sockets == 0


@pytest.mark.parametrize("greeting", [b"", b"\x05"])
async def test_a_proxy_that_hangs_up_is_unreachable(greeting: bytes) -> None:
    async with SocksServer(greeting=greeting) as proxy:
        with pytest.raises(Unreachable) as caught:
            await ask(through(proxy, "http://server.example"))
        assert caught.value.proxy


async def test_a_name_that_is_too_long_for_socks_is_refused() -> None:
    async with SocksServer() as proxy:
        with pytest.raises(ProxyRefused, match="host name of 1 to 255 bytes"):
            await ask(through(proxy, f"http://{'a' * 300}.example"))


@virtual_time
async def test_a_proxy_that_does_not_answer_runs_out_of_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = Origin("socks5h", "127.0.0.1", silent.getsockname()[1])
        pool = Pool(Route(Origin.of("http://server.example"), proxy))
        with pytest.raises(ConnectTimeout):
            await pool.send(REQUEST, b"", 60.0)
        await pool.close()
        assert pool.statistics().sockets == 0


async def test_a_request_that_is_cancelled_during_the_negotiation_leaves_no_socket(
    trust: ssl.SSLContext,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = Origin("socks5", "127.0.0.1", silent.getsockname()[1])
        for turns in range(8):
            pool = Pool(Route(Origin.of("https://server.example"), proxy, trust))
            request = asyncio.ensure_future(pool.send(REQUEST, b"", 60.0))
            for _ in range(turns):
                await asyncio.sleep(0)
            request.cancel()
            with pytest.raises((asyncio.CancelledError, ExchangeFailed)):
                await request
            await pool.close()
            assert pool.statistics().sockets == 0


async def test_a_client_uses_the_proxy_url_of_its_kubeconfig() -> None:
    async def version(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b'{"major":"1","minor":"34","gitVersion":"v1.34.0"}'
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(body) + body)

    async with Listener(version) as server, SocksServer(names={"api": "127.0.0.1"}) as proxy:
        cluster = {"server": f"http://api:{server.port}", "proxy-url": f"socks5://127.0.0.1:{proxy.port}"}
        config = config_from_kubeconfig(
            {
                "current-context": "one",
                "clusters": [{"name": "one", "cluster": cluster}],
                "contexts": [{"name": "one", "context": {"cluster": "one"}}],
            }
        )
        async with Client(config) as client:
            assert (await client.server_version()).git_version == "v1.34.0"
        assert proxy.asked == [(3, "api", server.port)]


async def test_a_client_names_a_proxy_that_refuses() -> None:
    async with SocksServer(reply=2) as proxy:
        config = ClusterConfig("http://api", proxy_url=f"socks5://u:canary@127.0.0.1:{proxy.port}")
        async with Client(config) as client:
            with pytest.raises(
                ConnectionFailed, match="proxy to http://api refused: connection not allowed"
            ) as caught:
                await client.server_version()
        assert "canary" not in str(caught.value)
