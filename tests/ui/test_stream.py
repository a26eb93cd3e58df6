"""The stream of the page: batches, resets, and a browser that reads slowly."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kubewright.api import Kind
from kubewright.journal import ReconcileRecord
from kubewright.testing.virtual_time import virtual_time
from kubewright.ui.state import ControllerState, OperatorState, PageState, SourceDescription
from kubewright.ui.stream import PageDescription, PageStream

MAPS = Kind(group="", version="v1", kind="ConfigMap", plural="configmaps")
DESCRIPTION = PageDescription(
    title="test", source=SourceDescription("dev", "a test"), writable=True, live=True, samples=False
)
Events = list[tuple[str, dict[str, Any]]]


class Browser:
    """Take what is written, as long as it is allowed to."""

    def __init__(self) -> None:
        self.events: Events = []
        self.sizes: list[int] = []
        self.reading = asyncio.Event()
        self.reading.set()

    async def write(self, data: bytes) -> None:
        self.sizes.append(len(data))
        for block in data.decode().split("\n\n"):
            if block.startswith("event: "):
                name, _, text = block.removeprefix("event: ").partition("\ndata: ")
                self.events.append((name, json.loads(text)))
        await self.reading.wait()

    def take(self) -> Events:
        events, self.events = self.events, []
        return events

    def named(self, name: str) -> list[dict[str, Any]]:
        return [data for found, data in self.events if found == name]


@asynccontextmanager
async def opened(state: PageState, browser: Browser) -> AsyncIterator[None]:
    task = asyncio.create_task(PageStream(state, lambda: DESCRIPTION).run(browser))
    try:
        await asyncio.sleep(1)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def on_virtual_time(test: Callable[[PageState, Browser], Awaitable[None]]) -> Callable[[], Any]:
    @virtual_time
    async def run() -> None:
        await test(PageState(), Browser())

    run.__name__, run.__qualname__ = test.__name__, test.__qualname__
    return run


def put(state: PageState, name: str, version: int = 1, **fields: Any) -> None:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    state.put(MAPS, {"metadata": metadata, **fields})


def record(identity: str, **fields: Any) -> ReconcileRecord:
    return ReconcileRecord(
        id=identity,
        number=1,
        controller="c",
        kind="ConfigMap",
        namespace="default",
        name="a",
        started_at=datetime(2026, 1, 31, tzinfo=UTC),
        duration=0.1,
        outcome="success",
        **fields,
    )


@on_virtual_time
async def test_a_new_page_gets_everything_in_parts(state: PageState, browser: Browser) -> None:
    for number in range(1200):
        put(state, f"m{number}")
    async with opened(state, browser):
        assert browser.events[0][0] == "hello"
        parts = browser.named("objects")
        assert [(part["reset"], part["more"], len(part["changed"])) for part in parts] == [
            (True, True, 500),
            (False, True, 500),
            (False, False, 200),
        ]
        assert [(part["reset"], part["more"]) for part in browser.named("reconciles")] == [(True, False)]
        assert browser.named("operators") == [{"operators": []}]


@on_virtual_time
async def test_changes_are_sent_in_batches_with_the_last_state_only(
    state: PageState, browser: Browser
) -> None:
    async with opened(state, browser):
        browser.take()
        for version in range(1, 101):
            put(state, "a", version)
            put(state, f"gone{version}", version)
            state.remove(f"uid-gone{version}")
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        sent = browser.named("objects")
        assert 5 <= len(sent) <= 15, "a second of changes is about ten batches"
        assert sent[-1]["changed"][-1]["resourceVersion"] == "100"
        assert all(len(part["changed"]) <= 1 for part in sent)
        assert not any(part["reset"] for part in sent)


@on_virtual_time
async def test_a_slow_browser_gets_a_reset_instead_of_a_growing_queue(
    state: PageState, browser: Browser
) -> None:
    async with opened(state, browser):
        browser.take()
        browser.reading.clear()
        put(state, "first")
        await asyncio.sleep(1)
        for number in range(30_000):
            put(state, f"m{number}")
            if number % 2:
                state.remove(f"uid-m{number - 1}")
        written = len(browser.sizes)
        await asyncio.sleep(20)
        assert len(browser.sizes) == written, "nothing more is written while the browser does not read"
        browser.take()
        browser.reading.set()
        await asyncio.sleep(5)
        sent = browser.named("objects")
        assert sent[0]["reset"] is True
        assert sum(len(part["changed"]) for part in sent) == 15_001
        assert max(browser.sizes) < 500_000


@on_virtual_time
async def test_a_page_gets_everything_at_the_end_of_loading(state: PageState, browser: Browser) -> None:
    state.loading = True
    put(state, "before")
    async with opened(state, browser):
        for version in range(1, 100):
            put(state, "a", version)
            state.set_problems("record", [f"{version} % are read"])
            await asyncio.sleep(0.05)
        assert {name for name, _ in browser.take()} == {"hello", "problems", "operators", "history"}
        state.finish_loading()
        put(state, "b")
        await asyncio.sleep(1)
        sent = browser.named("objects")
        assert [part["reset"] for part in sent] == [True]
        assert {each["name"] for each in sent[0]["changed"]} == {"before", "a", "b"}


@on_virtual_time
async def test_an_idle_repetition_replaces_its_predecessor(state: PageState, browser: Browser) -> None:
    async with opened(state, browser):
        browser.take()
        state.add_reconcile("o", record("r1"))
        await asyncio.sleep(1)
        state.add_reconcile("o", record("r2", repeated=1))
        await asyncio.sleep(1)
        added = [each for part in browser.named("reconciles") for each in part["added"]]
        assert [(each["id"], each.get("replaces")) for each in added] == [("r1", None), ("r2", "r1")]
        assert len(state.reconciles) == 1


@on_virtual_time
async def test_a_repetition_does_not_replace_a_reconcile_that_did_something(
    state: PageState, browser: Browser
) -> None:
    async with opened(state, browser):
        state.add_reconcile("o", record("r1", error="ValueError: no"))
        state.add_reconcile("o", record("r3", repeated=1))  # r2 was repeated before it could be read
        await asyncio.sleep(1)
        assert [kept.summary.id for kept in state.reconciles.all()] == ["r1", "r3"]


@on_virtual_time
async def test_operators_are_sent_at_most_twice_a_second(state: PageState, browser: Browser) -> None:
    async with opened(state, browser):
        browser.take()
        for depth in range(100):
            queue = ControllerState("c", "ConfigMap", "", depth, 0, 1, 0)
            state.set_operators([OperatorState(name="o", source="a test", controllers=[queue])])
            await asyncio.sleep(0.02)
        await asyncio.sleep(1)
        sent = browser.named("operators")
        assert 3 <= len(sent) <= 6
        assert sent[-1]["operators"][0]["controllers"][0]["queueDepth"] == 99


@on_virtual_time
async def test_a_connection_that_is_idle_is_kept_alive(state: PageState, browser: Browser) -> None:
    async with opened(state, browser):
        before = len(browser.sizes)
        await asyncio.sleep(60)
        assert len(browser.sizes) - before >= 3
        assert {name for name, _ in browser.events} <= {
            "hello",
            "objects",
            "reconciles",
            "operators",
            "problems",
            "history",
        }


@on_virtual_time
async def test_an_object_is_marked_once_an_operator_reconciles_its_kind(
    state: PageState, browser: Browser
) -> None:
    put(state, "a")
    async with opened(state, browser):
        assert browser.named("objects")[0]["changed"][0]["reconciled"] is False
        browser.take()
        queue = ControllerState("c", "ConfigMap", "", 0, 0, 1, 0)
        state.set_operators([OperatorState(name="o", source="a test", controllers=[queue])])
        await asyncio.sleep(1)
        assert browser.named("objects")[0]["changed"][0]["reconciled"] is True


@on_virtual_time
async def test_a_name_with_markup_stays_text_in_one_line(state: PageState, browser: Browser) -> None:
    put(state, "<img src=x onerror=alert(1)>\n\nevent: hello\ndata: {}")
    async with opened(state, browser):
        assert len(browser.named("hello")) == 1
        assert browser.named("objects")[0]["changed"][0]["name"].startswith("<img")


@pytest.mark.parametrize("limit", [0, 20_000, 10_000_000])
def test_past_versions_stay_within_their_limit(limit: int) -> None:
    moments = iter(float(number) for number in range(1_000_000))
    state = PageState(limit=limit, clock=lambda: next(moments))
    for version in range(1, 500):
        for name in ("a", "b"):
            put(state, name, version, data={"text": f"{version}" * 50})
    put(state, "c")
    state.remove("uid-c")
    history = state.history
    assert history.size <= limit
    assert len(history) == 2, "the current versions are always there"
    for uid in ("uid-a", "uid-b"):
        versions = history.versions(uid)
        assert versions[-1].until is None
        assert all(one.until == other.at for one, other in pairwise(versions))
    # From its start on the history is complete; the objects were created a little after the page was opened.
    for moment in (max(history.start, 3.0), (history.start + history.end) / 2, history.end):
        names = sorted(version.object.name for version in history.snapshot(moment))
        assert names == ["a", "b"]
    if limit == 0:
        assert len(history.versions("uid-a")) == 1
        assert history.find("uid-c") is None


def test_reconciles_stay_within_their_limit() -> None:
    state = PageState()
    random = Random(1)
    for number in range(300):
        state.add_reconcile("o", record(f"r{number}", error=random.randbytes(200_000).hex()))
    assert state.reconciles.size <= 32 * 1024 * 1024
    assert state.reconciles.dropped > 0
    assert len(state.reconciles) + state.reconciles.dropped == 300
    assert state.reconciles.get("o", "r299") is not None
