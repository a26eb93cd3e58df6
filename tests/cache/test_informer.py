import asyncio
import logging
from typing import Any

import pytest

from kubewright.api import DecodeError, Kind, Model, ObjectKey, Resource
from kubewright.cache import CacheSyncTimeout, Index, Informer, Selection, StoreChange, Undecodable
from kubewright.cache.feed import Feed, FeedOptions
from kubewright.metrics import Registry
from kubewright.testing.virtual_time import settle, virtual_time


class WidgetSpec(Model):
    color: str = ""
    sizes: list[int] = []


class WidgetStatus(Model):
    ready: bool = False


class Widget(Resource[WidgetSpec, WidgetStatus], group="example.com", version="v1"):
    """A thing to hold in a cache."""


A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


def informer_of(source: Any, make: Any, *, options: Any = None, **narrowed: Any) -> Informer[Widget]:
    made = FeedOptions(metrics=Registry(), **(options or {}))
    return Informer(Feed(source, Selection(make.kind, **narrowed), made), Widget)


class Running:
    """An informer that follows its source until the block ends."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer

    async def __aenter__(self) -> Informer[Any]:
        self.task = asyncio.ensure_future(self.informer.feed.run())
        await settle()
        return self.informer

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def initial(make: Any, *objects: Any, version: int = 10) -> list[Any]:
    """The events that bring these objects as the present state."""
    from kubewright.api import WatchEvent

    return [*(WatchEvent("ADDED", obj) for obj in objects), make.bookmark(version, initial=True)]


@virtual_time
async def test_an_informer_reads_the_objects_of_the_server(source: Any, make: Any) -> None:
    objects = [
        make.object("a", 3, spec={"color": "red"}),
        make.object("b", 4, namespace="other", labels={"x": "y"}),
    ]
    source.script = [make.answer(*initial(make, *objects), hangs=True)]
    async with Running(informer_of(source, make)) as informer:
        await informer.wait_synced()
        found = informer.get(A)
        assert isinstance(found, Widget)
        assert found.spec.color == "red"
        assert informer.get(ObjectKey("default", "missing")) is None
        assert [widget.metadata.name for widget in informer.list()] == ["a", "b"]
        assert [widget.metadata.name for widget in informer.list("other")] == ["b"]
        assert [widget.metadata.name for widget in informer.list(labels="x=y")] == ["b"]
        assert informer.keys() == [A, ObjectKey("other", "b")]
        raw = informer.get_raw(A)
        assert raw is not None
        assert raw.meta.resource_version == "3"


@virtual_time
async def test_changes_to_a_read_object_do_not_reach_the_cache(source: Any, make: Any) -> None:
    source.script = [make.answer(*initial(make, make.object("a", 3, spec={"sizes": [1]})), hangs=True)]
    async with Running(informer_of(source, make)) as informer:
        first = informer.get(A)
        first.spec.sizes.append(2)
        first.metadata.labels["mine"] = "yes"
        assert informer.get(A).spec.sizes == [1]
        assert informer.get(A).metadata.labels == {}


@virtual_time
async def test_wire_values_are_read_where_there_is_no_class(source: Any, make: Any) -> None:
    source.script = [make.answer(*initial(make, make.object("a", 3, spec={"odd": [1, None]})), hangs=True)]
    untyped = Informer(Feed(source, Selection(make.kind), FeedOptions(metrics=Registry())), dict[str, Any])
    async with Running(untyped) as informer:
        assert informer.get(A)["spec"] == {"odd": [1, None]}
        assert informer.get(A)["kind"] == "Widget"


@virtual_time
async def test_items_of_a_list_are_read_with_their_kind(source: Any, make: Any) -> None:
    from kubewright.api import raw_object

    bare = raw_object(b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"3"}}')
    source.script = [make.answer(make.page(7, bare))]
    options = FeedOptions(metrics=Registry(), streaming=False)
    async with Running(Informer(Feed(source, Selection(make.kind), options), dict)) as informer:
        assert informer.get(A)["kind"] == "Widget"
        assert informer.get(A)["apiVersion"] == "example.com/v1"


@virtual_time
async def test_the_same_failure_is_logged_again_only_after_a_recovery(
    source: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    lost = make.error("connection lost")
    source.script = [
        make.answer(*initial(make), error=lost, pause=1),
        make.answer(error=lost),
        make.answer(make.event("ADDED", "a", 20), error=lost, pause=1),
        make.answer(make.bookmark(30), hangs=True),
    ]
    caplog.set_level(logging.INFO)
    async with Running(informer_of(source, make)):
        await asyncio.sleep(60)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING", "INFO"]


@virtual_time
async def test_notifies_subscribers_of_the_current_state_and_of_changes(source: Any, make: Any) -> None:
    changes: list[StoreChange] = []
    events = [make.event("MODIFIED", "a", 11), make.event("DELETED", "a", 12)]
    source.script = [make.answer(*initial(make, make.object("a", 3)), *events, hangs=True)]
    informer = informer_of(source, make)
    informer.subscribe(changes.append)
    async with Running(informer):
        seen = [(change.old is None, change.new is None, change.initial) for change in changes]
        assert seen == [(True, False, True), (False, False, False), (False, True, False)]


@virtual_time
async def test_a_late_subscriber_gets_the_current_state_first(source: Any, make: Any) -> None:
    source.script = [make.answer(*initial(make, make.object("a", 3), make.object("b", 4)), hangs=True)]
    async with Running(informer_of(source, make)) as informer:
        changes: list[StoreChange] = []
        unsubscribe = informer.subscribe(changes.append)
        assert [(change.key, change.initial) for change in changes] == [(A, True), (B, True)]
        unsubscribe()
        informer.record_write(make.object("a", 20))
        assert len(changes) == 2


@virtual_time
async def test_a_failing_subscriber_does_not_affect_other_subscribers(
    source: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    changes: list[StoreChange] = []
    source.script = [make.answer(*initial(make, make.object("a", 3)), hangs=True)]
    informer = informer_of(source, make)
    informer.subscribe(lambda change: 1 / 0)
    informer.subscribe(changes.append)
    async with Running(informer):
        assert len(changes) == 1
    assert "A subscriber failed on a change of widgets.example.com default/a" in caplog.text


@virtual_time
async def test_own_writes_are_readable_at_once_and_notified_once(source: Any, make: Any) -> None:
    changes: list[StoreChange] = []
    source.script = [
        make.answer(*initial(make, make.object("a", 3)), hangs=False, pause=1),
        make.answer(make.event("MODIFIED", "a", 11), make.event("DELETED", "b", 13), hangs=True, delay=5),
    ]
    async with Running(informer_of(source, make)) as informer:
        await informer.wait_synced()
        informer.subscribe(changes.append)
        changes.clear()
        informer.record_write(make.object("a", 11, spec={"color": "blue"}))
        informer.record_write(make.object("b", 12))
        assert informer.get(A).spec.color == "blue"
        informer.record_delete(B, "uid-b", "12")
        assert informer.get(B) is None
        await asyncio.sleep(10)
        assert [(change.key, change.new is None) for change in changes] == [(A, False), (B, False), (B, True)]


@virtual_time
async def test_objects_deleted_during_an_outage_are_notified_as_deleted(source: Any, make: Any) -> None:
    changes: list[StoreChange] = []
    source.script = [
        make.answer(
            *initial(make, make.object("a", 3), make.object("b", 4)), error=make.error("old", 410, "Expired")
        ),
        make.answer(*initial(make, make.object("b", 4), version=20), hangs=True),
    ]
    informer = informer_of(source, make)
    by_name = Index(Widget, lambda widget: [widget.metadata.name])
    informer.add_index(by_name)
    async with Running(informer):
        informer.subscribe(changes.append)
        changes.clear()
        await asyncio.sleep(10)
        (change,) = changes
        assert (change.key, change.new) == (A, None)
        assert change.old is not None
        assert change.old.meta.resource_version == "3"
        assert informer.keys_by_index(by_name, "a") == []
        assert informer.keys_by_index(by_name, "b") == [B]


@virtual_time
async def test_indexes_follow_the_objects(source: Any, make: Any) -> None:
    by_color = Index(Widget, lambda widget: [widget.spec.color])
    source.script = [make.answer(*initial(make, make.object("a", 3, spec={"color": "red"})), hangs=True)]
    informer = informer_of(source, make)
    informer.add_index(by_color)
    async with Running(informer):
        assert [widget.metadata.name for widget in informer.by_index(by_color, "red")] == ["a"]
        informer.record_write(make.object("a", 11, spec={"color": "blue"}))
        assert informer.by_index(by_color, "red") == []
        assert informer.keys_by_index(by_color, "blue") == [A]
        by_size = Index(Widget, lambda widget: map(str, widget.spec.sizes))
        informer.add_index(by_size)
        informer.add_index(by_size)
        informer.record_write(make.object("b", 12, spec={"sizes": [1, 2, 1]}))
        assert informer.keys_by_index(by_size, "1") == [B]


@virtual_time
async def test_an_index_is_maintained_while_it_is_referenced(source: Any, make: Any) -> None:
    asked: list[str] = []

    def values(widget: Widget) -> list[str]:
        asked.append(widget.metadata.resource_version)
        return [widget.metadata.name]

    source.script = [make.answer(*initial(make, make.object("a", 3)), hangs=True)]
    informer = informer_of(source, make)
    async with Running(informer):
        by_name = Index(Widget, values)
        for index in (by_name, Index(Widget, values)):
            informer.add_index(index)
            assert informer.keys_by_index(index, "a") == [A]
        del index
        asked.clear()
        informer.record_write(make.object("a", 11))
        assert asked == ["11"]
        assert informer.keys_by_index(by_name, "a") == [A]


@virtual_time
async def test_objects_that_cannot_be_decoded_are_reported_once_and_do_not_block_others(
    source: Any, make: Any
) -> None:
    reports: list[Undecodable] = []
    objects = [make.object("a", 3, spec={"color": 7}), make.object("b", 4, spec={"color": "red"})]
    source.script = [make.answer(*initial(make, *objects), hangs=True)]
    informer = informer_of(source, make)
    informer.on_undecodable(reports.append)
    by_color = Index(Widget, lambda widget: [widget.spec.color])
    informer.add_index(by_color)
    async with Running(informer):
        assert [report.key for report in reports] == [A]
        assert isinstance(reports[0].error, DecodeError)
        for _ in range(3):
            assert [widget.metadata.name for widget in informer.list()] == ["b"]
            with pytest.raises(DecodeError):
                informer.get(A)
        assert informer.keys_by_index(by_color, "red") == [B]
        assert len(reports) == 1
        late: list[Undecodable] = []
        informer.on_undecodable(late.append)
        assert late == reports
        informer.record_write(make.object("a", 11, spec={"color": 8}))
        assert len(reports) == 2
        informer.record_write(make.object("a", 12, spec={"color": "red"}))
        assert len(reports) == 2
        assert set(informer.keys_by_index(by_color, "red")) == {A, B}


@virtual_time
async def test_an_index_that_raises_is_reported_for_that_object_alone(source: Any, make: Any) -> None:
    reports: list[Undecodable] = []
    objects = [make.object("a", 3), make.object("b", 4, spec={"sizes": [5]})]
    source.script = [make.answer(*initial(make, *objects), hangs=True)]
    informer = informer_of(source, make)
    informer.on_undecodable(reports.append)
    by_first = Index(Widget, lambda widget: [str(widget.spec.sizes[0])])
    informer.add_index(by_first)
    async with Running(informer):
        assert [(report.key, type(report.error)) for report in reports] == [(A, IndexError)]
        assert informer.keys_by_index(by_first, "5") == [B]


@virtual_time
async def test_a_transform_that_raises_is_reported_for_that_object_alone(source: Any, make: Any) -> None:
    def choose(wire: dict[str, Any]) -> dict[str, Any]:
        return {**wire, "spec": {"color": wire["spec"]["color"].upper()}}

    reports: list[Undecodable] = []
    objects = [make.object("a", 3), make.object("b", 4, spec={"color": "red"})]
    source.script = [make.answer(*initial(make, *objects), hangs=True)]
    informer = informer_of(source, make, transform=choose)
    informer.on_undecodable(reports.append)
    async with Running(informer):
        assert [(report.key, type(report.error)) for report in reports] == [(A, KeyError)]
        assert informer.get(A) is not None
        assert informer.get(B).spec.color == "RED"


@virtual_time
async def test_a_rejected_watch_is_a_problem_until_it_succeeds(
    source: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = make.answer(error=make.error("widgets is forbidden: User cannot watch", 403, "Forbidden"))
    source.script = [refused, refused, make.answer(*initial(make), hangs=True)]
    caplog.set_level(logging.INFO)
    async with Running(informer_of(source, make)) as informer:
        assert informer.problems == ["widgets.example.com: widgets is forbidden: User cannot watch"]
        assert not informer.synced
        await informer.wait_synced()
        assert informer.problems == []
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@virtual_time
async def test_an_unreachable_server_is_not_a_problem_of_the_informer(source: Any, make: Any) -> None:
    source.script = [make.answer(error=make.error("connection refused"))]
    async with Running(informer_of(source, make)) as informer:
        assert informer.problems == []


@virtual_time
async def test_a_sync_timeout_names_the_reason(source: Any, make: Any) -> None:
    source.script = [
        make.answer(error=make.error("the server could not find the requested resource", 404))
    ] * 99
    async with Running(informer_of(source, make)) as informer:
        with pytest.raises(
            CacheSyncTimeout,
            match=r"widgets\.example\.com did not sync within 120 s: the server could not find the requested",
        ):
            await informer.wait_synced()


@virtual_time
async def test_managed_fields_of_other_managers_are_dropped(source: Any, make: Any) -> None:
    from kubewright.api import WatchEvent, raw_object

    data = (
        b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"3","managedFields":'
        b'[{"manager":"kubectl","fieldsV1":{}},{"manager":"me","fieldsV1":{"f:spec":{}}}]},"spec":{}}'
    )
    source.script = [
        make.answer(WatchEvent("ADDED", raw_object(data)), make.bookmark(5, initial=True), hangs=True)
    ]
    async with Running(informer_of(source, make, options={"field_managers": ["me"]})) as informer:
        raw = informer.get_raw(A)
        assert raw is not None
        assert b"kubectl" not in raw.raw
        assert bytes(raw.meta.managed_fields) == b'[{"manager":"me","fieldsV1":{"f:spec":{}}}]'
        assert [entry.manager for entry in informer.get(A).metadata.managed_fields] == ["me"]


@virtual_time
async def test_a_response_shared_by_several_informers_is_trimmed_in_each(source: Any, make: Any) -> None:
    from kubewright.api import raw_object

    answer = raw_object(
        b'{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"3",'
        b'"managedFields":[{"manager":"kubectl"}]}}'
    )
    informers = [informer_of(source, make), informer_of(source, make, namespace="default")]
    for informer in informers:
        informer.record_write(answer)
        raw = informer.get_raw(A)
        assert raw is not None
        assert b"managedFields" not in raw.raw
    assert bytes(answer.meta.managed_fields) == b'[{"manager":"kubectl"}]'


@virtual_time
async def test_a_long_list_lets_other_tasks_run(source: Any, make: Any) -> None:
    objects = [make.object(f"o{number}", number) for number in range(3000)]
    source.script = [make.answer(*initial(make, *objects, version=5000), hangs=True)]
    informer = informer_of(source, make)
    counts: list[int] = []

    async def look() -> None:
        while not informer.synced:
            counts.append(len(informer.keys()))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(informer.feed.run())
        await look()
        running.cancel()
    assert len(counts) >= 5


@virtual_time
async def test_metrics_count_objects_and_undecodable_ones(source: Any, make: Any) -> None:
    registry = Registry()
    objects = [make.object("a", 3, spec={"color": 7}), make.object("b", 4)]
    source.script = [make.answer(*initial(make, *objects), hangs=True)]
    informer = Informer(Feed(source, Selection(make.kind), FeedOptions(metrics=registry)), Widget)

    def gauges() -> dict[str, float]:
        return {
            sample.name: sample.value
            for family in registry.families()
            for sample in family.samples
            if family.kind == "gauge"
        }

    async with Running(informer):
        informer.list()
        assert gauges() == {"kubewright_cache_objects": 2, "kubewright_cache_undecodable_objects": 1}
    informer.feed.close()
    assert gauges() == {}


def test_declaring_needs_no_loop_and_no_library_of_the_network() -> None:
    import subprocess
    import sys

    program = (
        "import sys, kubewright.cache; sys.exit(bool({'httptools', 'kubewright.client'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert isinstance(Widget.__kind__, Kind)


@virtual_time
async def test_own_writes_are_selected_by_fields_that_are_trimmed(source: Any, make: Any) -> None:
    source.script = [make.answer(*initial(make), hangs=True)]
    selected = informer_of(source, make, fields="spec.color=red", metadata_only=True)
    async with Running(selected) as informer:
        informer.record_write(make.object("a", 11, spec={"color": "red"}))
        informer.record_write(make.object("b", 12, spec={"color": "blue"}))
        assert informer.keys() == [A]
        kept = informer.get_raw(A)
        assert kept is not None
        assert b"red" not in kept.raw


@virtual_time
async def test_events_that_arrive_together_are_notified_in_order(source: Any, make: Any) -> None:
    source.script = [
        make.answer(
            [
                *initial(make, make.object("a", 3)),
                make.event("MODIFIED", "a", 11),
                make.event("ADDED", "b", 12),
            ],
            [make.event("DELETED", "a", 13), make.event("MODIFIED", "b", 14), make.bookmark(20)],
            hangs=True,
        )
    ]
    informer = informer_of(source, make)
    changes: list[tuple[str, bool, bool, bool]] = []
    informer.subscribe(
        lambda change: changes.append(
            (change.key.name, change.initial, change.old is not None, change.new is not None)
        )
    )
    async with Running(informer):
        await informer.wait_synced()
        await settle()
    assert changes == [
        ("a", True, False, True),
        ("a", False, True, True),
        ("b", False, False, True),
        ("a", False, True, False),
        ("b", False, True, True),
    ]


@virtual_time
async def test_a_watch_that_is_cut_twice_in_a_row_is_logged(
    source: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kubewright")
    news = make.answer(make.event("ADDED", "a", 11), hangs=True)
    source.script = [make.answer(*initial(make), pause=1), make.answer(), news]
    async with Running(informer_of(source, make)):
        await asyncio.sleep(30)
    assert [record.message for record in caplog.records] == []

    source.script = [make.answer(*initial(make), pause=1), make.answer(), make.answer(), news]
    async with Running(informer_of(source, make)):
        await asyncio.sleep(30)
    notified = [(record.levelname, *record.message.split()[:3]) for record in caplog.records]
    assert notified == [
        ("WARNING", "Cannot", "read", "widgets.example.com,"),
        ("INFO", "Reading", "widgets.example.com", "again"),
    ]


@virtual_time
async def test_a_watch_that_fails_for_long_is_a_problem_until_it_is_open_again(
    source: Any, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kubewright")
    slow_down = make.answer(error=make.error("slow down", 429, "TooManyRequests", retry_after=3600.0))
    source.script = [make.answer(*initial(make), pause=1), *[slow_down] * 12, make.answer(hangs=True)]
    informer = informer_of(source, make)
    async with Running(informer):
        await asyncio.sleep(50)
        assert informer.problems == []
        await asyncio.sleep(20)
        [problem] = informer.problems
        assert problem.startswith("widgets.example.com: the watch has failed for 6")
        assert problem.endswith(" s: slow down")
        await asyncio.sleep(60)
        assert informer.problems == []
    assert source.script == []
    assert [record.message.split()[:3] for record in caplog.records] == [
        ["Cannot", "read", "widgets.example.com,"],
        ["Reading", "widgets.example.com", "again"],
    ]
