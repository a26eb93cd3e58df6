import asyncio
import gc
from typing import Any

import pytest

from kubewright.api import Object
from kubewright.cache import Cache, CacheSyncTimeout, Index, Selection, StoreChange
from kubewright.testing.virtual_time import settle, virtual_time

JsonObject = dict[str, Any]


class Running:
    """A cache that runs until the block ends."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    async def __aenter__(self) -> Cache:
        self.task = asyncio.ensure_future(self.cache.run())
        await settle()
        return self.cache

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def empty(make: Any) -> Any:
    return make.answer(make.bookmark(5, initial=True), hangs=True)


@virtual_time
async def test_equal_selections_share_one_informer_and_one_watch(source: Any, make: Any) -> None:
    cache = Cache(source)
    first = cache.informer(Selection(make.kind, "prod"), JsonObject)
    assert cache.informer(Selection(make.kind, "prod"), JsonObject) is first
    assert cache.informer(Selection(make.kind, "test"), JsonObject) is not first
    source.script = [empty(make), empty(make)]
    async with Running(cache):
        await cache.wait_synced()
        assert len(source.calls) == 2


@virtual_time
async def test_one_watch_serves_readers_of_several_classes(source: Any, make: Any) -> None:
    source.script = [make.answer(make.event("ADDED", "a", 3), make.bookmark(5, initial=True), hangs=True)]
    async with Running(Cache(source)) as cache:
        wire = cache.informer(Selection(make.kind), JsonObject)
        typed = cache.informer(Selection(make.kind), Object)
        names = Index(Object, lambda found: [found.metadata.name])
        typed.add_index(names)
        await cache.wait_synced()
        assert len(source.calls) == 1
        assert [found["metadata"]["name"] for found in wire.list()] == ["a"]
        assert [type(found) for found in typed.by_index(names, "a")] == [Object]
        notified: list[StoreChange] = []
        typed.subscribe(notified.append)
        wire.record_write(make.object("b", 9))
        assert [change.key.name for change in notified] == ["a", "b"]
        assert typed.keys_by_index(names, "b") == [notified[1].key]
        cache.release(wire)
        await settle()
        assert source.open_streams == 1
        cache.release(typed)
        await settle()
        assert source.open_streams == 0


@virtual_time
async def test_an_informer_requested_while_the_cache_runs_starts(source: Any, make: Any) -> None:
    source.script = [empty(make)]
    async with Running(Cache(source)) as cache:
        assert source.calls == []
        informer = cache.informer(Selection(make.kind), JsonObject)
        await informer.wait_synced()
        assert source.open_streams == 1


@virtual_time
async def test_an_informer_stops_when_its_last_user_releases_it(source: Any, make: Any) -> None:
    source.script = [empty(make), empty(make)]
    async with Running(Cache(source)) as cache:
        informer = cache.informer(Selection(make.kind), JsonObject)
        cache.informer(Selection(make.kind), JsonObject)
        await informer.wait_synced()
        cache.release(informer)
        await settle()
        assert source.open_streams == 1
        cache.release(informer)
        await settle()
        assert source.open_streams == 0
        assert cache.feeds == []
        again = cache.informer(Selection(make.kind), JsonObject)
        assert again is not informer
        await again.wait_synced()


@virtual_time
async def test_ending_the_cache_closes_every_stream(source: Any, make: Any) -> None:
    source.script = [empty(make), empty(make)]
    cache = Cache(source)
    cache.informer(Selection(make.kind, "a"), JsonObject)
    cache.informer(Selection(make.kind, "b"), JsonObject)
    async with Running(cache):
        await cache.wait_synced()
        assert source.open_streams == 2
    assert source.open_streams == 0


@virtual_time
async def test_gathers_the_problems_of_its_informers(source: Any, make: Any) -> None:
    source.script = [make.answer(error=make.error("forbidden", 403)), empty(make)]
    cache = Cache(source, sync_timeout=0.5)
    cache.informer(Selection(make.kind, "a"), JsonObject)
    cache.informer(Selection(make.kind, "b"), JsonObject)
    async with Running(cache):
        assert cache.problems == ["widgets.example.com in namespace a: forbidden"]
        with pytest.raises(CacheSyncTimeout, match=r"in namespace a did not sync within 0\.5 s: forbidden"):
            await cache.wait_synced()


@virtual_time
async def test_the_python_garbage_collector_pauses_only_while_informers_fill(source: Any, make: Any) -> None:
    slow = make.answer(make.event("ADDED", "a", 3), make.bookmark(5, initial=True), hangs=True, pause=1)
    source.script = [slow, slow]
    assert gc.isenabled()
    async with Running(Cache(source, pause_gc=True)) as cache:
        first = cache.informer(Selection(make.kind, "a"), JsonObject)
        await asyncio.sleep(1)
        second = cache.informer(Selection(make.kind, "b"), JsonObject)
        await settle()
        assert not gc.isenabled()
        await first.wait_synced()
        await settle()
        assert not gc.isenabled()
        await second.wait_synced()
        await settle()
        assert gc.isenabled()
    source.script = [slow]
    async with Running(Cache(source)) as cache:
        cache.informer(Selection(make.kind), JsonObject)
        await settle()
        assert gc.isenabled()


@virtual_time
async def test_the_python_garbage_collector_resumes_when_filling_fails(source: Any, make: Any) -> None:
    async with Running(Cache(source, pause_gc=True)) as cache:
        cache.informer(Selection(make.kind), JsonObject)
        await settle()
        assert not gc.isenabled()
    assert gc.isenabled()
