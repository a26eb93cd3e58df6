"""Injected faults start when a test requests them, affect the selected clients, and end."""

import asyncio
from typing import Any

import pytest
from devserver_http import Http
from http_wire import HttpConnection

from kubewright.devserver import Match, Server
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time

P = "/api/v1/namespaces/default/configmaps"
WRITES = Match(verbs=("create",), resource="configmaps")


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


async def watching(http: Http, query: str = "") -> HttpConnection:
    wire = await http.open()
    wire.send("GET", f"{P}?watch=1{query}")
    status, _ = await wire.head()
    assert status == 200
    return wire


async def test_requests_fail_as_often_as_configured(server: Server, http: Http) -> None:
    with server.faults.add(match=WRITES, fail=429, retry_after=7, times=2) as fault:
        for _ in range(2):
            reply = await http.request("POST", P, config_map("a"))
            assert (reply.status, reply.headers["retry-after"]) == (429, "7")
            assert reply.json()["reason"] == "TooManyRequests"
        assert (await http.request("POST", P, config_map("a"))).status == 201
    assert fault.hits == 2


@pytest.mark.parametrize(
    ("code", "reason"), [(500, "InternalError"), (503, "ServiceUnavailable"), (410, "Expired")]
)
async def test_a_failure_has_its_reason(code: int, reason: str, server: Server, http: Http) -> None:
    with server.faults.add(match=Match(verbs=("list",)), fail=code):
        reply = await http.request("GET", P)
        assert (reply.status, reply.json()["reason"]) == (code, reason)
    assert (await http.request("GET", P)).status == 200


async def test_faults_hit_matching_requests_only(server: Server, http: Http) -> None:
    await http.create(P, config_map("a"))
    with server.faults.add(match=Match(resource="configmaps", name="b", verbs=("get",)), fail=500):
        assert (await http.request("GET", f"{P}/a")).status == 200
        assert (await http.request("GET", f"{P}/b")).status == 500
        assert (await http.request("GET", "/api/v1/namespaces/default/secrets/b")).status == 404


async def test_clients_are_distinguished_by_user_agent(server: Server, http: Http) -> None:
    with server.faults.add(match=Match(agent="clumsy/"), fail=503):
        assert (await http.request("GET", P, headers={"User-Agent": "clumsy/1.0"})).status == 503
        assert (await http.request("GET", P, headers={"User-Agent": "careful/1.0"})).status == 200


async def test_a_reset_before_the_commit_stores_nothing(server: Server, http: Http) -> None:
    with (
        server.faults.add(match=WRITES, fail="reset"),
        pytest.raises((asyncio.IncompleteReadError, ConnectionError)),
    ):
        await http.request("POST", P, config_map("a"))
    assert (await http.request("GET", f"{P}/a")).status == 404


async def test_a_reset_after_the_commit_leaves_the_write(server: Server, http: Http) -> None:
    with (
        server.faults.add(match=WRITES, fail="reset", when="after"),
        pytest.raises((asyncio.IncompleteReadError, ConnectionError)),
    ):
        await http.request("POST", P, config_map("a"))
    assert (await http.request("GET", f"{P}/a")).status == 200


async def test_a_write_may_succeed_and_be_answered_as_failed(server: Server, http: Http) -> None:
    with server.faults.add(match=WRITES, fail=500, when="after"):
        assert (await http.request("POST", P, config_map("a"))).status == 500
    assert (await http.request("POST", P, config_map("a"))).status == 409


@virtual_time
async def test_answers_are_delayed() -> None:
    loop = asyncio.get_running_loop()
    async with Server() as server, Http(server) as http:
        with server.faults.add(match=Match(verbs=("list",)), delay=30.0):
            start = loop.time()
            assert (await http.request("GET", P)).status == 200
            assert loop.time() - start >= 30.0


async def test_open_watches_can_be_ended_cleanly(server: Server, http: Http) -> None:
    wire = await watching(http)
    assert server.faults.cut_watches(Match(resource="configmaps")) == 1
    assert [event async for event in wire.events()] == []
    assert server.faults.cut_watches() == 0


async def test_open_watches_are_reset(server: Server, http: Http) -> None:
    wire = await watching(http)
    server.faults.cut_watches(how="reset")
    with pytest.raises((ValueError, asyncio.IncompleteReadError, ConnectionError)):
        async for _ in wire.events():
            pass


async def test_open_watches_get_an_expired_event(server: Server, http: Http) -> None:
    wire = await watching(http)
    server.faults.cut_watches(how="expire")
    events = [event async for event in wire.events()]
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


async def test_a_new_watch_gets_an_expired_event(server: Server, http: Http) -> None:
    with server.faults.add(match=Match(verbs=("watch",)), fail=410, times=1):
        wire = await watching(http)
        events = [event async for event in wire.events()]
    assert [(event["type"], event["object"]["reason"]) for event in events] == [("ERROR", "Expired")]


async def test_a_frozen_client_sees_the_past(server: Server, http: Http) -> None:
    await http.create(P, config_map("old"))
    stale = {"User-Agent": "stale"}
    with server.faults.freeze(Match(agent="stale")):
        await http.create(P, config_map("new"))
        await http.request("DELETE", f"{P}/old")
        assert (await http.request("GET", f"{P}/new", headers=stale)).status == 404
        assert (await http.request("GET", f"{P}/old", headers=stale)).status == 200
        seen = (await http.request("GET", P, headers=stale)).json()["items"]
        assert [item["metadata"]["name"] for item in seen] == ["old"]
        others = (await http.request("GET", P)).json()["items"]
        assert [item["metadata"]["name"] for item in others] == ["new"]
    thawed = (await http.request("GET", P, headers=stale)).json()["items"]
    assert [item["metadata"]["name"] for item in thawed] == ["new"]


async def test_a_new_watch_of_a_frozen_client_starts_in_the_past(server: Server, http: Http) -> None:
    await http.create(P, config_map("old"))
    stale = {"User-Agent": "stale"}
    with server.faults.freeze(Match(agent="stale")):
        await http.create(P, config_map("new"))
        wire = await http.open()
        wire.send("GET", f"{P}?watch=1", headers=stale)
        await wire.head()
        events = wire.events()
        assert (await anext(events))["object"]["metadata"]["name"] == "old"
    assert (await anext(events))["object"]["metadata"]["name"] == "new"


async def test_clearing_removes_all_faults(server: Server, http: Http) -> None:
    server.faults.add(fail=500)
    assert (await http.request("GET", "/api")).status == 500
    server.faults.clear()
    assert (await http.request("GET", "/api")).status == 200


async def _orders(server: Server, http: Http, seed: int) -> list[str]:
    """Return for each of some writes whether its event or its response arrived first."""
    seen: list[str] = []
    wire = await http.open()
    newest = (await http.get(P))["metadata"]["resourceVersion"]
    wire.send("GET", f"{P}?watch=1&resourceVersion={newest}")
    await wire.head()

    async def follow() -> None:
        async for event in wire.events():
            seen.append(f"event {event['object']['metadata']['name']}")

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow())
        with server.faults.events_overtake(seed, Match(verbs=("create",))):
            for number in range(12):
                name = f"s{seed}-{number}"
                await http.create(P, {"metadata": {"name": name}})
                seen.append(f"response {name}")
                await eventually(lambda name=name: f"event {name}" in seen)
        following.cancel()
    return [seen[place].split()[0] for place in range(0, len(seen), 2)]


async def test_events_of_writes_arrive_before_or_after_their_responses_by_the_seed(
    server: Server, http: Http
) -> None:
    first = await _orders(server, http, 1)
    assert set(first) == {"event", "response"}
    assert first != await _orders(server, http, 2)


async def test_an_expired_watch_in_protobuf_gets_an_event_in_protobuf(server: Server, http: Http) -> None:
    wire = await http.open()
    with server.faults.add(match=Match(verbs=("watch",)), fail=410):
        wire.send("GET", f"{P}?watch=1", headers={"Accept": "application/vnd.kubernetes.protobuf"})
        reply = await wire.reply()
    assert reply.headers["content-type"] == "application/vnd.kubernetes.protobuf;stream=watch"
    assert reply.body[4:].startswith(b"\n\x05ERROR")
