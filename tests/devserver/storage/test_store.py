"""The store: one rising revision, history that can be read back, and nothing forgotten too early."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.storage import ObjectStore, Record, WriteConflict
from kubewright.testing import virtual_time


def write(store: ObjectStore, name: str, key: str, value: str) -> Record:
    collection = store.collection(name)
    return store.put(collection, key, collection.get(key), lambda _: value.encode(), "shape", {})


def drop(store: ObjectStore, name: str, key: str) -> None:
    collection = store.collection(name)
    record = collection.get(key)
    if record is not None:
        store.delete(collection, record)


def state(records: list[Record]) -> dict[str, str]:
    return {record.key: record.data.decode() for record in records}


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_all_collections_share_one_revision() -> None:
    store = ObjectStore(None, Time())
    first, second = write(store, "pods", "a/x", "1"), write(store, "nodes", "n", "1")
    assert second.revision == first.revision + 1 == store.revision


def test_a_write_made_from_an_old_record_is_refused() -> None:
    store = ObjectStore(None, Time())
    old = write(store, "pods", "a/x", "1")
    write(store, "pods", "a/x", "2")
    with pytest.raises(WriteConflict):
        store.put(store.collection("pods"), "a/x", old, lambda _: b"3", "shape", {})
    with pytest.raises(WriteConflict):
        store.delete(store.collection("pods"), old)
    assert state(store.collection("pods").records()) == {"a/x": "2"}


KEYS = st.sampled_from(["a/x", "a/y", "a-b/x", "b/x", "b/yy"])
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.text("01", min_size=1, max_size=2))), max_size=30)


@given(CHANGES)
def test_every_past_state_can_be_listed(changes: list[tuple[str, str | None]]) -> None:
    store = ObjectStore(None, Time())
    pods = store.collection("pods")
    known = {store.revision: dict[str, str]()}
    for key, value in changes:
        if value is None:
            drop(store, "pods", key)
        else:
            write(store, "pods", key, value)
        known[store.revision] = state(pods.records())
    for revision, expected in known.items():
        assert state(pods.page_at(revision, "", "")) == expected
        inside = {key: value for key, value in expected.items() if key.startswith("a/")}
        assert state(pods.page_at(revision, "a/", "")) == inside


@given(CHANGES)
def test_events_lead_from_any_state_to_the_present(changes: list[tuple[str, str | None]]) -> None:
    store = ObjectStore(None, Time())
    pods = store.collection("pods")
    seen: list[tuple[int, dict[str, str]]] = [(store.revision, {})]
    for key, value in changes:
        if value is None:
            drop(store, "pods", key)
        else:
            write(store, "pods", key, value)
        seen.append((store.revision, state(pods.records())))
    for revision, past in seen:
        for event in pods.after(revision):
            if event.new is None:
                del past[event.key]
            else:
                past[event.key] = event.new.data.decode()
        assert past == state(pods.records())


def test_records_are_listed_in_key_order_by_prefix() -> None:
    store = ObjectStore(None, Time())
    for key in ("b/x", "a/y", "a-b/z", "a/x"):
        write(store, "pods", key, "1")
    pods = store.collection("pods")
    assert [record.key for record in pods.records()] == ["a-b/z", "a/x", "a/y", "b/x"]
    assert [record.key for record in pods.records("a/")] == ["a/x", "a/y"]
    assert [record.key for record in pods.page("a/", "a/x\0")] == ["a/y"]


def test_compaction_raises_the_floor_only_over_what_is_forgotten() -> None:
    store = ObjectStore(None, Time())
    last = write(store, "pods", "a/x", "1")
    write(store, "nodes", "n", "1")
    store.compact()
    assert store.collection("pods").floor == last.revision
    assert store.collection("pods").after(0) == []
    assert state(store.collection("pods").records()) == {"a/x": "1"}


def test_history_is_bounded_in_age() -> None:
    time = Time()
    store = ObjectStore(None, time)
    old = write(store, "pods", "a/x", "1")
    time.now = 400.0
    write(store, "pods", "a/x", "2")
    store.tidy()
    pods = store.collection("pods")
    assert pods.floor == old.revision
    assert len(pods.after(0)) == 1


def test_revisions_are_compacted_after_five_to_ten_minutes_as_in_etcd() -> None:
    time = Time()
    store = ObjectStore(None, time)
    first = write(store, "pods", "a/x", "1").revision
    for seconds, compacted in ((299.0, 0), (300.0, 1), (599.0, 1), (600.0, first)):
        time.now = seconds
        store.tidy()
        assert store.compacted == compacted


def test_history_is_bounded_in_size() -> None:
    store = ObjectStore(None, Time())
    for index in range(20):
        write(store, "pods", "a/x", str(index) * 10)
    pods = store.collection("pods")
    pods.trim(max_events=5, max_bytes=10**9)
    assert len(pods.after(0)) == 5
    pods.trim(max_events=5, max_bytes=40)
    assert pods.history_bytes <= 40
    assert pods.history_bytes == sum(event.size for event in pods.after(0))


async def test_waiting_for_a_revision_ends_when_it_is_reached() -> None:
    store = ObjectStore(None, Time())
    wanted = store.revision + 1
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(store.wait_for(wanted, 10))
        await asyncio.sleep(0)
        write(store, "pods", "a/x", "1")
        assert await waiting
    assert not await store.wait_for(wanted + 100, 0.001)


@virtual_time
async def test_waiting_for_a_change_ends_with_the_change_or_the_deadline() -> None:
    store = ObjectStore(None, Time())
    pods = store.collection("pods")
    now = asyncio.get_running_loop().time
    began = now()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(pods.changed(began + 60))
        await asyncio.sleep(0)
        write(store, "pods", "a/x", "1")
        await waiting
    assert now() == began
    await pods.changed(began + 60)
    assert now() == pytest.approx(began + 60)


async def test_a_watch_that_ended_or_was_cancelled_waits_no_more() -> None:
    store = ObjectStore(None, Time())
    pods = store.collection("pods")
    now = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(pods.changed(now + 60))
        await asyncio.sleep(0)
        assert pods.waiting == 1
        gone.cancel()
    await pods.changed(now)
    assert pods.waiting == 0
