"""Shards in the cache: each object is in the shards that it belongs to, and no read is answered from a part."""

import asyncio
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api import ObjectKey, RawList, RawObject, WatchEvent, raw_object
from kubewright.api.sharding import Shards
from kubewright.cache import Cache, Informer, Selection, ShardFilter
from kubewright.testing.virtual_time import virtual_time

from .conftest import WIDGETS, Answer, ScriptedError, ScriptedSource

OWNERS = [f"owner-{number}" for number in range(6)]


def child(name: str, version: int, owners: tuple[str, ...], namespace: str = "ns") -> RawObject:
    """Return an object that the first of the owners controls."""
    references = [
        {"apiVersion": "example.com/v1", "kind": "Owner", "name": uid, "uid": uid, "controller": number == 0}
        for number, uid in enumerate(owners)
    ]
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "ownerReferences": references,
    }
    return raw_object(msgspec.json.encode({"metadata": metadata}))


changes = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "e"]),
        st.one_of(st.none(), st.lists(st.sampled_from(OWNERS), max_size=3, unique=True)),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(
    st.integers(1, 5),
    st.sampled_from(["uid", "namespace", "owner"]),
    st.booleans(),
    st.lists(st.tuples(changes, st.booleans()), min_size=1, max_size=3),
    st.data(),
)
def test_each_shard_has_what_belongs_to_it_after_any_events(
    count: int, by: Any, every_owner: bool, rounds: list[tuple[list[Any], bool]], data: st.DataObject
) -> None:
    """Objects are created, deleted and given to other owners; now and then the history is lost and they are listed."""
    shards = Shards(count, "namespace" if by == "namespace" else "uid")
    held = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    source, present, version = ScriptedSource(), {}, 0
    for happened, is_lost in rounds:
        source.script.append(Answer([RawList(str(version), "", [one.copied() for one in present.values()])]))
        events: list[WatchEvent] = []
        for name, owners in happened:
            version += 1
            if owners is None:
                if name in present:
                    del present[name]
                    events.append(WatchEvent("DELETED", child(name, version, (), f"ns-{name}")))
                continue
            present[name] = child(name, version, tuple(owners), f"ns-{name}")
            events.append(WatchEvent("MODIFIED", present[name].copied()))
        source.script.append(Answer([events] if events else [], hangs=not is_lost))
        if not is_lost:
            break
        source.script[-1].error = ScriptedError("too old", 410, "Expired")

    @virtual_time
    async def run() -> None:
        cache = Cache(source, streaming=False)
        filters = [ShardFilter(shards, number, by, ("example.com", "Owner"), every_owner) for number in held]
        async with asyncio.TaskGroup() as group:
            running = group.create_task(cache.run())
            await asyncio.sleep(0)
            streams = cache.shard_streams(held)
            informers: list[Informer[Any]] = [
                cache.informer(Selection(WIDGETS, shard=chosen), dict) for chosen in filters
            ]
            cache.open_streams(streams)
            await asyncio.sleep(300)
            for chosen, informer in zip(filters, informers, strict=True):
                expected = {
                    one.meta.key for one in present.values() if chosen.number in chosen.numbers(one.meta)
                }
                assert set(informer.keys()) == expected
                for one in present.values():
                    # What an informer claims to cover, it has.
                    if informer.covers(one.meta.key):
                        assert informer.get_raw(one.meta.key) is not None
                if by != "namespace":
                    assert not informer.covers(ObjectKey("ns-z", "missing"))
            assert len(source.calls_of("watch")) <= len(rounds)
            for informer in informers:
                cache.release(informer)
            assert cache.feeds == []
            await asyncio.sleep(1)
            assert source.open_streams == 0
            running.cancel()

    run()
