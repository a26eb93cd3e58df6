"""Shards that the server selects: whatever a server does with a shardSelector, each shard has its objects and no others."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from acceptance_ports import lasting_port
from acceptance_waits import served
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api import (
    Kind,
    Meta,
    Model,
    Object,
    RawList,
    RawObject,
    Resource,
    WatchEvent,
    kind_of,
    raw_object,
)
from kubewright.api.builtin import apiextensions_v1, core_v1
from kubewright.api.sharding import (
    HASHES,
    MOST_RANGES,
    HashRange,
    ShardField,
    Shards,
    covering_ranges,
    joined_ranges,
    remaining_ranges,
    shard_hash,
    shard_selector,
)
from kubewright.cache import Cache, Informer, Selection, ShardFilter
from kubewright.client import Client, load_config
from kubewright.devserver import Server
from kubewright.metrics import Registry
from kubewright.schema import crd
from kubewright.testing import eventually
from kubewright.testing.controlplane import ControlPlane
from kubewright.testing.environments import ServerName
from kubewright.testing.virtual_time import virtual_time

from .conftest import WIDGETS, ScriptedError

GATE = "ShardedListAndWatch"
PART = re.compile(
    r"shardRange\(object\.metadata\.(uid|namespace), '(0x[0-9a-f]{16})', '(0x[0-9a-f]{16,17})'\)"
)

cuts = st.lists(st.integers(0, HASHES), max_size=80).map(lambda found: sorted({0, HASHES, *found}))
Behaviour = Literal[
    "ignores", "selects", "selects silently", "differs", "differs silently", "rejects", "other selector"
]
BEHAVIOURS: list[Behaviour] = [
    "ignores",
    "selects",
    "selects silently",
    "differs",
    "differs silently",
    "rejects",
    "other selector",
]


def parts(selector: str) -> list[HashRange]:
    """Return the ranges of a selector, all of which must be well-formed."""
    found = [PART.fullmatch(text) for text in selector.split(" || ")]
    assert all(found)
    return [HashRange(int(one[2], 16), int(one[3], 16)) for one in found if one]


@given(cuts, st.lists(st.uuids().map(str), max_size=20))
def test_each_object_is_in_exactly_one_range_of_any_partition(found: list[int], uids: list[str]) -> None:
    ranges = [HashRange(start, end) for start, end in pairwise(found)]
    for uid in uids:
        assert sum(shard_hash(uid) in one for one in ranges) == 1


@given(cuts, st.data())
def test_a_selector_has_the_hashes_of_its_ranges_and_the_rest_the_others(
    found: list[int], data: st.DataObject
) -> None:
    ranges = [HashRange(start, end) for start, end in pairwise(found)]
    chosen = data.draw(st.lists(st.sampled_from(ranges), min_size=1, unique_by=lambda one: one.start))
    hashes = [*found[:-1], *(value - 1 for value in found[1:])]
    rest, covering = remaining_ranges(chosen), covering_ranges(chosen)
    selector = shard_selector("uid", chosen)
    selected = parts(selector) if selector else [HashRange(0, HASHES)]
    assert len(covering) <= MOST_RANGES
    assert joined_ranges(selected) == selected
    for value in hashes:
        inside = any(value in one for one in chosen)
        assert any(value in one for one in selected) == inside
        assert any(value in one for one in rest) != inside
        assert not inside or any(value in one for one in covering)


@given(st.integers(1, 256), st.uuids().map(str))
def test_the_number_of_an_object_is_that_of_the_range_that_has_it(count: int, uid: str) -> None:
    shards = Shards(count)
    assert [number for number in range(count) if shard_hash(uid) in shards.range_of(number)] == [
        shards.number_of(uid)
    ]
    assert shards.ranges_of(range(count)) == [HashRange(0, HASHES)]


def made(number: int, namespace: str) -> RawObject:
    metadata = {
        "name": f"object-{number}",
        "namespace": namespace,
        "uid": f"{number:08x}-1111-2222-3333-{number * 7919 % 10**12:012d}",
        "resourceVersion": str(number + 1),
    }
    return raw_object(msgspec.json.encode({"metadata": metadata}))


class ShardingSource:
    """A server with some objects that treats selectors in one way, and from the second watch on in another."""

    def __init__(self, objects: Collection[RawObject], behaviours: list[Behaviour]) -> None:
        self.objects = {one.meta.key: one for one in objects}
        self.behaviours = behaviours
        self.changes: asyncio.Queue[WatchEvent | None] = asyncio.Queue()
        self.sent: list[str] = []

    def change(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self.objects.pop(event.object.meta.key, None)
        else:
            self.objects[event.object.meta.key] = event.object
        self.changes.put_nowait(WatchEvent(event.type, event.object.copied()))

    def matches(self, selector: str, obj: RawObject) -> bool:
        behaviour = self.behaviours[0]
        if not selector or behaviour == "ignores":
            return True
        field = obj.meta.uid if "metadata.uid" in selector else obj.meta.namespace
        hashed = shard_hash(field + "!" * behaviour.startswith("differs"))
        return any(hashed in one for one in parts(selector))

    async def list_raw(
        self, kind: Kind, *, limit: int = 500, fields: str = "", namespace: str = "", **options: Any
    ) -> AsyncGenerator[RawList, None]:
        selector: str = options.get("shard_selector", "")
        behaviour = self.behaviours[0]
        if selector and behaviour == "rejects":
            raise ScriptedError("invalid shard selector: unsupported function", 500, "")
        name = fields.removeprefix("metadata.name=")
        found = [
            one.copied()
            for one in self.objects.values()
            if self.matches(selector, one)
            and (not name or one.meta.name == name)
            and (not namespace or one.meta.namespace == namespace)
        ]
        if limit != 1:
            self.sent.append(selector)
        is_echoed = selector and behaviour in ("selects", "differs", "other selector")
        echo = (selector if behaviour != "other selector" else "shardRange()") if is_echoed else ""
        version = str(max((int(one.meta.resource_version) for one in self.objects.values()), default=1))
        yield RawList(version, "", found[:1] if limit == 1 else found, None, echo)

    async def watch_raw(self, kind: Kind, **options: Any) -> AsyncGenerator[list[WatchEvent], None]:
        selector: str = options.get("shard_selector", "")
        self.sent.append(selector)
        yield []
        while (event := await self.changes.get()) is not None:
            if self.matches(selector, event.object):
                yield [event]
        if len(self.behaviours) > 1:
            self.behaviours.pop(0)


@settings(max_examples=150)
@given(
    st.integers(1, 6),
    st.sampled_from(["uid", "namespace"]),
    st.lists(st.sampled_from(BEHAVIOURS), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["added", "deleted", "restarted"])), max_size=40),
    st.sets(st.integers(0, 30), max_size=20),
    st.data(),
)
def test_each_shard_has_its_objects_whatever_the_server_does_with_selectors(
    count: int,
    by: ShardField,
    behaviours: list[Behaviour],
    happened: list[tuple[int, str]],
    first: set[int],
    data: st.DataObject,
) -> None:
    """The server selects, ignores, rejects, or selects by another hash, and changes that each time it is restarted."""
    shards = Shards(count, by)
    held = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    initial = [made(number, f"{number % 5}-space") for number in sorted(first)]
    source = ShardingSource(initial, list(behaviours))
    version = 100

    @virtual_time
    async def run() -> None:
        nonlocal version
        cache = Cache(source, streaming=False)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(cache.run())
            await asyncio.sleep(0)
            streams = cache.shard_streams(held)
            filters = [ShardFilter(shards, number, by) for number in held]
            informers: list[Informer[Any]] = [
                cache.informer(Selection(WIDGETS, shard=chosen), dict) for chosen in filters
            ]
            cache.open_streams(streams)
            await asyncio.sleep(1)
            for number, what in happened:
                version += 1
                obj = made(number, f"{number % 5}-space")
                obj.meta.resource_version = str(version)
                if what == "restarted":
                    source.changes.put_nowait(None)
                    await asyncio.sleep(30)
                elif what == "added" or obj.meta.key in source.objects:
                    source.change(WatchEvent("MODIFIED" if what == "added" else "DELETED", obj))
            await asyncio.sleep(60)
            for chosen, informer in zip(filters, informers, strict=True):
                expected = {key for key, one in source.objects.items() if chosen.selects(one.meta)}
                assert set(informer.keys()) == expected
            running.cancel()

    run()
    if set(behaviours) <= {"ignores", "rejects", "differs", "differs silently", "other selector"}:
        assert set(source.sent) == {""}


class RackSpec(Model):
    size: int = 1


class Rack(Resource[RackSpec, Model], group="shards.example.com", version="v1"):
    """A custom resource, whose lists have no shardInfo."""


Restart = Callable[[bool], Any]


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[Path, Restart]]:
    data, port = folder / "data.db", lasting_port()
    serving = AsyncExitStack()

    async def restart(gate: bool) -> None:
        await serving.aclose()
        await serving.enter_async_context(Server(data=data, port=port, feature_gates={GATE: gate}))

    async with AsyncExitStack() as stack:
        stack.push_async_callback(serving.aclose)
        server = await serving.enter_async_context(Server(data=data, port=port, feature_gates={GATE: True}))
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(server.kubeconfig()))
        yield kubeconfig, restart


@asynccontextmanager
async def real() -> AsyncIterator[tuple[Path, Restart]]:
    async with ControlPlane(controllers=False, feature_gates={GATE: True}) as plane:

        async def restart(gate: bool) -> None:
            await plane.stop_api_server()
            await plane.start_api_server(feature_gates={GATE: gate})

        yield plane.kubeconfig, restart


@pytest.fixture
def unblocked_event_loop() -> None:
    """Let the embedded server write its file: it commits on its own event loop by design."""


@pytest.fixture
async def switched(server_name: ServerName, tmp_path: Path) -> AsyncIterator[tuple[Client, Restart]]:
    """Run a server with the feature gate; yield a client, and what restarts the server with or without it."""
    if server_name == "existing":
        pytest.skip("an existing cluster is not restarted")
    async with AsyncExitStack() as stack:
        started = real() if server_name == "real" else embedded(tmp_path)
        kubeconfig, restart = await stack.enter_async_context(started)
        config = await asyncio.to_thread(load_config, kubeconfig)
        client = await stack.enter_async_context(Client(config, field_manager="tests"))
        definition = kind_of(apiextensions_v1.CustomResourceDefinition)
        await client.apply(crd(Rack), kind=definition, field_manager="tests")
        await served(client, kind_of(Rack))
        yield client, restart


def rack(number: int) -> Rack:
    return Rack(Meta(f"rack-{number}", namespace="default"))


def config_map(number: int) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(f"map-{number}", namespace="default"))


@pytest.mark.kubernetes(since="1.36")
async def test_each_object_is_in_the_list_of_exactly_one_shard(switched: tuple[Client, Restart]) -> None:
    client, restart = switched
    for number in range(30):
        await client.create(rack(number))
        await client.create(config_map(number))
    for kind, count in product((Rack, core_v1.ConfigMap), (1, 2, 3, 7)):
        uids = {one.metadata.uid for one in await client.list(kind)}
        shards = Shards(count)
        for number in range(count):
            selector = shard_selector("uid", [shards.range_of(number)])
            found = {one.metadata.uid for one in await client.list(kind, shard_selector=selector)}
            assert found == {uid for uid in uids if shards.number_of(uid) == number}
    await restart(False)
    for kind in (Rack, core_v1.ConfigMap):
        nothing = shard_selector("uid", [HashRange(0, 1)])
        (page,) = [page async for page in client.list_raw(kind, shard_selector=nothing)]
        assert len(page.items) >= 30
        assert page.shard_selector == ""


class Replica:
    """A cache with two of four shards of a kind."""

    shards = Shards(4)
    held = (0, 2)

    def __init__(self, client: Client, kind: type[Object], *, streaming: bool) -> None:
        self.kind = kind
        self._client = client
        self._metrics = Registry()
        self._cache = Cache(client, metrics=self._metrics, streaming=streaming)
        self._informers: list[Informer[Any]] = []

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            await asyncio.sleep(0)
            streams = self._cache.shard_streams(self.held)
            for number in self.held:
                selection = Selection(kind_of(self.kind), shard=ShardFilter(self.shards, number, "uid"))
                self._informers.append(self._cache.informer(selection, self.kind))
            self._cache.open_streams(streams)

    def is_selected_by(self, name: str) -> bool:
        gauge = self._metrics.gauge("kubewright_shard_streams", "", ("resource", "selected_by"))
        resource = kind_of(self.kind).resource
        return {
            one: gauge.labels(resource=resource, selected_by=one).value for one in ("server", "client")
        } == {"server": 0, "client": 0, name: 1}

    async def holds_its_objects(self) -> bool:
        found = {one.metadata.uid: one.metadata.name for one in await self._client.list(self.kind)}
        return len(self._informers) == len(self.held) and all(
            sorted(key.name for key in list(informer.keys()))
            == sorted(name for uid, name in found.items() if self.shards.number_of(uid) == number)
            for number, informer in zip(self.held, self._informers, strict=True)
        )


@pytest.mark.kubernetes(since="1.36")
async def test_a_replica_holds_the_same_objects_when_the_gate_of_the_server_is_switched(
    switched: tuple[Client, Restart],
) -> None:
    client, restart = switched
    makes: dict[type[Object], Callable[[int], Object]] = {Rack: rack, core_v1.ConfigMap: config_map}
    created = {
        kind: [await client.create(make(number)) for number in range(20)] for kind, make in makes.items()
    }
    replicas = [Replica(client, kind, streaming=streaming) for kind in makes for streaming in (True, False)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replica.run()) for replica in replicas]

        async def settle(selects: str) -> None:
            for replica in replicas:
                await eventually(lambda replica=replica: replica.is_selected_by(selects))
                await eventually(replica.holds_its_objects)

        async def change(first: int) -> None:
            for kind, make in makes.items():
                await client.delete(created[kind].pop(0))
                for number in itertools.count(first):
                    one = await client.create(make(number))
                    if Replica.shards.number_of(one.metadata.uid) in Replica.held:
                        break

        await settle("server")
        # Only a watch brings a change that follows the list. One that is not open yet would be opened on the next server.
        await change(1_000)
        await settle("server")
        for gate, selects in ((False, "client"), (True, "server")):
            await restart(gate)
            await change(2_000 + 2_000 * gate)
            await settle(selects)
            await change(3_000 + 2_000 * gate)
            await settle(selects)
        for task in tasks:
            task.cancel()
    assert not any(replica.is_selected_by("server") for replica in replicas)
