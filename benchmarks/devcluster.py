"""Deployments to Available on `kubewright dev`, against the real control plane with the same kubelet.

Both run on this machine as programs of their own and are driven by the same client. Ours is one process: server,
controllers, scheduler and kubelet. The real one is four, and our kubelet beside the client.
"""

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from harness import Bench, alternate_async

from kubewright.api import Meta, decode
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.cli.loops import run_program
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.devcluster import kubelet_operator, register_nodes
from kubewright.manager import Manager, ManagerOptions
from kubewright.testing.controlplane import (
    CONTROLLERS,
    SERVERS,
    ControlPlane,
    find_binaries,
    missing_binaries,
)

NAMESPACE = "default"
REAL = "real control plane"
_TICKS = os.sysconf("SC_CLK_TCK")
_OFF = "0"
_DEV = "from kubewright.cli import main; main()"


class Cost(NamedTuple):
    """What one run took, in seconds."""

    wall: float
    cpu: float


def deployment(name: str, replicas: int) -> apps_v1.Deployment:
    """Make a Deployment of one container."""
    labels = {"app": name}
    template = core_v1.PodTemplateSpec(
        metadata=Meta(labels=labels),
        spec=core_v1.PodSpec(containers=[core_v1.Container(name="main", image="nginx:1.25")]),
    )
    return apps_v1.Deployment(
        Meta(name, namespace=NAMESPACE),
        spec=apps_v1.DeploymentSpec(
            replicas=replicas, selector=meta_v1.LabelSelector(match_labels=labels), template=template
        ),
    )


async def until_available(client: Client, missing: set[str], replicas: int) -> None:
    """Watch the Deployments, which costs less than asking again and again, until each has all its Pods."""
    async for event in client.watch(apps_v1.Deployment, namespace=NAMESPACE):
        found = decode(apps_v1.Deployment, event.object.raw)
        if found.status.available_replicas == replicas:
            missing.discard(found.metadata.name)
        if not missing:
            return


async def roll_out(client: Client, count: int, replicas: int) -> Cost:
    """Create Deployments and wait until all are available, on a cluster that ends with the run."""
    names = [f"bench-{number}" for number in range(count)]
    # As `kubewright run` does once it is ready: the kubelet beside the real control plane is here.
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), _cpu()
    async with asyncio.TaskGroup() as group:
        group.create_task(until_available(client, set(names), replicas))
        for name in names:
            await client.create(deployment(name, replicas))
    return Cost(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    """Return the CPU time of this process and of all processes that it started."""
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        times[int(entry.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    mine = os.getpid()
    family = {mine}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return time.process_time() + sum(times[pid] for pid in family if pid != mine)


@asynccontextmanager
async def dev_cluster() -> AsyncGenerator[ClusterConfig, None]:
    """Run `kubewright dev`."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = (sys.executable, "-c", _DEV, "dev", "--kubeconfig", str(kubeconfig))
        program = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert program.stdout is not None
        try:
            if not await program.stdout.readline():
                raise SystemExit("kubewright dev did not start")
            yield await asyncio.to_thread(load_config, kubeconfig)
        finally:
            if program.returncode is None:
                program.terminate()
            await program.wait()


@asynccontextmanager
async def real_cluster(binaries: Path) -> AsyncGenerator[ClusterConfig, None]:
    """Run the real control plane with our kubelet."""
    async with ControlPlane(binaries) as plane, AsyncExitStack() as stack:
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        async with Client(config) as client:
            await register_nodes(client)
            version = (await client.server_version()).git_version
        options = ManagerOptions(
            metrics_bind_address=_OFF, health_probe_bind_address=_OFF, graceful_timeout=1.0
        )
        manager = Manager(kubelet_operator(version), config, options)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(group.create_task(manager.run()).cancel)
        await manager.ready.wait()
        yield config


async def main() -> int:
    """Compare both on both loads."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--load",
        action="append",
        metavar="DEPLOYMENTSxPODS",
        help="a load to measure, repeatable (default 1x50 and 100x10)",
    )
    bench = Bench(
        "devcluster", "Deployments to Available, against the real control plane", parser=parser, rounds=3
    )
    binaries = find_binaries()
    if binaries is None or missing_binaries(binaries, (*SERVERS, *CONTROLLERS)):
        bench.progress("the real control plane is needed: run scripts/control-plane build")
        return 1
    for load in bench.options.load or ["1x50", "100x10"]:
        count, replicas = map(int, load.split("x"))
        bench.progress(f"{count} x {replicas} Pods")

        async def ours(count: int = count, replicas: int = replicas) -> Cost:
            async with dev_cluster() as config, Client(config, field_manager="bench") as client:
                return await roll_out(client, count, replicas)

        async def theirs(count: int = count, replicas: int = replicas) -> Cost:
            async with real_cluster(binaries) as config, Client(config, field_manager="bench") as client:
                return await roll_out(client, count, replicas)

        contenders: dict[str, Callable[[], Awaitable[Cost]]] = {"kubewright": ours, REAL: theirs}
        runs = await alternate_async(bench.rounds, contenders)
        work = f"{count} Deployment{'s' if count > 1 else ''} of {replicas}"
        bench.row(
            work,
            "time",
            "s",
            {name: [cost.wall for cost in costs] for name, costs in runs.items()},
            goal="<= 1",
        )
        bench.row(work, "CPU", "s", {name: [cost.cpu for cost in costs] for name, costs in runs.items()})
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(run_program(main))
