"""The demo's replicas of an operator."""

import os
import signal
from pathlib import Path

import pytest
from show import replicas
from show.replicas import Replica

from kubewright.testing import eventually


async def test_a_replica_that_ends_by_itself_is_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "RESTART_SECONDS", 0.0)
    replica = await Replica.start(tmp_path, tmp_path / "kubeconfig", "default")
    try:
        first = replica.pid
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: replica.pid != first)
    finally:
        await replica.stop()
