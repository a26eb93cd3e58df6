"""A cluster with process Pods from start to end, including crashes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.devcluster import DevCluster
from kubewright.processpods import ProcessPods
from kubewright.testing import eventually

COMMAND = [str(Path(sys.executable).with_name("kubewright")), "dev", "--pods=process"]


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def shell(name: str, script: str) -> core_v1.Pod:
    container = core_v1.Container(name="main", image="example/shell:1", command=["sh", "-c", script])
    return core_v1.Pod(Meta(name, namespace="default"), spec=core_v1.PodSpec(containers=[container]))


async def started_status(client: Client, pod: core_v1.Pod, restarts: int = 0) -> core_v1.Pod:
    """Create a Pod unless it exists, and wait until it runs."""
    await client.apply(pod, field_manager="test", force=True)

    async def running() -> core_v1.Pod | None:
        found = await client.get(core_v1.Pod, pod.metadata.name, "default")
        statuses = found.status.container_statuses
        started = any(item.state.running and item.restart_count >= restarts for item in statuses)
        return found if started else None

    return await eventually(running)


async def printed(client: Client, name: str) -> str:
    """Return the first line that a Pod prints."""
    async with aclosing(client.pod_logs(name, "default", follow=True)) as pieces:
        async for piece in pieces:
            if b"\n" in piece:
                return piece.decode()
    return ""


async def test_no_process_is_left_when_the_cluster_ends() -> None:
    async with DevCluster(pod_runner=ProcessPods({})) as cluster, Client(cluster.config) as client:
        await started_status(client, shell("one", "sleep 1002 & echo $$$$ $!; wait"))
        processes = [int(word) for word in (await printed(client, "one")).split()]
        assert all(is_alive(number) for number in processes)
    assert not any(is_alive(number) for number in processes)


@contextmanager
def running(kubeconfig: Path, *arguments: str) -> "Generator[subprocess.Popen[str], None, None]":
    """Run the command until the context exits."""
    command = [*COMMAND, f"--kubeconfig={kubeconfig}", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert "is ready" in process.stdout.readline()
            yield process
        finally:
            process.terminate()


# With /proc, processes in their own session are found too.
LEAVING = "trap '' TERM; sleep 1003 & first=$!; SETSID sleep 1005 & echo $$$$ $first $!; wait".replace(
    "SETSID", "setsid" if sys.platform == "linux" else ""
)


def test_no_process_is_left_when_the_cluster_is_killed(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"

    async def fill(config: ClusterConfig) -> list[int]:
        async with Client(config) as client:
            await started_status(client, shell("one", LEAVING))
            return [int(word) for word in (await printed(client, "one")).split()]

    with running(kubeconfig) as owner:
        processes = asyncio.run(fill(load_config(kubeconfig)))
        owner.kill()
        asyncio.run(eventually(lambda: not any(is_alive(number) for number in processes)))


def test_pods_restart_with_a_persistent_cluster(tmp_path: Path) -> None:
    kubeconfig, data = tmp_path / "kubeconfig", f"--data={tmp_path / 'cluster.db'}"

    async def look(config: ClusterConfig, restarts: int) -> core_v1.Pod:
        async with Client(config) as client:
            return await started_status(client, shell("kept", "exec sleep 1004"), restarts)

    with running(kubeconfig, data):
        before = asyncio.run(look(load_config(kubeconfig), 0))
    with running(kubeconfig, data):
        after = asyncio.run(look(load_config(kubeconfig), 1))
    assert after.metadata.uid == before.metadata.uid
    assert after.status.pod_ip == before.status.pod_ip
    last = after.status.container_statuses[0].last_state.terminated
    assert last is not None
    assert last.reason == "Unknown"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run", "a=b"], "--run requires --pods=process"),
        (["--pods=process", "--run", "image"], "expected IMAGE=COMMAND"),
        (["--pods=process", "--run", "image='"], "No closing quotation"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dev", *arguments])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert message in text
    assert len(text.splitlines()) == 1
