"""HTTP as clients speak it: kept connections, pipelines, streams, limits, and nonsense."""

import asyncio
import json
import resource
from collections.abc import Iterator

import pytest
from devserver_http import Http
from http_wire import Wire

from kubewright.devserver import Server
from kubewright.devserver.front import MAX_BODY

MANY_FILES = 4096
P = "/api/v1/namespaces/default/configmaps"


async def test_a_connection_serves_many_requests(http: Http) -> None:
    wire = await http.open()
    for _ in range(3):
        wire.send("GET", "/livez")
        assert (await wire.reply()).body == b"ok"


async def test_pipelined_requests_are_answered_in_order(http: Http) -> None:
    wire = await http.open()
    body = json.dumps({"metadata": {"name": "piped"}}).encode()
    wire.send("GET", "/livez")
    wire.send("POST", P, body, {"Content-Type": "application/json"})
    wire.send("GET", f"{P}/piped")
    wire.send("GET", f"{P}/nope")
    assert [(await wire.reply()).status for _ in range(4)] == [200, 201, 200, 404]


async def test_a_long_pipeline_is_held_back_not_lost(http: Http) -> None:
    wire = await http.open()
    for index in range(100):
        wire.send("PATCH", f"{P}/nope{index}", b"{}", {"Content-Type": "application/merge-patch+json"})
    answers = [await wire.reply() for _ in range(100)]
    assert [answer.json()["details"]["name"] for answer in answers] == [
        f"nope{index}" for index in range(100)
    ]


async def test_a_body_may_come_in_chunks(http: Http) -> None:
    wire = await http.open()
    head = f"POST {P} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.writer.write(head.encode())
    for piece in (b'{"metadata":', b'{"name":"chunked"}}'):
        wire.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await wire.writer.drain()
    wire.writer.write(b"0\r\n\r\n")
    assert (await wire.reply()).status == 201


async def test_a_client_may_ask_before_it_sends_the_body(http: Http) -> None:
    wire = await http.open()
    body = b'{"metadata":{"name":"asked"}}'
    head = (
        f"POST {P} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    wire.writer.write(head.encode())
    assert (await wire.head())[0] == 100
    wire.writer.write(body)
    assert (await wire.reply()).status == 201


async def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(http: Http) -> None:
    wire = await http.open()
    head = f"POST {P} HTTP/1.1\r\nHost: t\r\nContent-Length: {MAX_BODY + 1}\r\nExpect: 100-continue\r\n\r\n"
    wire.writer.write(head.encode())
    reply = await wire.reply()
    assert (reply.status, reply.json()["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_that_grows_too_large_is_refused_and_not_kept(http: Http) -> None:
    wire = await http.open()
    head = f"POST {P} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.writer.write(head.encode())
    piece = b" " * 65536
    for _ in range(MAX_BODY // len(piece) + 2):
        wire.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    wire.writer.write(b"0\r\n\r\n")
    assert (await wire.reply()).status == 413


async def test_nonsense_is_answered_and_the_server_stays_up(http: Http) -> None:
    for nonsense in (b"\x16\x03\x01 nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        wire = await http.open()
        wire.writer.write(nonsense)
        assert (await wire.reader.read()).startswith(b"HTTP/1.1 400")
    assert (await http.request("GET", "/livez")).status == 200


async def test_headers_are_bounded(http: Http) -> None:
    wire = await http.open()
    wire.writer.write(b"GET /livez HTTP/1.1\r\nHost: t\r\n")
    for index in range(20):
        wire.writer.write(b"X-%d: %b\r\n" % (index, b"a" * 65536))
    wire.writer.write(b"\r\n")
    assert (await wire.head())[0] == 431


async def test_a_connection_closes_when_the_client_wants_it(http: Http) -> None:
    wire = await http.open()
    wire.send("GET", "/livez", headers={"Connection": "close"})
    reply = await wire.reply()
    assert reply.headers["connection"] == "close"
    assert await wire.reader.read() == b""


async def test_an_upgrade_nobody_offers_is_answered_plainly(http: Http) -> None:
    wire = await http.open()
    wire.send("GET", "/livez", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert (await wire.reply()).body == b"ok"


async def test_a_watch_leaves_the_connection_usable(http: Http) -> None:
    wire = await http.open()
    wire.send("GET", f"{P}?watch=1&timeoutSeconds=1&resourceVersion=0")
    assert (await wire.reply()).status == 200
    wire.send("GET", "/livez")
    assert (await wire.reply()).body == b"ok"


async def test_clients_that_go_away_leave_nothing_behind(server: Server, http: Http) -> None:
    await http.request("GET", "/livez")
    before = server.statistics()
    wires = [await http.open() for _ in range(20)]
    for wire in wires:
        wire.send("GET", f"{P}?watch=1")
        await wire.head()
    assert server.statistics().tasks == before.tasks + 20
    for wire in wires:
        await wire.close()
    await until(lambda: server.statistics() == before)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Allow as many open files as a thousand connections have ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < MANY_FILES:
        pytest.skip(f"only {hard} files may be open at once")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY_FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_thousand_idle_connections_do_no_harm(server: Server, http: Http) -> None:
    wires: list[Wire] = [await http.open() for _ in range(100)]
    # Most say nothing at all: not even who they are.
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(900)]
    await until(lambda: server.statistics().connections >= len(wires))
    assert (await http.request("GET", "/livez")).status == 200
    for _, writer in silent:
        writer.close()
    for _, writer in silent:
        await writer.wait_closed()


async def test_stopping_ends_open_watches() -> None:
    async with Server() as server, Http(server) as http:
        wire = await http.open()
        wire.send("GET", f"{P}?watch=1")
        await wire.head()
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(wire.reader.read())
            await server.__aexit__(None, None, None)
            await stopped


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)
