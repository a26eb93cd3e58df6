"""Replicas of an operator: one works while it holds the lease, and none writes without it."""

import asyncio
import signal
import sys
import threading
import time
from asyncio.subprocess import Process
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import yaml

from kubewright.api import Conflict, Meta
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.client import ClusterConfig
from kubewright.controller import Context, Controller, Operator, Options
from kubewright.election import ElectionOptions, LeaseLost, LeaseTimes, NotLeading
from kubewright.manager import Lifetimes, Manager
from kubewright.testing import Cluster, eventually
from kubewright.webhook.certificates.authority import begin, utc_now

from .controller.running.conftest import cluster, known_types  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxStatus
from .controller.running.operators import options, running, started

# As short as a busy machine lets a leader keep its lease.
QUICK = LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0)


async def test_the_standby_takes_over_when_the_leader_stops(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
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
            await cluster.eventually(Box, "a", lambda found: found.status.ready == 1)
            assert not second.ready.is_set()
            lease = await cluster.get(coordination_v1.Lease, "box")
            assert lease.spec.holder_identity == "first"
            assert {one for one in worked if "everywhere" not in one} == {"first"}
        await cluster.client.patch(box, {"spec": {"size": 5}})
        await cluster.eventually(Box, "a", lambda found: found.status.ready == 5)
        assert {"second", "first everywhere", "second everywhere"} <= set(worked)
    released = await cluster.get(coordination_v1.Lease, "box")
    assert released.spec.holder_identity == ""


async def test_writes_are_refused_after_the_lease_is_lost(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun = asyncio.Event()
    refused: list[str] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        assert ctx.leading
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            # Code that cleans up when it is cancelled comes too late to write: another may lead.
            assert not ctx.leading
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
        await steal_lease(cluster)
        await running
    assert len(refused) == 3
    assert "nothing was written" in refused[0]
    assert (await cluster.get(Box, "a")).status.ready == 0
    assert await cluster.find(core_v1.ConfigMap, "late") is None


async def expect_loss(manager: Manager) -> None:
    with pytest.raises(LeaseLost, match="leader election lost"):
        await manager.run()


PROGRAM = """
import asyncio, sys, time, dataclasses
from datetime import timedelta
from pathlib import Path
from kubewright import admission
from kubewright.api import Meta
from kubewright.client import load_config
from kubewright.controller import Controller, Operator, Result
from kubewright.election import ElectionOptions, LeaseLost, LeaseTimes
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
folder = Path(sys.argv[3])
sys.path.insert(0, str(folder))
from running_kinds import Box, BoxStatus

webhooks = WebhookOptions()
hooks = []
{body}
options = ManagerOptions(
    metrics_bind_address="0", health_probe_bind_address="0", namespaces=(sys.argv[2],), webhooks=webhooks,
    election=ElectionOptions(
        identity="program",
        times=LeaseTimes(duration=6.0, renew_deadline=4.0, retry_period=0.2, main_loop_silence=4.0),
    ),
)
config = dataclasses.replace(load_config(Path(sys.argv[1])), namespace=sys.argv[2])
operator = Operator(Controller(Box, reconcile, concurrency=2), webhooks=hooks)
try:
    asyncio.run(Manager(operator, config, options).run())
except LeaseLost:
    print("lost", flush=True)
    sys.exit(3)
"""

BLOCKING = """
async def reconcile(box, ctx):
    print("blocked", flush=True)
    time.sleep(60)
    await ctx.client.patch(box, {"spec": {"size": 99}}, type="merge")
    await ctx.patch_status(box, BoxStatus(ready=99))
"""

WORKING = """
async def reconcile(box, ctx):
    if box.metadata.name == "long":
        print("working", flush=True)
        await asyncio.sleep(1)  # over when the process goes on
        if not ctx.leading:
            return None
    with (folder / "operations").open("a") as external:
        external.write("x")
    return Result(after=timedelta(milliseconds=20))
"""

SERVING = """
webhooks = WebhookOptions(bind_address="127.0.0.1:0", reach="given", cert_dir=folder)

@admission.validating_webhook(Box)
def sensible(box):
    return []

hooks.append(sensible)

async def reconcile(box, ctx):
    print("leading", flush=True)
"""


@asynccontextmanager
async def program(cluster: Cluster, folder: Path, body: str, line: bytes) -> AsyncIterator[Process]:  # noqa: F811 (a fixture's value)
    """Run an operator in a process of its own, from its first line of output on."""
    kubeconfig = await asyncio.to_thread(write_kubeconfig, cluster.config, folder)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM.replace("{body}", body),
        str(kubeconfig),
        cluster.namespace,
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == line
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_replica_that_blocks_its_event_loop_exits_and_does_not_write_beside_its_successor(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    await cluster.install(Box)
    await cluster.create(Box(Meta("a")))
    async with program(cluster, tmp_path, BLOCKING, b"blocked\n") as stuck:
        blocked_at = time.monotonic()
        wrote_at: list[float] = []

        async def reconcile(box: Box, ctx: Context) -> None:
            await ctx.patch_status(box, BoxStatus(ready=7))
            wrote_at.append(time.monotonic())

        chosen = options(election=ElectionOptions(times=QUICK, identity="next"))
        async with running(cluster, Controller(Box, reconcile), options=chosen):
            assert await asyncio.wait_for(stuck.wait(), 60) == 1
            await cluster.eventually(Box, "a", lambda found: found.status.ready == 7)
        assert wrote_at[0] - blocked_at > QUICK.main_loop_silence
        assert (await cluster.get(Box, "a")).spec.size == 1


async def test_a_paused_leader_starts_no_work_when_it_resumes(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    await cluster.install(Box)
    operations = tmp_path / "operations"
    for name in ("often", "long"):
        await cluster.create(Box(Meta(name)))

    async def reconcile(box: Box, ctx: Context) -> None:
        pass

    async def worked() -> bool:
        return operations.exists() and operations.stat().st_size > 5

    async with program(cluster, tmp_path, WORKING, b"working\n") as paused:
        await eventually(worked)
        paused.send_signal(signal.SIGSTOP)
        chosen = options(election=ElectionOptions(times=QUICK, identity="next"))
        async with running(cluster, Controller(Box, reconcile), options=chosen):
            # It leads by now.
            before = operations.stat().st_size
            paused.send_signal(signal.SIGCONT)
            await asyncio.wait_for(paused.communicate(), 60)
        assert operations.stat().st_size == before


async def test_losing_the_lease_lets_open_webhook_requests_end(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tmp_path: Path,
) -> None:
    # Behind a Service they are served for 5 s more, here more than twice as long as until another may lead.
    await cluster.install(Box)
    await cluster.create(Box(Meta("a")))
    bundle = await asyncio.to_thread(begin, ["localhost"], Lifetimes(), utc_now())
    (tmp_path / "tls.key").write_bytes(bundle.key)
    (tmp_path / "tls.crt").write_bytes(bundle.certificate)
    async with program(cluster, tmp_path, SERVING, b"leading\n") as serving:
        await steal_lease(cluster)
        out, error = await asyncio.wait_for(serving.communicate(), 60)
        assert (serving.returncode, out) == (3, b"lost\n"), error.decode()


async def steal_lease(cluster: Cluster) -> None:  # noqa: F811 (a fixture's value)
    async def stolen() -> bool:
        lease = await cluster.get(coordination_v1.Lease, "box")
        lease.spec.holder_identity = "thief"
        try:
            await cluster.client.replace(lease)
        except Conflict:
            return False  # renewed in between
        return True

    await eventually(stolen)


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


async def test_a_thread_that_still_runs_keeps_the_lease_until_it_ends(cluster: Cluster) -> None:  # noqa: F811 (a fixture)
    await cluster.install(Box)
    begun, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def reconcile(box: Box, ctx: Context) -> None:
        def work() -> None:
            loop.call_soon_threadsafe(begun.set)
            ended.wait()

        await ctx.run_sync(work)

    async def lease() -> coordination_v1.LeaseSpec:
        return (await cluster.get(coordination_v1.Lease, "box")).spec

    chosen = options(election=ElectionOptions(times=QUICK, identity="busy"), graceful_timeout=0.05)
    try:
        async with running(cluster, Controller(Box, reconcile), options=chosen):
            await cluster.create(Box(Meta("a")))
            await begun.wait()
        renewed = (await lease()).renew_time

        async def renewed_again() -> bool:
            return (await lease()).renew_time != renewed

        await eventually(renewed_again)
        assert (await lease()).holder_identity == "busy"
    finally:
        ended.set()

    async def released() -> bool:
        return (await lease()).holder_identity == ""

    await eventually(released)
