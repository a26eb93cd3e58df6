"""What a reconciler raises: when it is retried, how it is counted, and what the log says."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import Meta
from kubewright.backoff import Backoff
from kubewright.controller import Context, Controller, Options, Result, TerminalError, needs
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxStatus, Paper
from .operators import events, running, settled

QUICK = Options(backoff=Backoff(base=0.001, maximum=0.01))


class Failing:
    """A reconciler that raises the next of these errors, then succeeds."""

    def __init__(self, *errors: BaseException | None) -> None:
        self.errors = list(errors)
        self.runs = 0
        self.times: list[float] = []

    async def reconcile(self, box: Box, ctx: Context) -> Result | None:
        self.runs += 1
        self.times.append(asyncio.get_running_loop().time())
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return None


async def run(cluster: Cluster, reconciler: Failing, runs: int, options: Options = QUICK) -> dict[str, int]:
    """Reconcile one Box until the reconciler has run so often; return the controller's outcomes."""
    await cluster.install(Box)
    async with running(cluster, Controller(Box, reconciler, options=options)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: reconciler.runs >= runs)
        await settled(manager)
        return manager.statistics().controllers[0].outcomes


def records_of(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[logging.LogRecord]:
    return [
        record
        for record in caplog.records
        if record.name == "kubewright.controller" and record.levelno >= level
    ]


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "fields")  # noqa: B009 (the attribute is added by the logger)


async def test_retry_later_is_one_line_without_a_traceback(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes = await run(cluster, Failing(kw.RetryLater("the accounts service is away")), 2)
    [record] = records_of(caplog)
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "Retrying in 1 ms: the accounts service is away"
    assert record.exc_info is None
    assert fields_of(record)["name"] == "a"
    assert (outcomes["requeue"], outcomes["error"], outcomes["success"]) == (1, 0, 1)


async def test_retry_later_is_not_counted_as_an_error(cluster: Cluster) -> None:
    await cluster.install(Box)
    reconciler = Failing(kw.RetryLater("away"))
    async with running(cluster, Controller(Box, reconciler, options=QUICK)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: reconciler.runs == 2)
        await settled(manager)
        errors = manager.metrics.counter("controller_runtime_reconcile_errors_total", "", ("controller",))
        assert errors.labels(controller="box").value == 0
        assert manager.statistics().controllers[0].queue.retrying == 0


@pytest.mark.parametrize("after", [0.03, timedelta(milliseconds=30)])
async def test_retry_later_is_retried_after_the_given_time(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, after: float | timedelta
) -> None:
    reconciler = Failing(kw.RetryLater("away", after=after))
    await run(cluster, reconciler, 2, Options(backoff=Backoff(base=1000.0)))
    first, second = reconciler.times
    assert second - first >= 0.03
    [record] = records_of(caplog)
    assert record.getMessage().startswith("Retrying in 3")  # up to a tenth is added


async def test_retry_later_without_a_time_grows_with_the_backoff(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    errors = [kw.RetryLater("away") for _ in range(4)]
    await run(cluster, Failing(*errors), 5)
    messages = [record.getMessage() for record in records_of(caplog)]
    assert messages == [f"Retrying in {delay} ms: away" for delay in (1, 2, 4, 8)]


async def test_a_success_resets_the_backoff_of_retry_later(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    reconciler = Failing(kw.RetryLater("away"), kw.RetryLater("away"), None, kw.RetryLater("away"))
    async with running(cluster, Controller(Box, reconciler, options=QUICK)):
        box = await cluster.create(Box(Meta("a")))

        async def ran(times: int) -> None:
            await eventually(lambda: reconciler.runs >= times)

        await ran(3)
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await ran(5)
    messages = [record.getMessage() for record in records_of(caplog)]
    assert messages == [f"Retrying in {delay} ms: away" for delay in (1, 2, 1)]


async def test_a_task_group_whose_tasks_all_retry_later_is_expected(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    group = ExceptionGroup("", [kw.RetryLater("a is away", after=0.02), kw.RetryLater("b is away", after=20)])
    outcomes = await run(cluster, Failing(group), 2)
    assert outcomes["requeue"] == 1
    [record] = records_of(caplog)
    assert record.getMessage().endswith("ms: a is away; b is away")


@pytest.mark.parametrize("after", [0, -1, timedelta(0), float("nan")])
def test_retry_later_needs_a_positive_time(after: Any) -> None:
    with pytest.raises(ValueError, match="the delay must be positive"):
        kw.RetryLater("away", after=after)


async def test_a_finalizer_that_retries_later_reports_a_normal_event(cluster: Cluster) -> None:
    await cluster.install(Box)

    class Slow:
        answers: Sequence[Exception | None] = (kw.RetryLater("the disk is being erased", after=0.01), None)

        def __init__(self) -> None:
            self.left = list(self.answers)

        async def reconcile(self, box: Box, ctx: Context) -> None:
            return None

        async def finalize(self, box: Box, ctx: Context) -> None:
            if error := self.left.pop(0):
                raise error

    async with running(cluster, Controller(Box, Slow(), finalizer="test.example.com/slow")):
        box = await cluster.create(Box(Meta("a")))

        async def has_finalizer() -> bool:
            return bool((await cluster.get(Box, "a")).metadata.finalizers)

        await eventually(has_finalizer)
        await cluster.client.delete(box)

        async def reported() -> bool:
            found = await events(cluster, "FinalizerPending")
            return [(event.type, event.note) for event in found] == [
                ("Normal", "test.example.com/slow: the disk is being erased")
            ]

        await eventually(reported)


async def test_an_unexpected_error_has_its_traceback_once(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    class Buggy(Failing):
        async def reconcile(self, box: Box, ctx: Context) -> None:
            self.runs += 1
            if self.runs < 5:
                raise KeyError(self.runs)

    caplog.set_level(logging.INFO)
    await run(cluster, Buggy(), 5)
    first, *repeats = records_of(caplog, logging.ERROR)
    assert first.getMessage() == "Reconciler error, next try in 1 ms: KeyError: 1"
    assert first.exc_info is not None
    assert isinstance(first.exc_info[1], KeyError)
    assert [record.getMessage() for record in repeats] == [
        f"Reconciler error, failed {count} times, next try in {delay} ms: KeyError: {count}"
        for count, delay in ((2, 2), (3, 4), (4, 8))
    ]
    assert all(record.exc_info is None for record in repeats)
    assert all(fields_of(record)["at"].startswith(f"{__file__}:") for record in (first, *repeats))


async def test_another_error_of_the_same_object_has_a_traceback_of_its_own(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await run(cluster, Failing(KeyError("a"), ValueError("b"), KeyError("a")), 4)
    assert [bool(record.exc_info) for record in records_of(caplog, logging.ERROR)] == [True, True, False]


async def test_an_error_after_a_success_has_its_traceback_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await cluster.install(Box)
    reconciler = Failing(KeyError("a"), None, KeyError("a"))
    async with running(cluster, Controller(Box, reconciler, options=QUICK)):
        box = await cluster.create(Box(Meta("a")))

        async def ran(times: int) -> None:
            await eventually(lambda: reconciler.runs >= times)

        await ran(2)
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await ran(4)
    assert [bool(record.exc_info) for record in records_of(caplog, logging.ERROR)] == [True, True]


async def test_every_traceback_is_logged_at_debug_level(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="kubewright.controller")
    await run(cluster, Failing(KeyError("a"), KeyError("a")), 3)
    assert all(record.exc_info for record in records_of(caplog, logging.ERROR))


async def test_a_terminal_error_is_logged_as_not_retried(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await run(cluster, Failing(TerminalError("the region does not exist")), 1)
    [record] = records_of(caplog, logging.ERROR)
    assert record.getMessage() == "Reconciler error, not retried: the region does not exist"
    assert fields_of(record)["terminal"] is True


async def test_an_api_error_names_the_line_of_the_call(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box)
    await cluster.install(Paper)
    lines: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        lines.append(reconcile.__code__.co_firstlineno + 2)
        await ctx.get(Paper, "missing")

    controller = Controller(Box, reconcile, needs=[needs(Paper, "get")], options=QUICK)
    async with running(cluster, controller):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: bool(records_of(caplog, logging.ERROR)))
    record = records_of(caplog, logging.ERROR)[0]
    assert "missing" in record.getMessage()
    assert record.exc_info is None
    assert fields_of(record)["at"] == f"{__file__}:{lines[0]}"


async def test_errors_of_a_task_group_are_named_one_by_one(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await run(cluster, Failing(ExceptionGroup("unhandled", [KeyError("a"), ValueError("b")])), 2)
    [record] = records_of(caplog, logging.ERROR)
    assert record.getMessage().endswith(": KeyError: 'a'; ValueError: b")


async def test_each_reconcile_is_one_line_at_debug_level(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="kubewright.controller")
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        if not await ctx.find(Paper, "p"):
            await ctx.apply(Paper(Meta("p"), text="hello"))
            raise kw.RetryLater("the paper is wet")

    async with running(cluster, Controller(Box, reconcile, owns=[Paper], options=QUICK)) as manager:
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "p", lambda paper: paper.text == "hello")
        await settled(manager)
    first, *others = [fields_of(record) for record in caplog.records if record.getMessage() == "Reconciled"]
    assert (first["controller"], first["name"], first["outcome"]) == ("box", "a", "requeue")
    assert first["causes"] == [f"Box {cluster.namespace}/a was created"]
    assert first["writes"] == ["patch papers.running.example.com/p"]
    assert first["duration"].endswith(("ms", "s"))
    assert {(other["outcome"], *other["writes"]) for other in others} == {("success",)}


async def test_a_status_that_is_written_before_a_failure_does_not_cancel_the_backoff(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)
    runs: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        runs.append(box.metadata.labels.get("by", ""))
        # Another text each time: each write changes the object.
        await ctx.patch_status(box, BoxStatus(note=f"attempt {len(runs)} failed"))
        raise kw.RetryLater("away", after=3600)

    async with running(cluster, Controller(Box, reconcile)) as manager:
        box = await cluster.create(Box(Meta("a")))

        async def stored() -> bool:
            return (
                await cluster.client.get(Box, "a", cluster.namespace)
            ).status.note == f"attempt {len(runs)} failed"

        await eventually(stored)
        await settled(manager)
        assert runs == [""]
        await cluster.client.patch(box, {"metadata": {"labels": {"by": "user"}}})
        await eventually(lambda: runs[-1] == "user")
        await eventually(stored)
        await settled(manager)
        assert runs == ["", "user"]


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_a_change_together_with_the_own_status_is_reconciled_after_a_failure(
    cluster: Cluster, subresource: str
) -> None:
    await cluster.install(Box)
    seen: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        seen.append("user" if box.metadata.labels or box.status.ready else "")
        if len(seen) == 1:
            # The response to the write of the status is the first that this replica sees of the change.
            change = {"status": {"ready": 1}} if subresource else {"metadata": {"labels": {"by": "user"}}}
            await cluster.client.patch(box, change, subresource=subresource)
            await ctx.patch_status(box, {"note": "failed"})
            raise kw.RetryLater("away", after=3600)

    async with running(cluster, Controller(Box, reconcile)):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: seen[-1:] == ["user"])
