"""Requests of the cluster's own controllers to its server, without a network."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from kubewright.api import ConnectionLost, Forbidden, Meta, ServiceUnavailable, TimedOut
from kubewright.api.builtin import core_v1
from kubewright.client import Client, ClusterConfig
from kubewright.devcluster.loopback import HIGH_WATER, Loopback, Pipe
from kubewright.devserver import Match, Server
from kubewright.http.client import ConnectionBroken, ReadTimeout
from kubewright.testing.virtual_time import settle, virtual_time


@pytest.fixture
async def server() -> AsyncGenerator[Server, None]:
    async with Server(disable_admission_plugins=("ServiceAccount",)) as found:
        yield found


def config(server: Server, *groups: str) -> ClusterConfig:
    return ClusterConfig(
        server.url,
        token=server.add_user("inner", groups),
        exchange=lambda: Loopback(server.handle, server.spawn),
    )


def settings(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(name, namespace="default"), data={"a": "b"})


async def test_objects_are_written_read_and_watched_without_a_connection(server: Server) -> None:
    async with Client(config(server, "system:masters")) as client:
        made = await client.create(settings("one"))
        seen = client.watch(core_v1.ConfigMap, namespace="default", initial_events=True)
        assert (await anext(seen)).object.meta.name == "one"
        assert (await anext(seen)).type == "BOOKMARK"
        await client.patch(made, {"data": {"a": "c"}})
        assert (await anext(seen)).type == "MODIFIED"
        assert (await client.get(core_v1.ConfigMap, "one", "default")).data == {"a": "c"}
        assert server.statistics().connections == 0
        await seen.aclose()


async def test_authorization_is_the_same_as_over_the_network(server: Server) -> None:
    async with Client(config(server, "system:authenticated")) as client:
        with pytest.raises(Forbidden, match='User "inner" cannot create resource "configmaps"'):
            await client.create(settings("one"))


async def test_injected_faults_apply(server: Server) -> None:
    matched = Match(resource="configmaps", agent="kubewright")
    async with Client(config(server, "system:masters")) as client:
        with server.faults.add(match=matched, fail=503), pytest.raises(ServiceUnavailable):
            await client.create(settings("one"))
        with server.faults.add(match=matched, fail="reset"), pytest.raises(ConnectionLost):
            await client.create(settings("one"))
        seen = client.watch(core_v1.ConfigMap, namespace="default", initial_events=True)
        assert (await anext(seen)).type == "BOOKMARK"
        assert server.faults.cut_watches(matched, how="reset") == 1
        with pytest.raises(ConnectionLost):
            await anext(seen)


async def test_a_slow_response_times_out(server: Server) -> None:
    matched = Match(resource="configmaps")
    async with Client(config(server, "system:masters"), timeout=0.01) as client:
        with server.faults.add(match=matched, delay=60.0), pytest.raises(TimedOut):
            await client.create(settings("one"))


async def test_closing_the_client_ends_its_streams(server: Server) -> None:
    before = server.statistics().tasks
    async with Client(config(server, "system:masters")) as client:
        seen = client.watch(core_v1.ConfigMap, namespace="default", initial_events=True)
        await anext(seen)
        assert server.statistics().tasks == before + 1
        await seen.aclose()
        abandoned = client.watch(core_v1.ConfigMap, namespace="default", initial_events=True)
        await anext(abandoned)
    with pytest.raises(ConnectionLost):
        await anext(abandoned)
    await settle()
    assert server.statistics().tasks == before


@virtual_time
async def test_a_pipe_waits_for_a_slow_reader_and_keeps_the_order() -> None:
    pipe = Pipe()

    async def write() -> None:
        for number in range(8):
            await pipe.write(bytes([number]) * (HIGH_WATER // 2))
        pipe.end(broken=False)

    async with asyncio.TaskGroup() as group:
        writing = group.create_task(write())
        await asyncio.sleep(1)
        assert not writing.done()
        found = await pipe.read_all(100.0)
    assert [found[at] for at in range(0, len(found), HIGH_WATER // 2)] == list(range(8))


@virtual_time
async def test_an_empty_write_does_not_end_a_pipe() -> None:
    pipe = Pipe()
    await pipe.write(b"")
    with pytest.raises(ReadTimeout):
        await pipe.read(5.0)
    await pipe.write(b"some")
    assert await pipe.read(5.0) == b"some"


@virtual_time
async def test_a_pipe_distinguishes_a_timeout_from_a_broken_connection() -> None:
    pipe = Pipe()
    with pytest.raises(ReadTimeout):
        await pipe.read(5.0)
    await pipe.write(b"some")
    pipe.end(broken=True)
    assert await pipe.read(5.0) == b"some"
    with pytest.raises(ConnectionBroken):
        await pipe.read(5.0)
