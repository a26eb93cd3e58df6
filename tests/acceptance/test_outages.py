"""COM 9: the API server goes and comes back, watches break or expire; no change is lost."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from acceptance_gateway import Gateway
from acceptance_stories import STORIES, Stage, stages

from kubewright.testing import Cluster, eventually

IN_VAIN = 40
"""How often operators try while the server is gone: each of their watches several times, with longer and longer pauses.
Minutes without a server are passed in virtual time, in the tests of the runtime."""


@asynccontextmanager
async def all_at_work(cluster: Cluster, gateway: Gateway, outside: Path) -> AsyncGenerator[list[Stage], None]:
    """Run the five operators behind one gateway, their samples applied and settled."""
    async with AsyncExitStack() as stack:
        for stage in (found := stages(cluster, outside)):
            await stack.enter_async_context(gateway.seen_from(cluster).running(stage.sample.operator()))
        await together(found, 0)
        yield found


async def together(found: list[Stage], *numbers: int) -> None:
    """Play these steps of every story, the stories side by side."""

    async def play(stage: Stage) -> None:
        for number in numbers:
            await STORIES[stage.sample.name][number].play(stage)

    async with asyncio.TaskGroup() as group:
        for stage in found:
            group.create_task(play(stage))


async def gone(cluster: Cluster, gateway: Gateway) -> None:
    await gateway.turn_away(IN_VAIN)


async def cut(cluster: Cluster, gateway: Gateway) -> None:
    gateway.cut()


async def expired(cluster: Cluster, gateway: Gateway) -> None:
    watches = sum(found.watch for found in gateway.exchanges)
    assert watches
    gateway.expire(watches)
    await eventually(lambda: gateway.unanswered_expiries != watches)
    gateway.expire(0)


Trouble = Callable[[Cluster, Gateway], Awaitable[None]]


@pytest.mark.parametrize("trouble", [gone, cut, expired], ids=lambda trouble: trouble.__name__)
async def test_changes_during_an_outage_are_reconciled_after_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Trouble
) -> None:
    outside = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(outside))
    async with (
        Gateway.to(cluster.config) as gateway,
        all_at_work(cluster, gateway, outside) as found,
        asyncio.TaskGroup() as group,
    ):
        trying = group.create_task(trouble(cluster, gateway))
        await together(found, 1)
        await trying
        for stage in found:
            rest = range(2, len(STORIES[stage.sample.name]))
            group.create_task(together([stage], *rest))
