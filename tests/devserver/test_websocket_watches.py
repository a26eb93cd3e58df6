"""Watches over WebSocket, compared with what kube-apiserver sends."""

import json
import os
import struct
from typing import Any

import pytest
from devserver_http import Http
from http_wire import HttpConnection

from kubewright.devserver import Server
from kubewright.http.websocket import Opcode, frame, unmasked
from kubewright.testing import eventually

P = "/api/v1/namespaces/default/configmaps"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
    "Origin": "https://test",
}
CLOSED = (Opcode.CLOSE, struct.pack("!H", 1000))


async def watch(
    http: Http, query: str = "", **headers: str | None
) -> tuple[HttpConnection, int, dict[str, str]]:
    """Ask for a watch over a WebSocket; a header that is None is left out."""
    wire = await http.open()
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = {name: value for name, value in {**HANDSHAKE, **changed}.items() if value is not None}
    wire.send("GET", f"{P}?watch=1{query}", headers=sent)
    status, received = await wire.head()
    return wire, status, received


async def receive(wire: HttpConnection) -> tuple[Opcode, bytes]:
    """Read one frame of the server."""
    first, size = await wire.reader.readexactly(2)
    assert first & 0x80
    if size == 126:
        (size,) = struct.unpack("!H", await wire.reader.readexactly(2))
    return Opcode(first & 0x0F), await wire.reader.readexactly(size)


async def receive_event(wire: HttpConnection) -> dict[str, Any]:
    opcode, data = await receive(wire)
    assert opcode is Opcode.TEXT
    assert data.endswith(b"}\n")
    return json.loads(data)


def send(wire: HttpConnection, opcode: Opcode, data: bytes = b"") -> None:
    """Send a short frame, masked as clients must."""
    mask, made = os.urandom(4), frame(opcode, data)
    wire.writer.write(bytes([made[0], made[1] | 0x80]) + mask + unmasked(data, mask))


async def test_each_event_is_a_text_message(http: Http) -> None:
    for name in ("a", "b"):
        await http.create(P, {"metadata": {"name": name}})
    wire, status, headers = await watch(http)
    assert status == 101
    assert headers == {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    }
    await http.create(P, {"metadata": {"name": "c"}})
    await http.request("DELETE", f"{P}/a")
    events = [await receive_event(wire) for _ in range(4)]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("ADDED", "c"),
        ("DELETED", "a"),
    ]


async def test_protobuf_events_are_binary_messages_without_a_length(http: Http) -> None:
    for name in ("a", "b"):
        await http.create(P, {"metadata": {"name": name}})
    wire, _, _ = await watch(http, Accept="application/vnd.kubernetes.protobuf;stream=watch")
    for name in (b"a", b"b"):
        opcode, data = await receive(wire)
        assert opcode is Opcode.BINARY
        assert data.startswith(b"\n\x05ADDED\x12")
        assert b"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap" in data
        assert b"\n\x01%b\x12\x00\x1a\x07default" % name in data


async def test_the_server_closes_the_connection_when_the_watch_ends(http: Http) -> None:
    wire, _, _ = await watch(http, "&timeoutSeconds=1")
    assert await receive(wire) == CLOSED
    assert await wire.ended()


async def test_the_server_closes_the_connection_when_the_client_does(http: Http) -> None:
    wire, _, _ = await watch(http)
    send(wire, Opcode.CLOSE, struct.pack("!H", 1000))
    assert await receive(wire) == CLOSED
    assert await wire.ended()


async def test_messages_of_the_client_are_ignored_and_pings_answered(http: Http) -> None:
    wire, _, _ = await watch(http)
    send(wire, Opcode.TEXT, b"hello")
    send(wire, Opcode.PING, b"hi")
    assert await receive(wire) == (Opcode.PONG, b"hi")
    await http.create(P, {"metadata": {"name": "a"}})
    assert (await receive_event(wire))["type"] == "ADDED"


async def test_an_expired_watch_gets_an_error_message(server: Server, http: Http) -> None:
    first = await http.create(P, {"metadata": {"name": "a"}})
    await http.request("DELETE", f"{P}/a")
    server.compact()
    old = int(first["metadata"]["resourceVersion"]) - 1
    wire, _, _ = await watch(http, f"&resourceVersion={old}")
    event = await receive_event(wire)
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")
    assert await receive(wire) == CLOSED


async def test_one_offered_subprotocol_is_accepted(http: Http) -> None:
    _, status, headers = await watch(http, Sec_WebSocket_Protocol="base64.binary.k8s.io")
    assert (status, headers["sec-websocket-protocol"]) == (101, "base64.binary.k8s.io")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Sec-WebSocket-Key": None}, 400),
        ({"Sec-WebSocket-Version": "8"}, 400),
        ({"Sec-WebSocket-Protocol": "one, two"}, 400),
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "::::"}, 403),
    ],
)
async def test_a_bad_handshake_is_rejected(changed: dict[str, str | None], status: int, http: Http) -> None:
    _, answered, _ = await watch(http, **changed)
    assert answered == status


async def test_an_invalid_watch_gets_a_status(http: Http) -> None:
    wire = await http.open()
    reply = await wire.ask("GET", f"{P}?watch=1&resourceVersion=abc", headers=HANDSHAKE)
    assert reply.json()["kind"] == "Status"


async def test_another_upgrade_gets_a_plain_stream(http: Http) -> None:
    await http.create(P, {"metadata": {"name": "a"}})
    wire, status, headers = await watch(http, Upgrade="other")
    assert (status, headers["transfer-encoding"]) == (200, "chunked")
    assert (await anext(wire.events()))["type"] == "ADDED"


async def test_faults_cut_watches_over_websocket(server: Server, http: Http) -> None:
    wire, _, _ = await watch(http)
    await http.create(P, {"metadata": {"name": "a"}})
    await receive_event(wire)
    server.faults.cut_watches()
    assert await receive(wire) == CLOSED


async def test_a_client_that_disappears_ends_its_watch(server: Server, http: Http) -> None:
    await http.request("GET", "/livez")
    before = server.statistics()
    wire, _, _ = await watch(http)
    assert server.statistics().tasks == before.tasks + 1
    wire.reset()
    await eventually(lambda: server.statistics() == before)
