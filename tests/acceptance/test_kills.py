"""Killed at any moment, restarted, with one replica or two: the end state is right and nothing is doubled."""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from acceptance_gateway import Gateway
from acceptance_replica import Replica
from acceptance_stories import STORIES, Stage, stages

from kubewright.api.builtin import apps_v1, core_v1
from kubewright.testing import Cluster, eventually
from kubewright.testing.accounts import grant, revoke

LATEST = 6
"""An operator dies when it has sent at most this many requests in a step of its story."""


class Troupe:
    """The processes of all operators; a killed one is restarted immediately, as Kubernetes would."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self.replicas: dict[str, list[Replica]] = {}

    async def start(self, stage: Stage, *flags: str) -> Replica:
        """Start a replica of a sample's operator, as its ServiceAccount."""
        name = stage.sample.name
        arguments = [f"--kubeconfig={self._folder / f'{name}.kubeconfig'}", *flags]
        replica = await Replica.start(stage.sample.target, self._cluster, self._folder, arguments)
        self.replicas.setdefault(name, []).append(replica)
        return replica

    async def kill(self, stage: Stage) -> None:
        """Kill the operator of a sample, and start it again."""
        replica = self.replicas[stage.sample.name][-1]
        assert await replica.ended(signal.SIGKILL, timeout=60) == -signal.SIGKILL
        await self.start(stage)

    async def stop(self) -> None:
        """End all that still run; a webhook's operator takes its registration along."""
        for replica in (found for several in self.replicas.values() for found in several):
            if replica.process.returncode is None:
                await replica.ended(signal.SIGTERM, timeout=60)


@asynccontextmanager
async def troupe(
    cluster: Cluster, gateway: Gateway, found: Sequence[Stage], folder: Path
) -> AsyncGenerator[Troupe, None]:
    """Install and grant what the operators need, and take it back when they have ended."""
    async with AsyncExitStack() as stack:
        for stage in found:
            operator = stage.sample.operator()
            await cluster.install(operator)
            config = await grant(cluster.client, cluster.config, operator, cluster.namespace)
            stack.push_async_callback(revoke, cluster.client, operator, cluster.namespace)
            file = folder / f"{stage.sample.name}.kubeconfig"
            await asyncio.to_thread(file.write_text, gateway.kubeconfig(config.token, cluster.namespace))
        made = Troupe(cluster, folder)
        stack.push_async_callback(made.stop)
        yield made


async def play_all(found: Sequence[Stage]) -> None:
    """Play every story to its end, side by side; each step checks what came of it."""

    async def play(stage: Stage) -> None:
        for step in STORIES[stage.sample.name]:
            await step.play(stage)

    async with asyncio.TaskGroup() as group:
        for stage in found:
            group.create_task(play(stage))


async def left_over(cluster: Cluster) -> dict[str, list[str]]:
    """List what the stories leave behind: the Pods of Foos, and what a real garbage collector is still taking."""
    return {
        kind.__name__: sorted(
            item.metadata.name
            for item in await cluster.client.list(kind, namespace=cluster.namespace)
            if not item.metadata.owner_references
        )
        for kind in (apps_v1.Deployment, core_v1.Pod)
    }


@pytest.fixture
def found(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    outside = tmp_path / "vcenter.json"
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(outside))
    return stages(cluster, outside)


@pytest.mark.seeds(20261115)
async def test_operators_reach_the_desired_state_when_they_are_killed_repeatedly(
    cluster: Cluster, found: list[Stage], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)

    async def torment(stage: Stage, gateway: Gateway, processes: Troupe) -> None:
        """Play a story; in each step the operator dies after some requests, or at the end if it sends fewer."""
        for step in STORIES[stage.sample.name]:
            last = len(gateway.exchanges) + chance.randint(0, LATEST)
            async with asyncio.TaskGroup() as group:
                playing = group.create_task(step.play(stage))
                await eventually(
                    lambda: len(gateway.exchanges) >= last or playing.done(),  # noqa: B023 (called at once)
                    timeout=900,  # the step fails before
                    interval=0.005,
                )
                await processes.kill(stage)

    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        # Each has a gateway of its own, which counts its requests.
        gateways = [await stack.enter_async_context(Gateway.to(cluster.config)) for _ in found]
        crews = [
            await stack.enter_async_context(troupe(cluster, gateway, [stage], tmp_path))
            for stage, gateway in zip(found, gateways, strict=True)
        ]
        for stage, processes in zip(found, crews, strict=True):
            await (await processes.start(stage)).wait_says("Starting workers", timeout=60)
        for stage, gateway, processes in zip(found, gateways, crews, strict=True):
            group.create_task(torment(stage, gateway, processes))
    assert await left_over(cluster) == {"Deployment": [], "Pod": ["second", "test"]}
    assert [gateway.forbidden() for gateway in gateways] == [[]] * len(found)


async def test_the_standby_takes_over_when_the_leader_dies_during_an_outage(
    cluster: Cluster, found: list[Stage], tmp_path: Path
) -> None:
    async with Gateway.to(cluster.config) as gateway, troupe(cluster, gateway, found, tmp_path) as processes:
        for stage in found:
            leader = await processes.start(stage, "--leader-elect")
            await leader.wait_says("Starting workers", timeout=60)
        for stage in found:
            await processes.start(stage, "--leader-elect")
        async with asyncio.TaskGroup() as group:
            group.create_task(play_all(found))
            for stage in found:
                await processes.replicas[stage.sample.name][0].ended(signal.SIGKILL, timeout=60)
            await gateway.asked_for("/leases/", by=len(found))
            await gateway.disconnect()
            for _, second in processes.replicas.values():
                await second.wait_says("could not be read or renewed", timeout=60)
            await gateway.restore()
        for first, second in processes.replicas.values():
            assert first.process.returncode == -signal.SIGKILL
            assert second.process.returncode is None
    assert await left_over(cluster) == {"Deployment": [], "Pod": ["second", "test"]}
    assert gateway.forbidden() == []
