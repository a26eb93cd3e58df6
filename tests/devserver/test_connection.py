"""The embedded server behind HTTP: pipelines of writes, bodies as large as the API takes, watches."""

import asyncio
import json

from devserver_http import Http

from kubewright.devserver import Server
from kubewright.devserver.listener import MAX_BODY
from kubewright.testing import eventually

P = "/api/v1/namespaces/default/configmaps"


async def test_pipelined_requests_are_answered_in_order(http: Http) -> None:
    wire = await http.open()
    body = json.dumps({"metadata": {"name": "piped"}}).encode()
    wire.send("GET", "/livez")
    wire.send("POST", P, body, {"Content-Type": "application/json"})
    wire.send("GET", f"{P}/piped")
    wire.send("GET", f"{P}/nope")
    assert [(await wire.reply()).status for _ in range(4)] == [200, 201, 200, 404]


async def test_a_long_pipeline_is_throttled_and_not_lost(http: Http) -> None:
    wire = await http.open()
    for index in range(100):
        wire.send("PATCH", f"{P}/nope{index}", b"{}", {"Content-Type": "application/merge-patch+json"})
    answers = [await wire.reply() for _ in range(100)]
    assert [answer.json()["details"]["name"] for answer in answers] == [
        f"nope{index}" for index in range(100)
    ]


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


async def test_a_watch_leaves_the_connection_usable(http: Http) -> None:
    wire = await http.open()
    wire.send("GET", f"{P}?watch=1&timeoutSeconds=1&resourceVersion=0")
    assert (await wire.reply()).status == 200
    wire.send("GET", "/livez")
    assert (await wire.reply()).body == b"ok"


async def test_disconnected_clients_leave_no_watch(server: Server, http: Http) -> None:
    await http.request("GET", "/livez")
    before = server.statistics()
    wires = [await http.open() for _ in range(20)]
    for wire in wires:
        wire.send("GET", f"{P}?watch=1")
        await wire.head()
    assert server.statistics().tasks == before.tasks + 20
    for wire in wires:
        await wire.close()
    await eventually(lambda: server.statistics() == before)


async def test_stopping_ends_open_watches() -> None:
    async with Server() as server, Http(server) as http:
        wire = await http.open()
        wire.send("GET", f"{P}?watch=1")
        await wire.head()
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(wire.reader.read())
            await server.__aexit__(None, None, None)
            await stopped
