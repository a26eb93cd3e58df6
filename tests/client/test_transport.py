"""What the wire can do to us, and that the client stays usable after each of it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.api import Kind
from kubewright.client import (
    Client,
    ClusterConfig,
    ConfigError,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    Expired,
    Impersonation,
    InternalError,
    NotFound,
    RateLimit,
    ServiceUnavailable,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    UnexpectedAnswer,
)
from kubewright.metrics import Registry
from kubewright.testing.authority import Authority
from kubewright.testing.virtual_time import virtual_time

from .conftest import Exchange, Handler, Loopback, Serve, server_context

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default", "uid": "u"},
}


@asynccontextmanager
async def serving(handler: Handler, **options: object) -> AsyncIterator[tuple[Client, Loopback]]:
    """Run a server and a client for it inside one loop, also one with virtual time."""
    server = Loopback(handler)
    await server.start()
    try:
        async with Client(ClusterConfig(server.url), **options) as client:  # pyright: ignore[reportArgumentType]
            yield client, server
    finally:
        await server.stop()


def in_turn(*handlers: Handler) -> Handler:
    """Answer each request by the next handler, and all further ones by the last."""
    turns = iter(handlers)
    last = handlers[-1]

    async def handler(exchange: Exchange) -> None:
        await next(turns, last)(exchange)

    return handler


async def found(exchange: Exchange) -> None:
    exchange.answer(OBJECT)


async def aborted(exchange: Exchange) -> None:
    exchange.abort()


async def cut_in_half(exchange: Exchange) -> None:
    body = msgspec.json.encode(OBJECT)
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    exchange.send(f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:20])
    exchange.close()


async def ended_too_early(exchange: Exchange) -> None:
    exchange.answer(msgspec.json.encode(OBJECT)[:20])


async def html(exchange: Exchange) -> None:
    exchange.answer(b"<html>log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})


async def html_404(exchange: Exchange) -> None:
    exchange.answer(b"<html>nginx</html>", 404, {"Content-Type": "text/html"})


async def other_json(exchange: Exchange) -> None:
    exchange.answer({"hello": "world"})


async def redirect(exchange: Exchange) -> None:
    exchange.answer(b"", 302, {"Location": "https://elsewhere.example.com/", "Content-Type": "text/html"})


async def no_http(exchange: Exchange) -> None:
    exchange.send(b"SSH-2.0-OpenSSH_9.6\r\n")
    exchange.close()


def busy(code: int, seconds: int) -> Handler:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(code, "", "wait", {"Retry-After": str(seconds)})

    return handler


BAD = [
    ("a body cut in half", cut_in_half, ConnectionLost, "in the middle of the answer"),
    ("JSON cut in half", ended_too_early, UnexpectedAnswer, "not a whole JSON object"),
    ("200 with HTML", html, UnexpectedAnswer, "text/html; charset=utf-8, which is not Kubernetes' API"),
    ("404 with HTML", html_404, UnexpectedAnswer, "HTTP 404 with text/html"),
    ("another API", other_json, UnexpectedAnswer, "no Kubernetes object"),
    ("a redirect", redirect, UnexpectedAnswer, "HTTP 302"),
    ("a server that is no web server", no_http, ConnectionFailed, "does not answer in HTTP"),
    ("a connection that is reset", aborted, ConnectionLost, "broke"),
]


@pytest.mark.parametrize(("handler", "error", "message"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
async def test_each_bad_answer_is_one_clear_error_and_the_client_stays_usable(
    serve: Serve, handler: Handler, error: type[Exception], message: str
) -> None:
    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(error, match=message) as caught:
            await client.create(OBJECT, kind=MAPS)
        assert "\n" not in str(caught.value)
        assert "configmaps default/a" in str(caught.value)
        server.handler = found
        assert (await client.get(MAPS, "a", "default")) == OBJECT


async def test_a_server_that_is_gone_fails_at_once(serve: Serve) -> None:
    server = await serve(found)
    await server.stop()
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(ConnectionFailed, match="cannot be reached: Connection refused") as caught:
            await client.get(MAPS, "a", "default")
    assert not caught.value.sent


@virtual_time
async def test_a_server_that_does_not_answer_runs_into_the_time_out() -> None:
    async def silent(exchange: Exchange) -> None:
        await asyncio.sleep(10_000)

    async with serving(silent, timeout=7.0) as (client, _):
        started = asyncio.get_running_loop().time()
        with pytest.raises(TimedOut, match="did not answer within 7 s"):
            await client.get(MAPS, "a", "default")
        assert 6.5 <= asyncio.get_running_loop().time() - started <= 8.5


async def test_a_read_is_repeated_when_the_connection_breaks(serve: Serve) -> None:
    server = await serve(in_turn(aborted, cut_in_half, found))
    async with Client(ClusterConfig(server.url)) as client:
        assert await client.get(MAPS, "a", "default") == OBJECT
    assert len(server.received) == 3


async def test_a_write_whose_fate_is_unknown_is_sent_once(serve: Serve) -> None:
    server = await serve(in_turn(aborted, found))
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.create(OBJECT, kind=MAPS)
        assert caught.value.sent
        for unlocked in (client.delete(MAPS, "a", "default"), client.replace(OBJECT, kind=MAPS)):
            server.handler = in_turn(aborted, found)
            with pytest.raises(ConnectionLost):
                await unlocked
    assert [exchange.method for exchange in server.received] == ["POST", "DELETE", "PUT"]


async def test_a_write_with_a_precondition_is_repeated(serve: Serve) -> None:
    server = await serve(in_turn(aborted, found))
    async with Client(ClusterConfig(server.url)) as client:
        await client.delete(MAPS, "a", "default", uid="u")
    assert len(server.received) == 2


@virtual_time
async def test_the_server_is_given_the_time_it_asks_for() -> None:
    async with serving(in_turn(busy(429, 3), busy(503, 4), found)) as (client, server):
        started = asyncio.get_running_loop().time()
        await client.create(OBJECT, kind=MAPS)
        assert asyncio.get_running_loop().time() - started >= 7
        assert len(server.received) == 3


@virtual_time
async def test_waiting_ends_with_the_time_out() -> None:
    async with serving(busy(503, 4), timeout=10.0) as (client, server):
        with pytest.raises(ServiceUnavailable) as caught:
            await client.get(MAPS, "a", "default")
        assert caught.value.retry_after == 4
        assert len(server.received) == 3


async def test_an_eviction_that_the_budget_forbids_comes_back_at_once(serve: Serve) -> None:
    server = await serve(busy(429, 10))
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(TooManyRequests):
            await client.evict("web", "default")
    assert len(server.received) == 1


async def test_a_gateways_error_page_is_a_server_that_is_unavailable(serve: Serve) -> None:
    async def gateway(exchange: Exchange) -> None:
        exchange.answer(b"<html>", 503, {"Content-Type": "text/html"})

    server = await serve(gateway)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(ServiceUnavailable):
            await client.get(MAPS, "a", "default")


async def test_plain_text_is_shown(serve: Serve) -> None:
    async def text(exchange: Exchange) -> None:
        exchange.answer(b"404 page not found\n", 404, {"Content-Type": "text/plain"})

    server = await serve(text)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(NotFound, match="404 page not found"):
            await client.get(MAPS, "a", "default")


async def test_connections_are_kept(serve: Serve) -> None:
    server = await serve(found)
    async with Client(ClusterConfig(server.url)) as client:
        for _ in range(5):
            await client.get(MAPS, "a", "default")
    assert server.connections == 1


async def test_a_refused_token_is_replaced_once(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    async def handler(exchange: Exchange) -> None:
        if exchange.headers["authorization"] == "Bearer new":
            exchange.answer(OBJECT)
        else:
            exchange.refuse(401, "Unauthorized", "Unauthorized")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url, token_file=str(file))) as client:
        with pytest.raises(Unauthorized, match="are not accepted"):
            await client.create(OBJECT, kind=MAPS)
        file.write_text("new")
        await client.create(OBJECT, kind=MAPS)
    assert len(server.received) == 3


async def test_without_credentials_a_refusal_says_so(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(401, "Unauthorized", "Unauthorized")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url, source="my file")) as client:
        with pytest.raises(Unauthorized, match="my file holds no credentials"):
            await client.get(MAPS, "a", "default")


async def test_impersonation_is_in_the_headers(serve: Serve) -> None:
    server = await serve(found)
    whom = Impersonation("joe", uid="7", groups=("a",), extra={"example.com/scope": ("x",)})
    async with Client(ClusterConfig(server.url, token="t", impersonate=whom)) as client:
        await client.get(MAPS, "a", "default")
    headers = server.received[0].headers
    assert headers["authorization"] == "Bearer t"
    assert (headers["impersonate-user"], headers["impersonate-uid"], headers["impersonate-group"]) == (
        "joe",
        "7",
        "a",
    )
    assert headers["impersonate-extra-example.com%2fscope"] == "x"


async def test_warnings_are_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer(OBJECT, headers={"Warning": '299 - "unknown field \\"spec.x\\""'})

    server = await serve(handler)
    with caplog.at_level(logging.WARNING, logger="kubewright.client"):
        async with Client(ClusterConfig(server.url)) as client:
            await client.get(MAPS, "a", "default")
            await client.get(MAPS, "a", "default")
    assert [record.getMessage() for record in caplog.records] == [
        'the API server warns: unknown field "spec.x"'
    ]


async def test_requests_are_counted_by_code(serve: Serve) -> None:
    server = await serve(in_turn(found, busy(409, 0)))
    registry = Registry()
    async with Client(ClusterConfig(server.url), metrics=registry) as client:
        await client.get(MAPS, "a", "default")
        with pytest.raises(Conflict):
            await client.get(MAPS, "a", "default")
    samples = [sample for family in registry.families() for sample in family.samples]
    assert {
        (sample.name, sample.labels["code"], sample.labels["method"], sample.value) for sample in samples
    } == {
        ("rest_client_requests_total", "200", "GET", 1),
        ("rest_client_requests_total", "409", "GET", 1),
    }
    assert samples[0].labels["host"] == f"127.0.0.1:{server.port}"


@virtual_time
async def test_requests_can_be_limited() -> None:
    async with serving(found, rate_limit=RateLimit(rate=1)) as (client, _):
        started = asyncio.get_running_loop().time()
        for _ in range(3):
            await client.get(MAPS, "a", "default")
        assert asyncio.get_running_loop().time() - started >= 2


async def test_a_client_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(ConfigError, match="async with Client"):
        await Client(ClusterConfig("http://127.0.0.1:1")).get(MAPS, "a", "default")


@pytest.mark.parametrize("server", ["", "k8s", "ftp://x", "http://", "http://[half"])
def test_a_server_that_is_no_url_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        Client(ClusterConfig(server))


async def test_a_path_before_the_api_is_kept(serve: Serve) -> None:
    server = await serve(found)
    async with Client(ClusterConfig(f"{server.url}/k8s/clusters/c-1/")) as client:
        await client.get(MAPS, "a", "default")
    assert server.received[0].target == "/k8s/clusters/c-1/api/v1/namespaces/default/configmaps/a"


# watches


def event(kind: str, version: int, **more: object) -> bytes:
    meta = {"name": "a", "namespace": "default", "resourceVersion": str(version)}
    return msgspec.json.encode({"type": kind, "object": {**OBJECT, "metadata": meta, **more}}) + b"\n"


async def watched(client: Client) -> list[tuple[str, str]]:
    return [(event.type, event.object.meta.resource_version) async for event in client.watch(MAPS)]


async def test_a_watch_ends_where_the_server_ends_it(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        lines = event("ADDED", 1) + event("MODIFIED", 2) + event("BOOKMARK", 3)
        for start in range(0, len(lines), 17):
            exchange.chunk(lines[start : start + 17])
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        assert await watched(client) == [("ADDED", "1"), ("MODIFIED", "2"), ("BOOKMARK", "3")]


async def test_an_event_of_five_megabytes_arrives(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(event("ADDED", 1, data={"x": "y" * 5_000_000}))
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        assert await watched(client) == [("ADDED", "1")]


async def test_a_version_too_old_is_expired(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        status = {
            "kind": "Status",
            "code": 410,
            "reason": "Expired",
            "message": "too old resource version: 1 (9)",
        }
        exchange.chunk(msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n")
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Expired, match="watch configmaps: too old resource version"):
            await watched(client)


async def test_any_other_error_in_a_stream_is_raised_too(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is gone"}}\n')
        exchange.send(b"0\r\n\r\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(InternalError, match="etcd is gone"):
            await watched(client)


async def test_a_watch_that_is_refused_is_an_error_like_any_other(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(410, "Expired", "too old")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(Expired):
            await watched(client)


async def half_an_event(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    exchange.send(event("ADDED", 1) + b'{"type":"ADD')
    exchange.close()


async def broken_chunks(exchange: Exchange) -> None:
    exchange.begin_chunks()
    exchange.chunk(event("ADDED", 1))
    await exchange.writer.drain()
    exchange.abort()


@pytest.mark.parametrize("handler", [half_an_event, broken_chunks])
async def test_a_stream_that_breaks_is_no_end(serve: Serve, handler: Handler) -> None:
    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(ConnectionLost):
            await watched(client)


async def test_a_line_that_is_no_event_is_said(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(b"<html>\n")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(UnexpectedAnswer, match="a line of the stream is no event"):
            await watched(client)


async def silence(exchange: Exchange) -> None:
    exchange.begin_chunks()
    await asyncio.sleep(100_000)


async def silence_after_a_bookmark(exchange: Exchange) -> None:
    exchange.begin_chunks()
    exchange.chunk(event("BOOKMARK", 1))
    await asyncio.sleep(100_000)


@pytest.mark.parametrize(("handler", "seconds"), [(silence, 415), (silence_after_a_bookmark, 180)])
def test_a_stream_that_stalls_is_noticed(handler: Handler, seconds: int) -> None:
    @virtual_time
    async def scenario() -> None:
        async with serving(handler) as (client, _):
            started = asyncio.get_running_loop().time()
            with pytest.raises(TimedOut, match="silent"):
                async for _ in client.watch(MAPS, timeout=400):
                    pass
            assert seconds - 1 <= asyncio.get_running_loop().time() - started <= seconds + 2

    scenario()


async def test_leaving_a_watch_closes_its_connection(serve: Serve) -> None:
    closed = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.begin_chunks()
        exchange.chunk(event("ADDED", 1))
        await exchange.writer.drain()
        try:
            while True:
                exchange.chunk(b"\n")
                await exchange.writer.drain()
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    server = await serve(handler)
    async with Client(ClusterConfig(server.url)) as client:
        events = client.watch(MAPS)
        assert (await anext(events)).type == "ADDED"
        await events.aclose()
        async with asyncio.timeout(5):
            await closed.wait()


# TLS


def expired_certificate(name: str) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=9))
        .not_valid_after(datetime.now(UTC) - timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


async def test_the_clusters_authority_is_trusted_and_no_other(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    async with Client(ClusterConfig(server.url, ca_data=authority.pair.certificate)) as client:
        await client.get(MAPS, "a", "default")
    async with Client(ClusterConfig(server.url, ca_data=Authority().pair.certificate)) as client:
        with pytest.raises(ConnectionFailed, match="is not trusted"):
            await client.get(MAPS, "a", "default")
    async with Client(ClusterConfig(server.url, insecure=True)) as client:
        await client.get(MAPS, "a", "default")


async def test_a_client_can_be_opened_again(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    client = Client(ClusterConfig(server.url, ca_data=authority.pair.certificate))
    for _ in range(2):
        async with client:
            assert await client.get(MAPS, "a", "default") == OBJECT


async def test_another_name_can_be_expected_of_the_server(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.serving("api", hosts=["k8s.internal"])
    server = await serve(found, server_context(pair.certificate, pair.key, tmp_path))
    async with Client(ClusterConfig(server.url, ca_data=authority.pair.certificate)) as client:
        with pytest.raises(ConnectionFailed, match=r"IP address mismatch|not valid for"):
            await client.get(MAPS, "a", "default")
    config = ClusterConfig(server.url, ca_data=authority.pair.certificate, tls_server_name="k8s.internal")
    async with Client(config) as client:
        await client.get(MAPS, "a", "default")


async def test_a_servers_expired_certificate_is_called_expired(serve: Serve, tmp_path: Path) -> None:
    certificate, key = expired_certificate("api")
    server = await serve(found, server_context(certificate, key, tmp_path))
    config = ClusterConfig(server.url, ca_data=certificate, tls_server_name="localhost")
    async with Client(config) as client:
        with pytest.raises(ConnectionFailed, match="has expired"):
            await client.get(MAPS, "a", "default")


async def test_our_own_expired_certificate_is_called_expired(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    async def refusing(exchange: Exchange) -> None:
        exchange.refuse(401, "Unauthorized", "Unauthorized")

    pair = authority.serving("api", hosts=["127.0.0.1"])
    server = await serve(refusing, server_context(pair.certificate, pair.key, tmp_path))
    certificate, key = expired_certificate("me")
    config = ClusterConfig(
        server.url, ca_data=authority.pair.certificate, client_cert_data=certificate, client_key_data=key
    )
    async with Client(config) as client:
        with pytest.raises(Unauthorized, match=r"the client certificate of .* expired on 20"):
            await client.get(MAPS, "a", "default")


async def test_speaking_tls_to_a_plain_server_is_explained() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(ClusterConfig(f"https://127.0.0.1:{port}", insecure=True)) as client:
        with pytest.raises(ConnectionFailed, match="does not speak TLS"):
            await client.get(MAPS, "a", "default")


BAD_PEM = [
    ({"ca_data": b"canary"}, "certificate authority"),
    ({"ca_data": b"\xff"}, "certificate authority"),
    (
        {"insecure": True, "client_cert_data": b"canary", "client_key_data": b"canary"},
        "client certificate and key",
    ),
]


@pytest.mark.parametrize(("options", "message"), BAD_PEM)
async def test_what_is_no_pem_is_refused_unseen(options: dict[str, bytes], message: str) -> None:
    async with Client(ClusterConfig("https://127.0.0.1:1", **options)) as client:  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError, match=message) as caught:
            await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)


# proxies


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
            with pytest.raises(ConnectionFailed, match=r"the proxy to .* refused with HTTP 407") as caught:
                await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)


async def test_a_proxy_that_is_gone_is_named(serve: Serve) -> None:
    server = await serve(found)
    await server.stop()
    config = ClusterConfig(
        "https://k8s.example.com", insecure=True, proxy_url=f"http://u:canary@127.0.0.1:{server.port}"
    )
    async with Client(config) as client:
        with pytest.raises(ConnectionFailed, match=r"the proxy to .* cannot be reached") as caught:
            await client.get(MAPS, "a", "default")
    assert "canary" not in str(caught.value)
