import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from http_wire import HttpConnection, connected, without_verification
from prometheus_client.parser import text_string_to_metric_families

from kubewright.api import Forbidden, Status
from kubewright.client import ApiRequest, Client, ClientResponse
from kubewright.http.client import Headers
from kubewright.http.server import Router
from kubewright.metrics import Registry
from kubewright.serving import (
    PROBE_LIMITS,
    BindAddress,
    BindError,
    BoundHttpServer,
    Checks,
    Guard,
    parse_address,
)
from kubewright.serving.certificates import ServingCertificate
from kubewright.serving.metrics_page import MetricsPage
from kubewright.testing.virtual_time import virtual_time

LOOPBACK = BindAddress("127.0.0.1", 0)


@asynccontextmanager
async def asking(server: BoundHttpServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    async with server, connected(server.port, tls) as wire:

        async def ask(path: str, **headers: str) -> tuple[int, str]:
            reply = await wire.ask("GET", path, headers=headers)
            return reply.status, reply.text

        yield ask


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", BindAddress("", 8080)),
        ("127.0.0.1:0", BindAddress("127.0.0.1", 0)),
        ("[::1]:9443", BindAddress("::1", 9443)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_read_as_controller_runtime_takes_them(text: str, address: BindAddress | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8080", "host", ":http", ":70000", "1.2.3.4:"])
def test_an_invalid_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BindError, match='":8080"'):
        parse_address(text)


async def test_a_port_in_use_is_named() -> None:
    async with BoundHttpServer(LOOPBACK, Router([])) as first:
        with pytest.raises(BindError, match=f"cannot listen on 127.0.0.1:{first.port}"):
            async with BoundHttpServer(BindAddress("127.0.0.1", first.port), Router([])):
                pass


async def test_failed_checks_are_reported() -> None:
    checks = Checks("readyz")
    trouble: list[str] = []
    checks.add("caches", lambda: trouble[0] if trouble else None)
    async with asking(BoundHttpServer(LOOPBACK, Router(checks.routes))) as ask:
        assert await ask("/readyz") == (200, "ok")
        assert await ask("/readyz?verbose") == (200, "[+]ping ok\n[+]caches ok\nreadyz check passed\n")
        trouble.append("pods: forbidden")
        status, text = await ask("/readyz")
        assert status == 500
        assert text == "[+]ping ok\n[-]caches failed: pods: forbidden\nreadyz check failed\n"
        assert await ask("/readyz/ping") == (200, "ok")
        assert (await ask("/readyz/caches"))[0] == 500
        assert (await ask("/readyz/nothing"))[0] == 404
        assert (await ask("/readyz?exclude=caches"))[0] == 200
        assert (await ask("/healthz"))[0] == 404


async def test_metrics_are_shown_in_the_text_format() -> None:
    registry = Registry()
    registry.counter("jobs_total", "Jobs done", ("kind",)).labels(kind="a").inc(3)
    registry.gauge("depth", "Now waiting").labels().set(2)
    registry.histogram("seconds", "Time taken", buckets=(1.0, 5.0)).labels().observe(3)
    async with asking(BoundHttpServer(LOOPBACK, Router(MetricsPage(registry).routes))) as ask:
        status, text = await ask("/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["jobs"].type == "counter"
    assert families["jobs"].samples[0].labels == {"kind": "a"}
    assert families["jobs"].samples[0].value == 3
    assert families["depth"].samples[0].value == 2
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families["seconds"].samples
        if sample.name == "seconds_bucket"
    }
    assert buckets == {"1.0": 0, "5.0": 1, "+Inf": 1}
    assert "process_cpu_seconds" in families


class Authority:
    """Answers reviews as a cluster with one user would."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.allowed = True

    async def raw(self, request: ApiRequest) -> ClientResponse:
        self.asked.append(request.resource)
        spec = msgspec.json.decode(request.body)["spec"]
        if request.resource.startswith("tokenreviews"):
            known = spec["token"] == "good"
            status: dict[str, Any] = {"authenticated": known}
            if known:
                status["user"] = {"username": "prometheus", "groups": ["scrapers"]}
        else:
            assert spec["user"] == "prometheus"
            assert spec["groups"] == ["scrapers"]
            assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            status = {"allowed": self.allowed}
        return ClientResponse(201, "Created", Headers(), msgspec.json.encode({"status": status}))


async def test_secure_metrics_review_and_cache_the_access_of_users() -> None:
    authority = Authority()
    page = MetricsPage(Registry(), Guard(cast(Client, authority)))
    certificate = await asyncio.to_thread(ServingCertificate)
    async with asking(
        BoundHttpServer(LOOPBACK, Router(page.routes), tls=certificate.context), without_verification()
    ) as ask:
        assert (await ask("/metrics"))[0] == 401
        assert (await ask("/metrics", Authorization="Basic eA=="))[0] == 401
        assert authority.asked == []
        assert (await ask("/metrics", Authorization="Bearer bad"))[0] == 401
        for _ in range(3):
            assert (await ask("/metrics", Authorization="Bearer good"))[0] == 200
        assert [one.partition(".")[0] for one in authority.asked] == [
            "tokenreviews",
            "tokenreviews",
            "subjectaccessreviews",
        ]


async def test_an_unauthorized_scrape_is_denied() -> None:
    authority = Authority()
    authority.allowed = False
    page = MetricsPage(Registry(), Guard(cast(Client, authority)))
    async with asking(BoundHttpServer(LOOPBACK, Router(page.routes))) as ask:
        status, text = await ask("/metrics", Authorization="Bearer good")
    assert (status, text) == (403, "Authorization denied for user prometheus\n")


USERS: dict[str, dict[str, Any]] = {
    "insider": {"username": "anna", "groups": ["scrapers", "staff"]},
    "one-group": {"username": "anna", "groups": ["scrapers,staff"]},
    "other-uid": {"username": "anna", "uid": "scrapers,staff"},
    "restricted": {"username": "anna", "groups": ["scrapers", "staff"], "extra": {"scopes": ["none"]}},
}


class Mute:
    """A cluster that does not let us ask about others."""

    async def raw(self, request: ApiRequest) -> ClientResponse:
        raise Forbidden(Status(reason="Forbidden", code=403, message="cannot create tokenreviews"))


async def test_scrapes_are_denied_and_logged_while_the_cluster_cannot_authorize_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = MetricsPage(Registry(), Guard(cast(Client, Mute())))
    async with asking(BoundHttpServer(LOOPBACK, Router(page.routes))) as ask:
        assert (await ask("/metrics", Authorization="Bearer known"))[0] == 500
    assert "Cannot authorize a request for /metrics: cannot create tokenreviews" in caplog.text


class Crowd:
    """Answers reviews as a cluster of which one user may read."""

    async def raw(self, request: ApiRequest) -> ClientResponse:
        spec = msgspec.json.decode(request.body)["spec"]
        if request.resource.startswith("tokenreviews"):
            status: dict[str, Any] = {"authenticated": True, "user": USERS[spec["token"]]}
        else:
            status = {"allowed": spec["groups"] == ["scrapers", "staff"] and not spec["extra"]}
        return ClientResponse(201, "Created", Headers(), msgspec.json.encode({"status": status}))


async def test_cached_access_of_one_user_is_not_used_for_another() -> None:
    page = MetricsPage(Registry(), Guard(cast(Client, Crowd())))
    async with asking(BoundHttpServer(LOOPBACK, Router(page.routes))) as ask:
        found = {name: (await ask("/metrics", Authorization=f"Bearer {name}"))[0] for name in USERS}
    assert found == {"insider": 200, "one-group": 403, "other-uid": 403, "restricted": 403}


@pytest.mark.parametrize(
    "path", ["/%6detrics", "/metrics?x=/healthz", "//metrics", "/metrics/", "/a/../metrics"]
)
async def test_no_spelling_of_the_path_bypasses_authorization(path: str) -> None:
    page = MetricsPage(Registry(), Guard(cast(Client, Authority())))
    async with asking(BoundHttpServer(LOOPBACK, Router([*page.routes, *Checks("healthz").routes]))) as ask:
        assert (await ask(path))[0] in (401, 404)


def test_a_certificate_directory_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"tls\.crt"):
        ServingCertificate(tmp_path)


def test_outdated_tls_versions_are_refused() -> None:
    assert ServingCertificate().context.minimum_version == ssl.TLSVersion.TLSv1_2


@virtual_time
async def test_liveness_is_answered_while_300_clients_send_a_byte_a_second() -> None:
    async def drip(wire: HttpConnection) -> None:
        for byte in itertools.chain(b"GET /livez HTTP/1.1\r\nHost: t\r\nX: ", itertools.repeat(0x61)):
            wire.writer.write(bytes([byte]))
            await asyncio.sleep(1.0)

    server = BoundHttpServer(LOOPBACK, Router(Checks("livez").routes), limits=PROBE_LIMITS)
    async with server, asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(connected(server.port)) for _ in range(300)]
        dripping = [group.create_task(drip(wire)) for wire in slow]
        for _ in range(14):
            await asyncio.sleep(1.0)
            async with asyncio.timeout(5.0), connected(server.port) as probe:
                assert (await probe.ask("GET", "/livez")).text == "ok"
        for task in dripping:
            task.cancel()
