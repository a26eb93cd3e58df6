import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from kubewright.api import ConnectionLost, DecodeError
from kubewright.cache import (
    Applied,
    Deleted,
    Failed,
    Progressed,
    Resumed,
    Selection,
    Synced,
    watch_forever,
)
from kubewright.cache.stalls import StallTimeout
from kubewright.metrics import Registry
from kubewright.testing.virtual_time import virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(source: Any, selection: Selection, count: int, **options: Any) -> list[Any]:
    """Follow the selection for so many events, those that a watch is open again aside."""
    found: list[Any] = []
    async with aclosing(watch_forever(source, selection, **options)) as events:
        async for arrived in events:
            found.extend(event for event in arrived if not isinstance(event, Resumed))
            if len(found) >= count:
                break
    assert source.open_streams == 0
    return found


def notified(events: list[Any]) -> list[str]:
    """Write events as short words."""
    words: list[str] = []
    for event in events:
        match event:
            case Applied(obj):
                words.append(f"+{obj.meta.name}@{obj.meta.resource_version}")
            case Deleted(obj):
                words.append(f"-{obj.meta.name}@{obj.meta.resource_version}")
            case Progressed(version) | Synced(version):
                words.append(f"{type(event).__name__}@{version}")
            case _:
                words.append(type(event).__name__)
    return words


@virtual_time
async def test_reads_the_current_state_and_changes_with_one_watch(source: Any, make: Any) -> None:
    source.script = [
        make.answer(
            make.event("ADDED", "a", 3),
            make.event("ADDED", "b", 5),
            make.bookmark(7, initial=True),
            make.event("MODIFIED", "a", 8),
            make.event("DELETED", "b", 9),
            make.bookmark(12),
            hangs=True,
        )
    ]
    events = await take(source, Selection(make.kind), 7)
    assert notified(events) == ["Restarted", "+a@3", "+b@5", "Synced@7", "+a@8", "-b@9", "Progressed@12"]
    assert [call.verb for call in source.calls] == ["watch"]
    assert source.calls[0].options["initial_events"] is True


@virtual_time
async def test_requests_only_selected_objects(source: Any, make: Any) -> None:
    source.script = [make.answer(error=make.error("no", 422)), make.answer(make.page(7))]
    selection = Selection(make.kind, "prod", "a=b", "metadata.name=x", metadata_only=True)
    await take(source, selection, 3)
    assert [call.verb for call in source.calls][:2] == ["watch", "list"]
    for call in source.calls:
        asked = {
            name: call.options[name] for name in ("kind", "namespace", "labels", "fields", "metadata_only")
        }
        assert asked == {
            "kind": make.kind,
            "namespace": "prod",
            "labels": "a=b",
            "fields": "metadata.name=x",
            "metadata_only": True,
        }


@pytest.mark.parametrize("code", [400, 405, 406, 415, 422])
def test_lists_in_pages_if_the_server_does_not_support_watch_list(source: Any, make: Any, code: int) -> None:
    @virtual_time
    async def check() -> None:
        source.script = [
            make.answer(error=make.error("sendInitialEvents is forbidden", code)),
            make.answer(make.page(7, make.object("a", 3), more="next"), make.page(7, make.object("b", 5))),
            make.answer(make.event("MODIFIED", "a", 8), hangs=True),
        ]
        events = await take(source, Selection(make.kind), 6)
        assert notified(events) == ["Restarted", "Restarted", "+a@3", "+b@5", "Synced@7", "+a@8"]
        assert [call.verb for call in source.calls] == ["watch", "list", "watch"]
        assert source.calls[1].options["limit"] == 500
        assert source.calls[2].options["resource_version"] == "7"
        assert now() == 0

    check()


@virtual_time
async def test_lists_before_each_watch_without_streaming(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.page(7, make.object("a", 3))),
        make.answer(error=make.error("too old", 410, "Expired")),
        make.answer(make.page(9)),
    ]
    events = await take(source, Selection(make.kind), 6, streaming=False)
    assert notified(events) == ["Restarted", "+a@3", "Synced@7", "Failed", "Restarted", "Synced@9"]
    assert [call.verb for call in source.calls] == ["list", "watch", "list"]


@virtual_time
async def test_lists_when_the_initial_events_never_end(source: Any, make: Any) -> None:
    source.script = [make.answer(make.event("ADDED", "a", 3), hangs=True), make.answer(make.page(7))]
    events = await take(source, Selection(make.kind), 4)
    assert notified(events) == ["Restarted", "+a@3", "Restarted", "Synced@7"]
    assert 10 <= now() <= 20


@virtual_time
async def test_a_connection_timeout_does_not_disable_watch_list(source: Any, make: Any) -> None:
    class TimedOut(make.error, TimeoutError):
        pass

    source.script = [
        make.answer(error=TimedOut("no answer"), delay=5),
        make.answer(make.bookmark(7, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 4)
    assert notified(events) == ["Restarted", "Failed", "Restarted", "Synced@7"]


@virtual_time
async def test_many_slow_initial_events_are_waited_for(source: Any, make: Any) -> None:
    slow = [make.event("ADDED", f"a{number}", number) for number in range(1, 9)]
    source.script = [make.answer(*slow, make.bookmark(20, initial=True), hangs=True, pause=9)]
    events = await take(source, Selection(make.kind), 10)
    assert notified(events)[-1] == "Synced@20"


@virtual_time
async def test_lists_when_the_initial_events_end_with_an_ordinary_bookmark(source: Any, make: Any) -> None:
    source.script = [make.answer(make.bookmark(5), hangs=True), make.answer(make.page(7))]
    assert notified(await take(source, Selection(make.kind), 3)) == ["Restarted", "Restarted", "Synced@7"]


@virtual_time
async def test_resumes_from_the_last_event_or_bookmark_at_once(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.bookmark(7, initial=True), make.event("ADDED", "a", 9), pause=1),
        make.answer(make.bookmark(15), pause=1),
        make.answer(make.event("DELETED", "a", 16)),
    ]
    events = await take(source, Selection(make.kind), 5)
    assert notified(events) == ["Restarted", "Synced@7", "+a@9", "Progressed@15", "-a@16"]
    assert [call.options["resource_version"] for call in source.calls] == ["", "9", "15"]
    assert now() == 3


@pytest.mark.parametrize("as_event", [True, False])
def test_relists_after_a_pause_when_its_version_has_expired(source: Any, make: Any, as_event: bool) -> None:
    @virtual_time
    async def check() -> None:
        expired = (
            make.answer(make.error_event(410, "Expired", "too old resource version"))
            if as_event
            else make.answer(error=make.error("too old resource version", 410, "Expired"))
        )
        source.script = [
            make.answer(make.bookmark(7, initial=True), pause=1),
            expired,
            make.answer(make.event("ADDED", "b", 20), make.bookmark(30, initial=True), hangs=True),
        ]
        events = await take(source, Selection(make.kind), 6)
        assert notified(events) == ["Restarted", "Synced@7", "Failed", "Restarted", "+b@20", "Synced@30"]
        assert not events[2].refused
        assert 0.8 <= source.calls[2].at - source.calls[1].at <= 1.6

    check()


@virtual_time
async def test_lists_without_pages_when_pages_expire(source: Any, make: Any) -> None:
    source.script = [
        make.answer(error=make.error("no", 422)),
        make.answer(make.page(7, make.object("a", 3), more="x"), error=make.error("gone", 410, "Expired")),
        make.answer(make.page(9, make.object("a", 8))),
    ]
    events = await take(source, Selection(make.kind), 7)
    assert notified(events) == ["Restarted", "Restarted", "+a@3", "Failed", "Restarted", "+a@8", "Synced@9"]
    assert [call.options.get("limit") for call in source.calls] == [None, 500, 0]


@virtual_time
async def test_resumes_with_backoff_while_the_server_is_unreachable(source: Any, make: Any) -> None:
    away = make.answer(error=make.error("connection refused"))
    source.script = [make.answer(make.bookmark(7, initial=True), pause=1)]
    source.script += [away] * 8 + [make.answer(make.event("ADDED", "a", 9), hangs=True)]
    events = await take(source, Selection(make.kind), 11)
    assert notified(events) == ["Restarted", "Synced@7", *["Failed"] * 8, "+a@9"]
    assert source.calls_of("watch")[-1].options["resource_version"] == "7"
    pauses = [event.retry_in for event in events if isinstance(event, Failed)]
    for attempt, pause in enumerate(pauses):
        least = min(0.8 * 2**attempt, 5)
        assert least <= pause <= 1.5 * least


@virtual_time
async def test_the_backoff_is_reset_after_a_quiet_time(source: Any, make: Any) -> None:
    away = make.answer(error=make.error("connection refused"))
    healthy = make.answer(make.bookmark(9), error=make.error("connection lost"), pause=200)
    source.script = [make.answer(make.bookmark(7, initial=True), pause=1), *[away] * 6, healthy]
    events = await take(source, Selection(make.kind), 10)
    failures = [event for event in events if isinstance(event, Failed)]
    assert failures[-2].retry_in >= 5
    assert failures[-1].retry_in <= 1.2


@pytest.mark.parametrize("silent", [False, True])
def test_the_backoff_is_reset_once_the_server_answered(source: Any, make: Any, silent: bool) -> None:
    @virtual_time
    async def check() -> None:
        away = make.answer(error=make.error("connection refused"))
        lost = ConnectionLost("the connection broke in the middle of the stream", sent=True)
        healthy = make.answer(*([] if silent else [make.bookmark(9)]), error=lost, pause=5, delay=5)
        source.script = [make.answer(make.bookmark(7, initial=True), pause=1), *[away] * 6, healthy, away]
        events = await take(source, Selection(make.kind), 10 if silent else 11)
        failures = [event for event in events if isinstance(event, Failed)]
        assert len(failures) == 8
        assert failures[-3].retry_in >= 5
        assert failures[-2].retry_in <= 1.2
        assert failures[-1].retry_in <= 2.4

    check()


@pytest.mark.parametrize("code", [401, 403, 404])
def test_refused_watches_are_reported_and_retried(source: Any, make: Any, code: int) -> None:
    @virtual_time
    async def check() -> None:
        refused = make.answer(error=make.error("not for you", code))
        source.script = [make.answer(make.bookmark(7, initial=True), pause=1), *[refused] * 8]
        source.script += [make.answer(make.bookmark(50, initial=True), hangs=True)]
        events = await take(source, Selection(make.kind), 19)
        failures = [event for event in events if isinstance(event, Failed)]
        assert len(failures) == 8
        assert all(failure.refused and str(failure.error) == "not for you" for failure in failures)
        assert all(failure.retry_in <= 12.5 for failure in failures)
        assert notified(events)[-2:] == ["Restarted", "Synced@50"]

    check()


@pytest.mark.parametrize(
    ("asked", "least", "most"), [(3.0, 3.0, 3.75), (40.0, 6.0, 7.5), (86400.0, 6.0, 7.5)]
)
def test_honours_retry_after_up_to_a_limit(
    source: Any, make: Any, asked: float, least: float, most: float
) -> None:
    @virtual_time
    async def check() -> None:
        source.script = [
            make.answer(error=make.error("slow down", 429, "TooManyRequests", retry_after=asked))
        ]
        events = await take(source, Selection(make.kind), 2)
        assert least <= events[1].retry_in <= most

    check()


@virtual_time
async def test_an_expired_version_after_an_outage_is_relisted_without_backoff(source: Any, make: Any) -> None:
    away = make.answer(error=make.error("connection refused"))
    source.script = [
        make.answer(make.bookmark(7, initial=True), pause=1),
        *[away] * 8,
        make.answer(make.error_event(410, "Expired", "too old resource version")),
        make.answer(make.bookmark(30, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 13)
    failures = [event for event in events if isinstance(event, Failed)]
    assert failures[-2].retry_in >= 5
    assert failures[-1].retry_in <= 1.2
    assert failures[-1].ordinary
    assert notified(events)[-1] == "Synced@30"


@virtual_time
async def test_versions_that_expire_repeatedly_are_relisted_with_backoff(source: Any, make: Any) -> None:
    expired = make.answer(error=make.error("too old resource version", 410, "Expired"))
    source.script = [
        answer
        for number in range(8)
        for answer in (make.answer(make.page(number, make.object("a", number))), expired)
    ]
    events = await take(source, Selection(make.kind), 32, streaming=False)
    pauses = [event.retry_in for event in events if isinstance(event, Failed)]
    assert pauses[-1] >= 5


@virtual_time
async def test_reports_that_a_watch_without_events_is_open_again(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.bookmark(7, initial=True), error=ConnectionLost("cut", sent=True), pause=1),
        make.answer(error=make.error("connection refused")),
        make.answer(hangs=True),
    ]
    seen: list[Any] = []
    async with aclosing(watch_forever(source, Selection(make.kind))) as events:
        async for arrived in events:
            seen.extend(arrived)
            if Resumed() in seen:
                break
    assert notified(seen) == ["Restarted", "Synced@7", "Failed", "Failed", "Resumed"]


@pytest.mark.parametrize("cut", ["lost", "silent end"])
def test_relists_when_the_server_was_restored_from_a_backup(source: Any, make: Any, cut: str) -> None:
    @virtual_time
    async def check() -> None:
        lost = ConnectionLost("the connection broke in the middle of the stream", sent=True)
        ended = make.answer(error=lost, delay=5) if cut == "lost" else make.answer(delay=300)
        source.revision = 40
        source.script = [
            make.answer(make.event("ADDED", "a", 90), make.bookmark(100, initial=True), pause=1),
            ended,
            make.answer(make.event("ADDED", "a", 12), make.bookmark(41, initial=True), hangs=True),
        ]
        events = await take(source, Selection(make.kind, "prod", "a=b"), 8 if cut == "lost" else 7)
        assert notified(events)[-3:] == ["Restarted", "+a@12", "Synced@41"]
        failed = [event for event in events if isinstance(event, Failed)][-1]
        assert "restored from a backup" in str(failed.error)
        assert not failed.ordinary
        [check] = source.calls_of("check")
        assert check.options == {
            "kind": make.kind,
            "limit": 1,
            "namespace": "prod",
            "metadata_only": False,
        }

    check()


@virtual_time
async def test_resumes_when_the_server_has_advanced(source: Any, make: Any) -> None:
    source.revision = 100
    source.script = [
        make.answer(make.bookmark(100, initial=True), pause=1),
        make.answer(delay=300),
        make.answer(make.event("ADDED", "a", 101), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 3)
    assert notified(events) == ["Restarted", "Synced@100", "+a@101"]
    assert [call.verb for call in source.calls] == ["watch", "watch", "check", "watch"]


@virtual_time
async def test_a_watch_with_events_needs_no_revision_check(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.bookmark(7, initial=True), pause=1),
        make.answer(make.bookmark(7), pause=300),
        make.answer(make.event("ADDED", "a", 10), hangs=True),
    ]
    await take(source, Selection(make.kind), 4)
    assert source.calls_of("check") == []


@virtual_time
async def test_relists_when_a_bookmark_goes_back(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.bookmark(100, initial=True), pause=1),
        make.answer(make.bookmark(40), hangs=True),
        make.answer(make.bookmark(41, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 5)
    assert notified(events) == ["Restarted", "Synced@100", "Failed", "Restarted", "Synced@41"]


@virtual_time
async def test_a_watch_that_ends_at_once_repeatedly_is_opened_with_backoff(source: Any, make: Any) -> None:
    registry = Registry()
    source.script = [make.answer(make.bookmark(7, initial=True), pause=1), *[make.answer()] * 5]
    events = await take(source, Selection(make.kind), 7, metrics=registry)
    assert notified(events) == ["Restarted", "Synced@7", *["Failed"] * 5]
    assert now() > 8
    counts = {sample.name: sample.value for family in registry.families() for sample in family.samples}
    assert counts == {
        "reflector_lists_total": 0,
        "reflector_watches_total": 6,
        "reflector_short_watches_total": 5,
    }


@virtual_time
async def test_relists_when_a_watch_stalls_at_a_future_version(source: Any, make: Any) -> None:
    source.revision = 3
    source.script = [
        make.answer(make.bookmark(7, initial=True), pause=1),
        make.answer(error=make.error("stalled"), delay=60),
        make.answer(make.bookmark(3, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 6)
    assert notified(events) == ["Restarted", "Synced@7", "Failed", "Failed", "Restarted", "Synced@3"]


@virtual_time
async def test_relists_after_an_event_that_cannot_be_decoded(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.bookmark(7, initial=True), error=DecodeError("not JSON")),
        make.answer(make.bookmark(9, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 5)
    assert notified(events) == ["Restarted", "Synced@7", "Failed", "Restarted", "Synced@9"]


@virtual_time
async def test_an_end_before_the_initial_events_end_is_a_failure(source: Any, make: Any) -> None:
    source.script = [
        make.answer(make.event("ADDED", "a", 3)),
        make.answer(make.bookmark(9, initial=True), hangs=True),
    ]
    events = await take(source, Selection(make.kind), 5)
    assert notified(events) == ["Restarted", "+a@3", "Failed", "Restarted", "Synced@9"]


@virtual_time
async def test_cancelling_closes_the_stream(source: Any, make: Any) -> None:
    source.script = [make.answer(make.bookmark(7, initial=True), hangs=True)]
    task = asyncio.ensure_future(take(source, Selection(make.kind), 99))
    await asyncio.sleep(1)
    assert source.open_streams == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.open_streams == 0


@virtual_time
async def test_the_stall_timeout_does_not_swallow_a_cancellation_from_outside() -> None:
    async def wait() -> None:
        with StallTimeout(10):
            await asyncio.sleep(60)

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@virtual_time
async def test_the_stall_timeout_limits_each_wait_and_not_their_sum() -> None:
    async def wait() -> None:
        with StallTimeout(10) as timeout:
            for _ in range(5):
                await asyncio.sleep(9)
                timeout.end_wait()
                await asyncio.sleep(100)
                timeout.begin_wait()
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await wait()
    assert 5 * 109 + 10 <= now() <= 5 * 109 + 20
    await asyncio.sleep(30)
