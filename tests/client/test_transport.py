"""What the wire can do to us, and that the client stays usable after each of it."""

import asyncio
import gzip
import logging
from pathlib import Path

import msgspec
import pytest

from kubewright.client import (
    Client,
    ClusterConfig,
    ConfigError,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    Impersonation,
    NotFound,
    RateLimit,
    ServiceUnavailable,
    ThrottleStatistics,
    TimedOut,
    TooManyRequests,
    Unauthorized,
    UnexpectedResponse,
)
from kubewright.metrics import Registry
from kubewright.testing.virtual_time import virtual_time

from .conftest import Exchange, Handler, Serve
from .scripted import MAPS, OBJECT, aborted, busy, cut_in_half, found, in_turn, serving

pytestmark = pytest.mark.usefixtures("transport")


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


BAD = [
    ("a body cut in half", cut_in_half, ConnectionLost, "in the middle of the response"),
    ("JSON cut in half", ended_too_early, UnexpectedResponse, "not a whole JSON object"),
    ("200 with HTML", html, UnexpectedResponse, "text/html; charset=utf-8, which is not Kubernetes' API"),
    ("404 with HTML", html_404, UnexpectedResponse, "HTTP 404 with text/html"),
    ("another API", other_json, UnexpectedResponse, "no Kubernetes object"),
    ("a redirect", redirect, UnexpectedResponse, "HTTP 302"),
    ("a server that is no web server", no_http, ConnectionFailed, "does not respond in HTTP"),
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


async def test_an_unreachable_server_fails_at_once(serve: Serve) -> None:
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
        with pytest.raises(TimedOut, match="did not respond within 7 s"):
            await client.get(MAPS, "a", "default")
        assert 6.5 <= asyncio.get_running_loop().time() - started <= 8.5


async def test_a_read_is_repeated_when_the_connection_breaks(serve: Serve) -> None:
    server = await serve(in_turn(aborted, cut_in_half, found))
    async with Client(ClusterConfig(server.url)) as client:
        assert await client.get(MAPS, "a", "default") == OBJECT
    assert len(server.received) == 3


async def test_a_write_with_an_unknown_outcome_is_sent_once(serve: Serve) -> None:
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
async def test_retry_after_is_honoured() -> None:
    async with serving(in_turn(busy(429, 3), busy(503, 4), found)) as (client, server):
        started = asyncio.get_running_loop().time()
        await client.create(OBJECT, kind=MAPS)
        assert asyncio.get_running_loop().time() - started >= 7
        assert len(server.received) == 3
        assert client.throttling == ThrottleStatistics(waiting=0, seconds=pytest.approx(7))


@virtual_time
async def test_waiting_ends_with_the_time_out() -> None:
    async with serving(busy(503, 4), timeout=10.0) as (client, server):
        with pytest.raises(ServiceUnavailable) as caught:
            await client.get(MAPS, "a", "default")
        assert caught.value.retry_after == 4
        assert len(server.received) == 3


async def test_an_eviction_denied_by_a_budget_is_not_retried(serve: Serve) -> None:
    server = await serve(busy(429, 10))
    async with Client(ClusterConfig(server.url)) as client:
        with pytest.raises(TooManyRequests):
            await client.evict("web", "default")
    assert len(server.received) == 1


async def test_an_error_page_of_a_gateway_is_service_unavailable(serve: Serve) -> None:
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


async def test_connections_are_reused(serve: Serve) -> None:
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


async def test_unauthorized_errors_mention_missing_credentials(serve: Serve) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.refuse(401, "Unauthorized", "Unauthorized")

    server = await serve(handler)
    async with Client(ClusterConfig(server.url, source="my file")) as client:
        with pytest.raises(Unauthorized, match="my file holds no credentials"):
            await client.get(MAPS, "a", "default")


async def test_impersonation_is_in_the_headers(serve: Serve) -> None:
    server = await serve(found)
    identity = Impersonation("joe", uid="7", groups=("a",), extra={"example.com/scope": ("x",)})
    async with Client(ClusterConfig(server.url, token="t", impersonate=identity)) as client:
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


async def test_a_client_that_is_not_open_explains_how_to_open_it() -> None:
    with pytest.raises(ConfigError, match="async with Client"):
        await Client(ClusterConfig("http://127.0.0.1:1")).get(MAPS, "a", "default")


@pytest.mark.parametrize("server", ["", "k8s", "ftp://x", "http://", "http://[half"])
def test_a_server_that_is_not_a_url_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        Client(ClusterConfig(server))


async def test_a_path_before_the_api_is_kept(serve: Serve) -> None:
    server = await serve(found)
    async with Client(ClusterConfig(f"{server.url}/k8s/clusters/c-1/")) as client:
        await client.get(MAPS, "a", "default")
    assert server.received[0].target == "/k8s/clusters/c-1/api/v1/namespaces/default/configmaps/a"


async def test_compressed_responses_are_decompressed(serve: Serve) -> None:
    async def packed(exchange: Exchange) -> None:
        assert exchange.headers["accept-encoding"] == "gzip"
        exchange.answer(gzip.compress(msgspec.json.encode(OBJECT)), headers={"Content-Encoding": "gzip"})

    server = await serve(packed)
    async with Client(ClusterConfig(server.url, compression=True)) as client:
        assert await client.get(MAPS, "a", "default") == OBJECT


async def test_a_name_and_password_in_the_server_url_are_sent_to_it_only(serve: Serve) -> None:
    server = await serve(in_turn(found, html))
    async with Client(ClusterConfig(server.url.replace("//", "//joe:canary@"))) as client:
        await client.get(MAPS, "a", "default")
        with pytest.raises(UnexpectedResponse) as caught:
            await client.get(MAPS, "a", "default")
    assert server.received[0].headers["authorization"] == "Basic am9lOmNhbmFyeQ=="
    assert "canary" not in str(caught.value)


async def test_a_header_with_a_line_break_is_not_sent(serve: Serve) -> None:
    server = await serve(found)
    identity = Impersonation("joe\r\nImpersonate-Group: system:masters")
    async with Client(ClusterConfig(server.url, impersonate=identity)) as client:
        with pytest.raises(ConfigError, match="header Impersonate-User contains a line break"):
            await client.get(MAPS, "a", "default")
    assert not server.received


async def test_a_request_refused_after_the_credential_was_renewed_goes_out_with_the_new_one(
    serve: Serve, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    both_asked, one_is_through = asyncio.Event(), asyncio.Event()
    with_old = 0

    async def particular(exchange: Exchange) -> None:
        nonlocal with_old
        if exchange.headers["authorization"] == "Bearer new":
            exchange.answer(OBJECT)
            return
        with_old += 1
        if with_old == 2:
            token.write_text("new")
            both_asked.set()
            await one_is_through.wait()
        await both_asked.wait()
        exchange.refuse(401, "Unauthorized")

    server = await serve(particular)
    async with Client(ClusterConfig(server.url, token_file=str(token))) as client:

        async def ask() -> None:
            await client.get(MAPS, "a", "default")
            one_is_through.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
            group.create_task(ask())
    assert [it.headers["authorization"] for it in server.received] == ["Bearer old"] * 2 + ["Bearer new"] * 2
