"""Watches over time: bookmarks, expiry, slow readers, shared bytes, definitions that change under them."""

import asyncio
import json
from typing import Any

import pytest
from devserver_http import MERGE, Http

from kubewright.devserver import Server
from kubewright.http.server import ServerConnection
from kubewright.testing import eventually
from kubewright.testing.virtual_time import virtual_time

P = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(**properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


async def test_an_expired_watch_gets_an_error_event(server: Server, http: Http) -> None:
    first = await http.create(P, {"metadata": {"name": "a"}})
    await http.request("PATCH", f"{P}/a", {"data": {"a": "1"}}, MERGE)
    server.compact()
    old = int(first["metadata"]["resourceVersion"]) - 1
    wire = await http.open()
    wire.send("GET", f"{P}?watch=1&resourceVersion={old}")
    status, _ = await wire.head()
    events = [event async for event in wire.events()]
    assert status == 200
    (event,) = events
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {old} (")


async def test_expired_lists_and_tokens_are_gone(server: Server, http: Http) -> None:
    for name in ("a", "b", "c"):
        await http.create(P, {"metadata": {"name": name}})
    page = await http.get(f"{P}?limit=1")
    await http.request("DELETE", f"{P}/c")
    server.compact()
    token, revision = page["metadata"]["continue"], page["metadata"]["resourceVersion"]
    gone = (await http.request("GET", f"{P}?limit=1&continue={token}")).json()
    assert (gone["code"], gone["reason"]) == (410, "Expired")
    rest = await http.get(f"{P}?continue={gone['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b"]
    exact = await http.request("GET", f"{P}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert exact.status == 410


async def test_pages_show_the_state_of_the_first_page(http: Http) -> None:
    for name in ("a", "b", "c"):
        await http.create(P, {"metadata": {"name": name}, "data": {"v": "1"}})
    page = await http.get(f"{P}?limit=1")
    await http.request("DELETE", f"{P}/b")
    await http.request("PATCH", f"{P}/c", {"data": {"v": "2"}}, MERGE)
    await http.create(P, {"metadata": {"name": "bb"}})
    rest = await http.get(f"{P}?continue={page['metadata']['continue']}")
    assert [(item["metadata"]["name"], item["data"]["v"]) for item in rest["items"]] == [
        ("b", "1"),
        ("c", "1"),
    ]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]


@virtual_time
async def test_bookmarks_are_sent_each_minute_and_before_the_end() -> None:
    async with Server() as server, Http(server) as http:
        now = (await http.get(P))["metadata"]["resourceVersion"]
        wire = await http.open()
        wire.send("GET", f"{P}?watch=1&timeoutSeconds=150&allowWatchBookmarks=true&resourceVersion={now}")
        await wire.head()
        loop = asyncio.get_running_loop()
        start = loop.time()
        seen = [(event["type"], loop.time() - start) async for event in wire.events()]
        assert [kind for kind, _ in seen] == ["BOOKMARK"] * 3
        first, second, last = (when for _, when in seen)
        assert 54 <= first <= 66
        assert 108 <= second <= 132
        assert 147.5 <= last <= 148.5


@virtual_time
async def test_changes_while_a_bookmark_is_unread_are_sent_after_it() -> None:
    async with Server() as server, Http(server) as http:
        write = ServerConnection.write

        async def slow(self: ServerConnection, data: bytes) -> None:
            await write(self, data)
            if b'"BOOKMARK"' in data and not made:
                made.append(await http.create(P, {"metadata": {"name": "meanwhile"}}))

        made: list[Any] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ServerConnection, "write", slow)
            now = (await http.get(P))["metadata"]["resourceVersion"]
            wire = await http.open()
            wire.send("GET", f"{P}?watch=1&timeoutSeconds=90&allowWatchBookmarks=true&resourceVersion={now}")
            await wire.head()
            seen = [event["type"] async for event in wire.events()]
    assert seen == ["BOOKMARK", "ADDED", "BOOKMARK"]


@virtual_time
async def test_a_watch_without_a_timeout_ends_within_an_hour() -> None:
    async with Server() as server, Http(server) as http:
        wire = await http.open()
        wire.send("GET", f"{P}?watch=1")
        await wire.head()
        loop = asyncio.get_running_loop()
        start = loop.time()
        assert [event async for event in wire.events()] == []
        assert 1800 <= loop.time() - start <= 3600


async def test_a_client_that_does_not_read_is_throttled_and_not_buffered(server: Server, http: Http) -> None:
    wire = await http.open(limit=1024)
    wire.send("GET", f"{P}?watch=1&resourceVersion=0")
    await wire.head()
    await http.create(P, {"metadata": {"name": "big"}})
    value = "x" * 200_000
    for number in range(60):
        await http.request("PATCH", f"{P}/big", {"data": {"n": str(number), "v": value}}, MERGE)
    assert server.statistics().blocked == 1
    assert server.statistics().buffered < 2_000_000
    assert (await http.request("GET", "/livez")).status == 200


@virtual_time
async def test_a_client_that_never_reads_is_disconnected_and_its_events_are_dropped() -> None:
    async with Server() as server, Http(server) as http:
        wire = await http.open(limit=1024)
        wire.send("GET", f"{P}?watch=1&resourceVersion=0")
        await wire.head()
        await http.create(P, {"metadata": {"name": "big"}})
        value, number = "x" * 200_000, 0
        while not server.statistics().blocked:
            number += 1
            await http.request("PATCH", f"{P}/big", {"data": {"n": str(number), "v": value}}, MERGE)
        await asyncio.sleep(45)
        assert server.statistics().blocked == 0
        assert server.statistics().buffered == 0


async def test_a_changed_definition_ends_the_watches_on_its_objects(http: Http) -> None:
    await http.create(CRDS, crd(a={"type": "string"}))
    path = "/apis/ex.io/v1/namespaces/default/foos"
    wire = await http.open()
    wire.send("GET", f"{path}?watch=1")
    await wire.head()
    spec = crd(a={"type": "string"}, b={"type": "string", "default": "new"})["spec"]
    await http.request("PATCH", f"{CRDS}/foos.ex.io", {"spec": spec}, MERGE)
    assert [event async for event in wire.events()] == []


async def test_a_new_default_shows_on_old_objects(http: Http) -> None:
    await http.create(CRDS, crd(a={"type": "string"}))
    path = "/apis/ex.io/v1/namespaces/default/foos"
    body = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": {"a": "1"}}
    before = await http.create(path, body)
    spec = crd(a={"type": "string"}, b={"type": "string", "default": "new"})["spec"]
    await http.request("PATCH", f"{CRDS}/foos.ex.io", {"spec": spec}, MERGE)
    after = await http.get(f"{path}/x")
    assert after["spec"] == {"a": "1", "b": "new"}
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@virtual_time
async def test_realistic_timing_makes_clients_wait_for_a_definition() -> None:
    async with Server(timing="realistic") as server, Http(server) as http:
        created = await http.create(CRDS, crd(a={"type": "string"}))
        assert created["status"]["conditions"] is None
        path = "/apis/ex.io/v1/namespaces/default/foos"
        seen = [(await http.request("GET", path)).status]

        async def served() -> bool:
            status = (await http.request("GET", path)).status
            if status != seen[-1]:
                seen.append(status)
            return status == 200

        await eventually(served)
        assert seen == [404, 429, 200]


async def test_all_watchers_see_every_change_in_order(http: Http) -> None:
    wires = [await http.open() for _ in range(10)]
    for wire in wires:
        wire.send("GET", f"{P}?watch=1&resourceVersion=0")
        await wire.head()
    await http.create(P, {"metadata": {"name": "counted"}})
    for number in range(20):
        await http.request("PATCH", f"{P}/counted", {"data": {"n": str(number)}}, MERGE)
    await http.request("DELETE", f"{P}/counted")
    for wire in wires:
        events = wire.events()
        seen = [await anext(events) for _ in range(22)]
        kinds = [event["type"] for event in seen]
        assert kinds == ["ADDED", *["MODIFIED"] * 20, "DELETED"]
        revisions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
        assert revisions == sorted(set(revisions))
        assert json.dumps(seen[-2]["object"]["data"]) == json.dumps(seen[-1]["object"]["data"])


async def test_every_kind_ends_its_state_with_a_bookmark_in_a_table_too(http: Http) -> None:
    groups = (await http.get("/apis"))["groups"]
    versions = [
        "/api/v1",
        *(f"/apis/{item['groupVersion']}" for group in groups for item in group["versions"]),
    ]
    query = "watch=1&timeoutSeconds=60&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for version in versions:
        for resource in (await http.get(version))["resources"]:
            if "watch" not in resource["verbs"]:
                continue
            wire = await http.open()
            wire.send("GET", f"{version}/{resource['name']}?{query}&allowWatchBookmarks=true", headers=accept)
            await wire.head()
            async for event in wire.events():
                if event["type"] == "BOOKMARK":
                    (row,) = event["object"]["rows"]
                    assert row["object"]["metadata"]["annotations"], resource["name"]
                    break
            else:
                raise AssertionError(f"the watch of {resource['name']} ended without a bookmark")
