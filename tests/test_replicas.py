"""Replicas of an operator: one works while it holds the lease, and nobody writes without it."""

import asyncio
import sys
import threading
import time
from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml

from kubewright.api import Conflict, Meta
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.client import ClusterConfig
from kubewright.controller import Context, Controller, Operator, Options
from kubewright.election import ElectionOptions, LeaseLost, LeaseTimes, NotLeading
from kubewright.manager import Manager

from .controller.running.cluster import Cluster, options, started
from .controller.running.conftest import cluster, known_types, real_config  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxStatus

# As short as a busy machine lets a leader keep its lease.
QUICK = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0)


async def test_one_of_two_replicas_works_and_the_other_takes_over(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    worked: list[str] = []

    def replica(name: str) -> Manager:
        async def reconcile(box: Box, ctx: Context) -> None:
            worked.append(name)
            await ctx.patch_status(box, BoxStatus(ready=box.spec.size))

        async def everywhere(box: Box, ctx: Context) -> None:
            worked.append(f"{name} everywhere")

        operator = Operator(
            Controller(Box, reconcile),
            Controller(Box, everywhere, name="unelected", options=Options(needs_leader_election=False)),
        )
        chosen = options(
            election=ElectionOptions(times=QUICK, identity=name), namespaces=(cluster.namespace,)
        )
        return Manager(operator, cluster.config, chosen)

    first, second = replica("first"), replica("second")
    async with AsyncExitStack() as stack:
        async with started(first):
            await first.ready.wait()
            await stack.enter_async_context(started(second))
            await second.synced.wait()
            box = await cluster.create(Box(Meta("a")))
            await cluster.until(Box, "a", lambda found: found.status.ready == 1)
            assert not second.ready.is_set()
            lease = await cluster.get(coordination_v1.Lease, "box")
            assert lease.spec.holder_identity == "first"
            assert {one for one in worked if "everywhere" not in one} == {"first"}
        await cluster.merge(box, {"spec": {"size": 5}})
        await cluster.until(Box, "a", lambda found: found.status.ready == 5)
        assert {"second", "first everywhere", "second everywhere"} <= set(worked)
    released = await cluster.get(coordination_v1.Lease, "box")
    assert released.spec.holder_identity == ""


async def test_nothing_is_written_any_more_once_the_lease_is_lost(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun = asyncio.Event()
    refused: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            # Code that cleans up when it is told to stop comes too late to write: another may lead.
            for write in (
                ctx.patch_status(box, BoxStatus(ready=99)),
                ctx.client.create(core_v1.ConfigMap(Meta("late", namespace=cluster.namespace))),
                ctx.client.delete(box),
            ):
                try:
                    await write
                except NotLeading as refusal:
                    refused.append(str(refusal))
            raise

    chosen = options(election=ElectionOptions(times=QUICK, identity="first"), namespaces=(cluster.namespace,))
    manager = Manager(Operator(Controller(Box, reconcile)), cluster.config, chosen)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(expect_loss(manager))
        await cluster.create(Box(Meta("a")))
        await begun.wait()

        async def stolen() -> bool:
            lease = await cluster.get(coordination_v1.Lease, "box")
            lease.spec.holder_identity = "thief"
            try:
                await cluster.client.replace(lease)
            except Conflict:
                return False  # renewed in between
            return True

        await cluster.eventually(stolen)
        await running
    assert len(refused) == 3
    assert "nothing was written" in refused[0]
    assert (await cluster.get(Box, "a")).status.ready == 0
    assert await cluster.find(core_v1.ConfigMap, "late") is None


async def expect_loss(manager: Manager) -> None:
    with pytest.raises(LeaseLost, match="leader election lost"):
        await manager.run()


BLOCKING = """
import asyncio, sys, time, dataclasses
from pathlib import Path
from kubewright.api import Meta
from kubewright.client import load_config
from kubewright.controller import Controller, Operator
from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager import Manager, ManagerOptions
sys.path.insert(0, sys.argv[3])
from running_kinds import Box, BoxStatus

async def reconcile(box, ctx):
    print("blocked", flush=True)
    time.sleep(60)
    await ctx.client.patch(box, {"spec": {"size": 99}}, type="merge")
    await ctx.patch_status(box, BoxStatus(ready=99))

options = ManagerOptions(
    metrics_bind_address="0", health_probe_bind_address="0", namespaces=(sys.argv[2],),
    election=ElectionOptions(
        identity="stuck",
        times=LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0),
    ),
)
config = dataclasses.replace(load_config(Path(sys.argv[1])), namespace=sys.argv[2])
asyncio.run(Manager(Operator(Controller(Box, reconcile)), config, options).run())
"""


async def test_a_replica_that_blocks_its_loop_is_ended_and_never_writes_beside_its_successor(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    await cluster.install(Box)
    kubeconfig = await asyncio.to_thread(write_kubeconfig, cluster.config, tmp_path)
    await cluster.create(Box(Meta("a")))
    arguments = (str(kubeconfig), cluster.namespace, str(tmp_path))
    stuck = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        BLOCKING,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert stuck.stdout is not None
        assert await asyncio.wait_for(stuck.stdout.readline(), 60) == b"blocked\n"
        blocked_at = time.monotonic()
        wrote_at: list[float] = []

        async def reconcile(box: Box, ctx: Context) -> None:
            await ctx.patch_status(box, BoxStatus(ready=7))
            wrote_at.append(time.monotonic())

        chosen = options(election=ElectionOptions(times=QUICK, identity="next"))
        async with cluster.running(Controller(Box, reconcile), options=chosen):
            assert await asyncio.wait_for(stuck.wait(), 60) == 1
            await cluster.until(Box, "a", lambda found: found.status.ready == 7)
        assert wrote_at[0] - blocked_at > QUICK.main_loop_silence
        assert (await cluster.get(Box, "a")).spec.size == 1
    finally:
        if stuck.returncode is None:
            stuck.kill()
            await stuck.wait()


def write_kubeconfig(config: ClusterConfig, folder: Path) -> Path:

    user = {
        "client-certificate-data": b64encode(config.client_cert_data).decode(),
        "client-key-data": b64encode(config.client_key_data).decode(),
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [
            {
                "name": "test",
                "cluster": {
                    "server": config.server,
                    "certificate-authority-data": b64encode(config.ca_data).decode(),
                },
            }
        ],
        "users": [{"name": "test", "user": user}],
    }
    kinds = Path(__file__).parent / "controller" / "running" / "kinds.py"
    (folder / "running_kinds.py").write_text(kinds.read_text())
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def test_a_thread_that_still_runs_keeps_the_lease_from_being_released(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def reconcile(box: Box, ctx: Context) -> None:
        def work() -> None:
            loop.call_soon_threadsafe(begun.set)
            ended.wait()

        await ctx.run_sync(work)

    chosen = options(election=ElectionOptions(times=QUICK, identity="busy"), graceful_timeout=0.05)
    try:
        async with cluster.running(Controller(Box, reconcile), options=chosen):
            await cluster.create(Box(Meta("a")))
            await begun.wait()
        lease = await cluster.get(coordination_v1.Lease, "box")
        assert lease.spec.holder_identity == "busy"
    finally:
        ended.set()
