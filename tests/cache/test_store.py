from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubewright.api import Kind, ObjectKey, RawObject, raw_object
from kubewright.cache import Selection, StoreChange
from kubewright.cache.store import Store

KIND = Kind(group="example.com", version="v1", kind="Widget", plural="widgets")
A = ObjectKey("default", "a")
WORLDS = 8


def obj(version: int, *, uid: str = "u1", name: str = "a", labels: dict[str, str] | None = None) -> RawObject:
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    return raw_object(msgspec.json.encode({"metadata": {**meta, "labels": labels or {"in": "yes"}}}))


@pytest.fixture
def store() -> Store:
    """A store that has taken in an empty list of version 10."""
    store = Store(Selection(KIND))
    store.begin_list()
    store.end_list("10")
    return store


def shape(changes: Any) -> list[tuple[str, str]]:
    return [
        (
            change.old.meta.resource_version if change.old else "",
            change.new.meta.resource_version if change.new else "",
        )
        for change in changes
    ]


def test_a_write_and_its_event_are_one_change(store: Store) -> None:
    assert shape(store.record_write(obj(11))) == [("", "11")]
    assert shape(store.apply(obj(11))) == []


def test_changed_objects_are_trimmed_once() -> None:
    trimmed: list[str] = []

    def trim(found: RawObject) -> RawObject:
        trimmed.append(found.meta.resource_version)
        return obj(int(found.meta.resource_version), labels={"in": "trimmed"})

    store = Store(Selection(KIND, labels="in=yes"), trim)
    store.record_write(obj(11))
    store.apply(obj(11))
    store.apply(obj(12))
    store.record_write(obj(12))
    assert trimmed == ["11", "12"]
    assert store.objects[A].meta.labels == {"in": "trimmed"}


def test_a_write_recorded_after_its_event_is_not_a_change(store: Store) -> None:
    store.apply(obj(11))
    assert shape(store.record_write(obj(11))) == []


def test_an_older_event_does_not_undo_a_write(store: Store) -> None:
    store.apply(obj(11))
    store.record_write(obj(13))
    assert shape(store.apply(obj(12))) == []
    assert store.objects[A].meta.resource_version == "13"


def test_a_response_after_the_deletion_does_not_restore_the_object(store: Store) -> None:
    store.apply(obj(11))
    store.delete(obj(13))
    assert shape(store.record_write(obj(12))) == []
    assert A not in store.objects


def test_a_late_event_does_not_restore_a_deleted_object(store: Store) -> None:
    store.apply(obj(11))
    assert shape(store.record_delete(A, "u1", "11")) == [("11", "")]
    assert shape(store.apply(obj(12))) == []
    assert shape(store.delete(obj(13))) == []
    assert A not in store.objects


def test_an_object_recreated_after_our_delete_is_new(store: Store) -> None:
    store.apply(obj(11))
    store.record_delete(A, "u1", "")
    assert shape(store.record_write(obj(13, uid="u2"))) == [("", "13")]
    assert shape(store.delete(obj(12))) == []
    assert shape(store.apply(obj(13, uid="u2"))) == []
    assert store.objects[A].meta.uid == "u2"


def test_responses_to_two_deletes_may_arrive_in_either_order(store: Store) -> None:
    store.record_delete(A, "u2", "13")
    store.record_delete(A, "u1", "11")
    assert shape(store.record_write(obj(13, uid="u2"))) == []
    assert shape(store.apply(obj(13, uid="u2"))) == []


def test_a_list_older_than_our_delete_does_not_restore_the_object(store: Store) -> None:
    store.apply(obj(11))
    store.begin_list()
    store.record_delete(A, "u1", "11")
    store.apply(obj(11))
    assert shape(store.end_list("11")) == []
    assert A not in store.objects
    assert shape(store.apply(obj(12))) == []


def test_a_list_older_than_the_watch_events_is_another_history(store: Store) -> None:
    store.apply(obj(20))
    store.apply(obj(21, uid="u2", name="b"))
    store.apply(obj(22, uid="u3", name="c"))
    store.record_delete(ObjectKey("default", "c"), "u3", "22")
    store.begin_list()
    assert shape(store.apply(obj(12))) == []
    assert shape(store.apply(obj(11, uid="u3", name="c"))) == []
    assert shape(store.end_list("15")) == [("21", ""), ("20", "12"), ("", "11")]
    assert sorted(found.meta.resource_version for found in store.objects.values()) == ["11", "12"]
    assert shape(store.apply(obj(16))) == [("12", "16")]
    assert shape(store.record_write(obj(17))) == [("16", "17")]


def test_a_list_that_must_have_seen_a_state_and_shows_an_older_one_is_another_history(store: Store) -> None:
    store.apply(obj(20))
    store.begin_list()
    store.apply(obj(12))
    assert shape(store.end_list("30")) == [("20", "12")]


def test_a_list_that_was_cut_off_does_not_count_when_the_history_is_another(store: Store) -> None:
    store.apply(obj(32))
    store.begin_list()
    assert shape(store.apply(obj(25, uid="u2"))) == []
    store.begin_list()
    assert shape(store.apply(obj(25, uid="u2"))) == []
    assert shape(store.end_list("28")) == [("32", ""), ("", "25")]


def test_a_list_older_than_one_that_was_cut_off_is_corrected_by_the_watch(store: Store) -> None:
    store.apply(obj(32))
    store.begin_list()
    assert shape(store.apply(obj(25, uid="u2"))) == []
    store.begin_list()
    assert shape(store.apply(obj(17, uid="u2"))) == []
    assert shape(store.end_list("24")) == [("32", ""), ("", "17")]
    assert shape(store.apply(obj(25, uid="u2"))) == [("17", "25")]


def test_a_later_event_of_the_same_list_corrects_an_older_state(store: Store) -> None:
    store.apply(obj(11))
    store.begin_list()
    store.record_write(obj(13))
    store.apply(obj(11))
    store.apply(obj(13))
    assert shape(store.end_list("14")) == []
    assert store.objects[A].meta.resource_version == "13"


def test_a_list_older_than_our_write_does_not_remove_it(store: Store) -> None:
    store.begin_list()
    store.record_write(obj(12))
    assert shape(store.end_list("11")) == []
    assert A in store.objects


def test_objects_missing_from_a_list_are_deletes_with_the_last_state(store: Store) -> None:
    store.apply(obj(11))
    store.apply(obj(12, name="b"))
    store.begin_list()
    store.apply(obj(12, name="b"))
    (change,) = store.end_list("20")
    assert change == StoreChange(A, obj(11), None)


def test_an_object_recreated_during_an_outage_is_a_delete_and_an_add(store: Store) -> None:
    store.apply(obj(11))
    store.begin_list()
    assert shape(store.apply(obj(15, uid="u2"))) == [("11", ""), ("", "15")]


def test_a_delete_of_an_older_object_leaves_the_newer_one(store: Store) -> None:
    store.apply(obj(15, uid="u2"))
    assert shape(store.record_delete(A, "u1", "11")) == []
    assert shape(store.record_delete(A, "u1", "")) == []
    assert A in store.objects


def test_answers_outside_the_selection_are_not_stored() -> None:
    store = Store(Selection(KIND, namespace="other"))
    assert shape(store.record_write(obj(11))) == []
    store = Store(Selection(KIND, labels="in=yes"))
    assert shape(store.record_write(obj(11, labels={"in": "no"}))) == []


def test_a_write_that_takes_an_object_out_of_the_selection_removes_it() -> None:
    store = Store(Selection(KIND, labels="in=yes"))
    store.begin_list()
    store.end_list("10")
    store.apply(obj(11))
    assert shape(store.record_write(obj(13, labels={"in": "no"}))) == [("11", "")]
    assert shape(store.apply(obj(12))) == []
    assert shape(store.delete(obj(13))) == []
    assert shape(store.apply(obj(14))) == [("", "14")]


def test_objects_before_the_end_of_the_first_list_are_initial() -> None:
    store = Store(Selection(KIND))
    store.begin_list()
    assert [change.initial for change in store.apply(obj(5))] == [True]
    assert [change.initial for change in store.record_write(obj(6))] == [False]
    store.end_list("9")
    assert [change.initial for change in store.apply(obj(11))] == [False]


def test_versions_that_are_not_numbers_are_ordered_by_the_watch() -> None:
    store = Store(Selection(KIND))
    store.begin_list()
    store.end_list("v-a")
    opaque = raw_object(b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"v-b"}}')
    newer = raw_object(b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"v-a"}}')
    assert shape(store.record_write(opaque)) == []
    assert shape(store.apply(opaque)) == [("", "v-b")]
    assert shape(store.apply(newer)) == [("v-b", "v-a")]
    assert shape(store.delete(opaque)) == [("v-a", "")]


@dataclass
class Happening:
    """One step of the server's history for a key; `state` is what a reader of the selection sees then of `whole`."""

    key: ObjectKey
    version: int
    state: RawObject | None
    event: tuple[str, RawObject] | None
    whole: RawObject | None


class StoreMachine(RuleBasedStateMachine):
    """Race writes of ours and others, late answers, a lagging watch and lists, against the true history.

    Whatever the order, the store must show, for each key, a state that the server had, never one older
    than what it has been notified, and its changes must add up to what it shows.
    """

    selection = Selection(KIND, labels="in=yes")
    names = ("a", "b")

    @initialize()
    def start(self) -> None:
        self.store = Store(self.selection)
        self.version = 10
        self.uids = 0
        self.live: dict[ObjectKey, RawObject] = {}
        self.history: list[Happening] = []
        self.watched = 0
        self.answers: list[RawObject | tuple[ObjectKey, str, str, int]] = []
        self.floors: dict[ObjectKey, int] = {}
        self.shown: dict[ObjectKey, RawObject] = {}
        self.listing: tuple[int, list[RawObject]] | None = None
        self.world = 0
        self.restoring = False
        self.listed = 0
        self.begin_list(0.0)

    def tick(self) -> None:
        """Move to the next version; those of two worlds never meet, as one revision belongs to one object."""
        self.version = (self.version // WORLDS + 1) * WORLDS + self.world

    def take(self, changes: Any) -> None:
        for change in changes:
            assert change.old is not change.new
            assert self.shown.get(change.key) is change.old
            if change.new is None:
                del self.shown[change.key]
            else:
                self.shown[change.key] = change.new

    def notified(self, key: ObjectKey, version: int) -> None:
        self.floors[key] = max(self.floors.get(key, 0), version)

    def seen(self, found: RawObject | None) -> RawObject | None:
        return found if found is not None and self.selection.selects(found) else None

    def happen(self, key: ObjectKey, new: RawObject | None) -> None:
        before, after = self.seen(self.live.get(key)), self.seen(new)
        last = self.live.get(key)
        if new is None:
            del self.live[key]
        else:
            self.live[key] = new
        event = None
        if after is not None:
            event = ("ADDED" if before is None else "MODIFIED", after)
        elif before is not None and last is not None:
            event = ("DELETED", obj(self.version, uid=last.meta.uid, name=key.name))
        self.history.append(Happening(key, self.version, after, event, new))

    @rule(name=st.sampled_from(names), inside=st.sampled_from([True, True, True, False]), ours=st.booleans())
    def write(self, name: str, inside: bool, ours: bool) -> None:
        key = ObjectKey("default", name)
        self.tick()
        if key not in self.live:
            self.uids += 1
        uid = self.live[key].meta.uid if key in self.live else f"u{self.uids}"
        new = obj(self.version, uid=uid, name=name, labels={"in": "yes" if inside else "no"})
        self.happen(key, new)
        if ours:
            self.answers.append(raw_object(new.raw))

    @rule(name=st.sampled_from(names), ours=st.booleans(), versioned=st.booleans())
    def delete(self, name: str, ours: bool, versioned: bool) -> None:
        key = ObjectKey("default", name)
        if key not in self.live:
            return
        last = self.live[key].meta
        self.tick()
        self.happen(key, None)
        if ours:
            self.answers.append((key, last.uid, last.resource_version if versioned else "", self.version))

    @precondition(lambda self: self.answers and not self.restoring)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        if isinstance(answer, RawObject):
            self.take(self.store.record_write(answer))
            self.notified(answer.meta.key, int(answer.meta.resource_version))
            return
        key, uid, version, ended = answer
        known = self.store.objects.get(key)
        self.take(self.store.record_delete(key, uid, version))
        if version or (known is not None and known.meta.uid == uid):
            self.notified(key, ended)

    @precondition(lambda self: self.listing is None and self.watched < len(self.history))
    @rule()
    def watch(self) -> None:
        happening = self.history[self.watched]
        self.watched += 1
        if happening.event is None:
            return
        kind, found = happening.event
        copy = raw_object(found.raw)
        self.take(self.store.delete(copy) if kind == "DELETED" else self.store.apply(copy))
        self.notified(happening.key, happening.version)

    @precondition(lambda self: self.listing is None)
    @rule()
    def bookmark(self) -> None:
        done = self.watched == len(self.history)
        version = self.version if done else self.history[self.watched].version - 1
        self.store.advance(str(version))
        self.report_all(version)

    @precondition(lambda self: self.listing is None and self.world < WORLDS - 1)
    @rule(kept=st.floats(0, 1))
    def restore(self, kept: float) -> None:
        """Restore an earlier state, as a backup does; the watch had reported everything, and lists again."""
        while self.watched < len(self.history):
            self.watch()
        self.bookmark()
        self.history = self.history[: int(kept * len(self.history))]
        self.live = {}
        for happening in self.history:
            if happening.whole is None:
                del self.live[happening.key]
            else:
                self.live[happening.key] = happening.whole
        self.version = self.history[-1].version if self.history else 10
        self.watched = len(self.history)
        self.world += 1
        self.answers, self.floors, self.restoring, self.listed = [], {}, True, 0
        self.begin_list(0.0)

    @rule(lag=st.floats(0, 1))
    def begin_list(self, lag: float) -> None:
        """Take a snapshot that may be older than our writes; a list that was begun before ends unfinished.

        Lists are consistent reads, so one is never older than the one before it. Without a restore the store
        needs no such guarantee, because it keeps the newest state of each object, so it is not given there.
        """
        at = len(self.history) - int(lag * (len(self.history) - self.watched))
        if self.restoring:
            at = max(at, self.listed)
        self.listed = at
        snapshot: dict[ObjectKey, RawObject | None] = {}
        for happening in self.history[:at]:
            snapshot[happening.key] = happening.state
        self.listing = (at, [found for _, found in sorted(snapshot.items()) if found is not None])
        self.store.begin_list()

    @precondition(lambda self: self.listing is not None and self.listing[1])
    @rule()
    def list_one(self) -> None:
        assert self.listing is not None
        found = self.listing[1].pop(0)
        self.take(self.store.apply(raw_object(found.raw)))
        self.notified(found.meta.key, int(found.meta.resource_version))

    @precondition(lambda self: self.listing is not None and not self.listing[1])
    @rule()
    def end_list(self) -> None:
        assert self.listing is not None
        at = self.listing[0]
        version = self.version if at == len(self.history) else self.history[at].version - 1
        self.take(self.store.end_list(str(version)))
        self.watched, self.listing, self.restoring = at, None, False
        self.report_all(version)

    def report_all(self, version: int) -> None:
        for happening in self.history:
            if happening.version <= version:
                self.notified(happening.key, happening.version)

    @invariant()
    def shows_a_state_not_older_than_the_reported_one(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.objects == self.shown
        if self.restoring:
            return
        for name in self.names:
            key = ObjectKey("default", name)
            floor = self.floors.get(key, 0)
            states: list[RawObject | None] = [None]
            for happening in self.history:
                if happening.key == key:
                    if happening.version <= floor:
                        states = []
                    states.append(happening.state)
            found = self.store.objects.get(key)
            versions = [state and state.meta.resource_version for state in states]
            assert (found and found.meta.resource_version) in versions

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        while self.listing is not None:
            if self.listing[1]:
                self.list_one()
            else:
                self.end_list()
        while self.watched < len(self.history):
            self.watch()
        for answer in self.answers:
            if isinstance(answer, RawObject):
                self.take(self.store.record_write(answer))
            else:
                self.take(self.store.record_delete(*answer[:3]))
        expected = {key: found for key, found in self.live.items() if self.selection.selects(found)}
        assert self.store.objects == expected
        self.store.advance(str(self.version + 1))
        self.store.begin_list()
        for found in expected.values():
            self.take(self.store.apply(raw_object(found.raw)))
        self.take(self.store.end_list(str(self.version + 1)))
        assert self.store.objects == expected
        assert self.store.pending_deletions == 0


class PlainStoreMachine(StoreMachine):
    """The same without a selector, where the store may forget sooner."""

    selection = Selection(KIND)


def test_a_list_cut_off_after_a_restore_is_followed_by_one_that_is_not_older() -> None:
    machine = PlainStoreMachine()
    machine.start()
    machine.write("a", inside=True, ours=False)
    machine.delete("a", ours=False, versioned=False)
    machine.write("a", inside=True, ours=False)
    machine.end_list()
    machine.restore(kept=0.0)
    machine.write("a", inside=True, ours=False)
    machine.write("a", inside=True, ours=False)
    machine.begin_list(0.0)
    machine.list_one()
    machine.begin_list(0.5)
    machine.list_one()
    machine.end_list()
    machine.shows_a_state_not_older_than_the_reported_one()
    machine.teardown()


StoreMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
PlainStoreMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestStoreMachine = StoreMachine.TestCase
TestPlainStoreMachine = PlainStoreMachine.TestCase
