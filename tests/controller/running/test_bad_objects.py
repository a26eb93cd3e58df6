"""Nothing that an object contains stops the operator: it is reported once for each state, and the others go on."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kubewright.api import DecodeError, Meta, Model, ObjectKey, Resource
from kubewright.controller import Change, Context, Controller, Index, Selector, TerminalError, owned, watch
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxStatus, Paper
from .operators import events, running, settled

BAD = -1


class Mute(Exception):
    """An error that cannot be shown as text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ERRORS: dict[str, BaseException] = {
    "assertion": AssertionError("size must not be negative"),
    "key": KeyError("size"),
    "recursion": RecursionError("too deep"),
    "exit": SystemExit(3),
    "cancelled": asyncio.CancelledError(),
    "mute": Mute(),
}
raised: dict[str, BaseException] = {}


class FrailSpec(Model):
    size: int = 1
    friend: str = ""

    def __post_init__(self) -> None:
        if self.size == BAD and "hook" in raised:
            raise raised["hook"]


class Frail(Resource[FrailSpec, BoxStatus], group="running.example.com", version="v1", plural="frails"):
    """Has a class that refuses some objects that its schema allows."""


def check(where: str, size: int) -> None:
    if size == BAD and where in raised:
        raise raised[where]


def values(frail: Frail) -> Iterable[str]:
    check("index", frail.spec.size)
    return [frail.spec.friend]


def is_worth(change: Change[Frail]) -> bool:
    for state in change.objects:
        check("filter", state.spec.size)
    return True


def transform(wire: dict[str, Any]) -> dict[str, Any]:
    check("transform", wire["spec"].get("size", 1))
    return wire


def to_keys(frail: Frail) -> list[ObjectKey]:
    check("map", frail.spec.size)
    return [frail.key]


def to_value(frail: Frail) -> str:
    check("key", frail.spec.size)
    return frail.spec.friend


BY_FRIEND = Index(Frail, values)
BY_NAME = Index(Box, lambda box: [box.metadata.name])


def reconciles_frails(reconcile: Callable[[Any, Context], Any]) -> Controller[Frail]:
    """Return a controller whose own kind is the one with the bad objects."""
    return Controller(
        Frail,
        reconcile,
        when=is_worth,
        selector=Selector(transform=transform),
        watches=[watch(Paper, via=BY_FRIEND, key=lambda paper: paper.friend)],
    )


def watches_frails(reconcile: Callable[[Any, Context], Any]) -> Controller[Box]:
    """Return a controller that is led to its objects by the kind with the bad objects."""
    return Controller(
        Box,
        reconcile,
        watches=[
            watch(Frail, map=to_keys, when=is_worth, selector=Selector(transform=transform)),
            watch(Frail, via=BY_NAME, key=to_value),
        ],
    )


@pytest.fixture
def failing() -> Any:
    raised.clear()
    yield raised
    raised.clear()


def cases(first: str, *others: str) -> list[tuple[str, str]]:
    """Return all errors in one function of the author, and the two extremes in the others."""
    return [(first, error) for error in ERRORS] + [
        (where, error) for where in others for error in ("assertion", "exit")
    ]


def is_running(manager: Manager) -> bool:
    return manager.readiness.failures() == {}


@pytest.mark.parametrize(("where", "error"), cases("hook", "index", "filter", "transform"))
async def test_an_undecodable_object_is_reported_and_the_others_are_reconciled(
    cluster: Cluster, failing: dict[str, BaseException], where: str, error: str
) -> None:
    await cluster.install(Frail, Paper)
    bad = await cluster.create(Frail(Meta("bad"), spec=FrailSpec(size=BAD)))
    failing[where] = ERRORS[error]
    seen: list[tuple[str, int]] = []

    async def reconcile(frail: Frail, ctx: Context) -> None:
        seen.append((frail.metadata.name, frail.spec.size))

    async with running(cluster, reconciles_frails(reconcile)) as manager:
        await cluster.create(Frail(Meta("good"), spec=FrailSpec()))
        await eventually(lambda: ("good", 1) in seen)
        [event] = await eventually(lambda: events(cluster, "Malformed"))
        assert event.regarding is not None
        assert event.regarding.name == "bad"
        deep = (where, error) == ("hook", "recursion")
        assert ("nested too deeply" if deep else type(ERRORS[error]).__name__) in event.note
        # The same state again, by whatever path, is not reported again.
        await cluster.create(Paper(Meta("p"), friend="x"))
        await settled(manager)
        malformed = manager.metrics.counter("kubewright_malformed_objects_total", "", ("controller",))
        assert malformed.labels(controller="frail").value == 1
        # Once it is repaired it is reconciled, although its state before was bad.
        await cluster.client.patch(bad, {"spec": {"size": 5}})
        await eventually(lambda: ("bad", 5) in seen)
        assert is_running(manager)


@pytest.mark.parametrize(("where", "error"), cases("map", "hook", "filter", "transform", "key"))
async def test_an_undecodable_watched_object_is_mapped_once_it_is_repaired(
    cluster: Cluster, failing: dict[str, BaseException], where: str, error: str
) -> None:
    await cluster.install(Frail, Box)
    bad = await cluster.create(Frail(Meta("a"), spec=FrailSpec(size=BAD)))
    failing[where] = ERRORS[error]
    causes: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        causes.extend(f"{box.metadata.name}: {cause}" for cause in ctx.causes)

    async with running(cluster, watches_frails(reconcile)) as manager:
        await cluster.create(Box(Meta("a")))
        await cluster.create(Box(Meta("b")))
        await settled(manager)
        await cluster.create(Frail(Meta("b"), spec=FrailSpec(friend="b")))
        await eventually(lambda: f"b: Frail {cluster.namespace}/b was created" in causes)
        assert len(await eventually(lambda: events(cluster, "Malformed"))) == 1
        await settled(manager)
        causes.clear()
        await cluster.client.patch(bad, {"spec": {"size": 5, "friend": "a"}})
        await eventually(lambda: f"a: Frail {cluster.namespace}/a changed" in causes)
        assert is_running(manager)


async def test_a_child_whose_predicate_fails_reconciles_its_owner(
    cluster: Cluster, failing: dict[str, BaseException]
) -> None:
    await cluster.install(Box, Frail)
    failing["filter"] = ERRORS["assertion"]
    causes: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        causes.extend(str(cause) for cause in ctx.causes)
        await ctx.apply(Frail(Meta("child"), spec=FrailSpec(friend=box.metadata.name)))

    async with running(cluster, Controller(Box, reconcile, owns=[owned(Frail, when=is_worth)])) as manager:
        await cluster.create(Box(Meta("a")))
        child = await cluster.eventually(Frail, "child", lambda found: found.spec.friend == "a")
        await settled(manager)
        causes.clear()
        await cluster.client.patch(child, {"spec": {"size": BAD}})
        await eventually(lambda: f"Frail {cluster.namespace}/child changed" in causes)


async def test_a_reconciler_may_raise_an_exception_whose_text_fails(cluster: Cluster) -> None:
    await cluster.install(Box)
    runs: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        runs.append(box.metadata.name)
        if len(runs) == 1:
            raise Mute
        if len(runs) == 2:
            raise TerminalError("done")

    async with running(cluster, Controller(Box, reconcile)) as manager:
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(runs) == 2)
        assert is_running(manager)


async def test_a_read_of_an_object_that_its_class_refuses_raises_a_decode_error(
    cluster: Cluster, failing: dict[str, BaseException]
) -> None:
    await cluster.install(Frail, Box)
    await cluster.create(Frail(Meta("bad"), spec=FrailSpec(size=BAD)))
    failing["hook"] = ERRORS["assertion"]
    errors: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        for reader in (ctx, ctx.live):
            try:
                await reader.get(Frail, "bad")
            except DecodeError as error:
                errors.append(str(error))

    async with running(cluster, Controller(Box, reconcile, watches=[watch(Frail, map=to_keys)])):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: len(errors) >= 2)
    assert set(errors) == {"Frail: AssertionError: size must not be negative"}
