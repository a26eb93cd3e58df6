"""Logs, exec, attach and port-forward of simulated Pods."""

import asyncio
from pathlib import Path

import pytest
from devcluster_workloads import pod

from kubewright.api.builtin import core_v1
from kubewright.testing import Cluster


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("logs", ["logs", "empty"]),
        ("exec", ["exec", "empty", "--", "ls"]),
        ("attach", ["attach", "empty"]),
        ("port-forward", ["port-forward", "pod/empty", ":80"]),
    ],
)
async def test_the_error_says_how_to_run_pods_as_processes(
    cluster: Cluster, kubectl_path: Path, what: str, arguments: list[str]
) -> None:
    if cluster.server != "embedded":
        pytest.skip("a real server looks for a kubelet")
    await cluster.create(pod("empty"))
    await cluster.eventually(core_v1.Pod, "empty", lambda found: found.status.phase == "Running")
    code, text = await _run(cluster, kubectl_path, *arguments)
    assert code == 1
    assert f"so there is no {what}: start it with `kubewright dev --pods=process`" in text


async def _run(cluster: Cluster, kubectl_path: Path, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        kubectl_path,
        f"--kubeconfig={cluster.kubeconfig}",
        f"--namespace={cluster.namespace}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()
