"""The process in which a cluster for tests runs."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.client import Client
from kubewright.testing import RunningEnvironment

_OWNER = """
import time
from kubewright.testing import RunningEnvironment

environment = RunningEnvironment("embedded")
environment.start()
print(environment.kubeconfig, flush=True)
time.sleep(1000)
"""


def test_a_cluster_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    environment = RunningEnvironment("embedded")
    with pytest.raises(RuntimeError, match="the embedded cluster did not start"):
        environment.start()


async def test_a_cluster_answers_until_it_is_stopped_and_leaves_nothing_behind() -> None:
    environment = RunningEnvironment("embedded")
    await asyncio.to_thread(environment.start)
    try:
        async with Client(await asyncio.to_thread(environment.config)) as client:
            assert (await client.server_version()).git_version.startswith("v1.")
    finally:
        await asyncio.to_thread(environment.stop)
    assert not await asyncio.to_thread(environment.kubeconfig.parent.exists)


def test_a_cluster_ends_with_an_owner_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        kubeconfig = Path(owner.stdout.readline().rstrip("\n"))
        assert kubeconfig.exists()
        owner.send_signal(signal.SIGKILL)
        # The cluster has it from its owner: it ends when both are gone.
        assert owner.stderr.read() == ""
    assert not kubeconfig.parent.exists()
