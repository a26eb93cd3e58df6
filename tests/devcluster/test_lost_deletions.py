"""Deleted Pods are removed whatever faults the kubelet's watches and writes meet."""

import asyncio
import random

import pytest
from devcluster_workloads import pod

from kubewright.api import KubewrightError, NotFound
from kubewright.api.builtin import core_v1
from kubewright.devserver import Faults, Match
from kubewright.testing import Cluster, embedded, eventually, virtual_time

PODS = 6
STEPS = 25
ENOUGH = 120.0
"""Seconds of virtual time after which deleted Pods are gone, including backoff."""


async def inject_fault(faults: Faults, chance: random.Random) -> None:
    """Inject one fault into the kubelet's requests or watches."""
    agent = "kubewright"
    writes = Match(verbs=("patch", "delete"), resource="pods", agent=agent)
    match chance.randrange(5):
        case 0:
            faults.cut_watches(Match(resource="pods"), how=chance.choice(("end", "reset", "expire")))
        case 1:
            faults.add(match=writes, fail=chance.choice((409, 500, "reset")), times=chance.randrange(1, 4))
        case 2:
            faults.add(match=writes, fail="reset", when="after", times=1)
        case 3:
            faults.add(match=writes, delay=chance.uniform(0, 2), times=3)
        case _:
            with faults.freeze(Match(verbs=("watch",), resource="pods", agent=agent)):
                await asyncio.sleep(chance.uniform(0, 3))


async def come_or_go(cluster: Cluster, name: str, chance: random.Random) -> None:
    """Create the Pod, or delete it with or without a grace period; both may fail with an injected fault."""
    try:
        found = await cluster.client.get(core_v1.Pod, name, cluster.namespace)
        await cluster.client.delete(found, grace_period_seconds=chance.choice((None, 0, 1)))
    except NotFound:
        await cluster.create(pod(name))
    except KubewrightError:
        return


@pytest.mark.seeds(0, 1, 3, 41)
def test_deleted_pods_are_removed(seed: int) -> None:
    @virtual_time
    async def check() -> None:
        chance = random.Random(seed)
        async with embedded() as cluster:
            faults = cluster.faults
            for _ in range(STEPS):
                await come_or_go(cluster, f"pod-{chance.randrange(PODS)}", chance)
                await inject_fault(faults, chance)
                await asyncio.sleep(chance.choice((0.0, 0.05, 0.3, 2.0)))
            faults.clear()
            for found in await cluster.client.list(core_v1.Pod, namespace=cluster.namespace):
                if found.metadata.deletion_timestamp is None:
                    await cluster.client.delete(found)

            async def none_left() -> bool:
                return not await cluster.client.list(core_v1.Pod, namespace=cluster.namespace)

            await eventually(none_left, timeout=ENOUGH)

    check()
