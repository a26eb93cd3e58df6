"""The first page of the documentation runs as it stands."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from first_operator import MyOwnShell, ShellSpec, shells

import kubewright as kw
from kubewright.api.builtin import apps_v1
from kubewright.testing import Cluster

FILE = Path(__file__).parents[2] / "examples" / "first_operator.py"


async def test_the_deployment_follows_the_resource(cluster: Cluster) -> None:
    async with cluster.running(kw.Operator(shells, name="first-operator")):
        made = await cluster.create(MyOwnShell(kw.Meta("demo"), spec=ShellSpec(size=2)))
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 2)
        await cluster.client.patch(made, {"spec": {"size": 1}})
        await cluster.eventually(MyOwnShell, "demo", lambda it: it.status.ready == 1)
        await cluster.client.delete(made)
        await cluster.eventually_gone(MyOwnShell, "demo")
    assert any("Successfully finalized MyOwnShell" in line for line in cluster.log)


async def test_kubewright_run_runs_the_file(cluster: Cluster) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from kubewright.cli import main; main()",
        "run",
        str(FILE),
        "--install",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={cluster.namespace}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(os.environ),
    )
    try:
        await cluster.install(kw.Operator(shells))
        await cluster.create(MyOwnShell(kw.Meta("demo"), spec=ShellSpec(size=1)))
        await cluster.eventually(apps_v1.Deployment, "demo", lambda it: it.spec.replicas == 1)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 60) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
