"""Lists and watches, on a real API server or the embedded one (--server)."""

import asyncio
from contextlib import aclosing

import pytest

from kubewright.api.builtin import core_v1
from kubewright.client import (
    BadRequest,
    Client,
)

from .objects import MAPS, config_map

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_list_reads_all_pages(client: Client, namespace: str) -> None:
    for number in range(7):
        await client.create(config_map(namespace, f"m{number}"))
    whole = await client.list(core_v1.ConfigMap, namespace=namespace, labels="app=test", limit=3)
    assert [item.metadata.name for item in whole] == [f"m{number}" for number in range(7)]
    assert int(whole.resource_version) > 0
    pages = [
        page
        async for page in client.list_raw(core_v1.ConfigMap, namespace=namespace, labels="app=test", limit=3)
    ]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    one = await client.list(core_v1.ConfigMap, namespace=namespace, fields="metadata.name=m3")
    assert [item.metadata.name for item in one] == ["m3"]
    assert len(await client.list(core_v1.ConfigMap, labels="app in (missing)")) == 0


async def test_a_list_may_be_of_metadata_alone(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, x="canary"))
    listed = client.list_raw(MAPS, namespace=namespace, labels="app=test", metadata_only=True)
    items = [item async for page in listed for item in page.items]
    assert [item.meta.name for item in items] == ["a"]
    assert b"canary" not in items[0].raw


async def test_an_invalid_selector_is_a_bad_request(client: Client, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await client.list(core_v1.ConfigMap, namespace=namespace, labels="a in (")


async def test_a_watch_yields_changes(client: Client, namespace: str) -> None:
    start = (await client.list(core_v1.ConfigMap, namespace=namespace)).resource_version
    created = await client.create(config_map(namespace))
    await client.patch(created, {"data": {"x": "2"}})
    await client.delete(core_v1.ConfigMap, "a", namespace)
    seen: list[str] = []
    events = client.watch(core_v1.ConfigMap, namespace=namespace, labels="app=test", resource_version=start)
    async with asyncio.timeout(60), aclosing(events):
        async for event in events:
            if event.type != "BOOKMARK":
                seen.append(event.type)
            if event.type == "DELETED":
                break
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


@pytest.mark.kubernetes(since="1.34")
async def test_a_watch_may_begin_with_the_current_state(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    seen: list[str] = []
    events = client.watch(core_v1.ConfigMap, namespace=namespace, labels="app=test", initial_events=True)
    async with asyncio.timeout(60), aclosing(events):
        async for event in events:
            seen.append(event.object.meta.name or event.type)
            if event.object.meta.annotations.get("k8s.io/initial-events-end") == "true":
                break
    assert seen == ["a", "BOOKMARK"]


async def test_a_watch_may_be_of_metadata_alone(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, x="canary"))
    events = client.watch(MAPS, namespace=namespace, labels="app=test", metadata_only=True)
    async with asyncio.timeout(60), aclosing(events):
        event = await anext(events)
    assert event.object.meta.name == "a"
    assert b"canary" not in event.object.raw


async def test_a_watch_ends_after_its_timeout(client: Client, namespace: str) -> None:
    async with asyncio.timeout(60):
        assert [
            e
            async for e in client.watch(core_v1.Secret, namespace=namespace, timeout=1)
            if e.type != "BOOKMARK"
        ] == []
