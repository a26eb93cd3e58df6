"""Processes are ended by the mark that they carry, and by nothing else."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from kubewright.processpods.child import Child, StartError
from kubewright.processpods.reaper import MARK, Reaper, kill_orphans


@pytest.fixture
def reaper() -> Generator[Reaper, None, None]:
    made = Reaper.start()
    yield made
    made.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells whose process it is")
def test_only_what_carries_the_very_mark_is_killed(reaper: Reaper) -> None:
    own, *others = (
        subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: mark})
        for mark in (
            f"{reaper.name}/uid/main",
            f"{reaper.name}/uid/main2",
            f"{reaper.name}/uid",
            "another-cluster/uid/main",
        )
    )
    try:
        kill_orphans(f"{reaper.name}/uid/main")
        assert own.wait(60) == -9
        assert [process.poll() for process in others] == [None, None, None]
    finally:
        for process in (own, *others):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("command", "variables"), [(["true", "a\0b"], {}), (["true"], {"A": "b\0c"}), (["/no/such/thing"], {})]
)
async def test_what_cannot_be_a_process_is_told_as_such(
    reaper: Reaper, tmp_path: Path, command: list[str], variables: dict[str, str]
) -> None:
    with pytest.raises(StartError):
        await Child.start(command, reaper=reaper, environment=variables, folder=tmp_path)


def _helper(reaper: Reaper) -> int:
    """Find a reaper's process by its command line."""
    for number in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"={reaper.name}/".encode() in Path("/proc", number, "cmdline").read_bytes():
                return int(number)
    raise AssertionError("the reaper has no process")


async def _unheard(stream: str, data: bytes) -> None:
    raise AssertionError(f"{stream}: {data!r}")


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells which process it is")
async def test_a_warden_that_was_killed_is_replaced_and_knows_all_that_lives(
    reaper: Reaper, tmp_path: Path
) -> None:
    first = await Child.start(["sleep", "1000"], reaper=reaper, environment=dict(os.environ), folder=tmp_path)
    helper = _helper(reaper)
    os.kill(helper, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, helper, os.WEXITED | os.WNOWAIT)
    second = await Child.start(
        ["sleep", "1000"], reaper=reaper, environment=dict(os.environ), folder=tmp_path
    )
    await asyncio.to_thread(reaper.stop)
    assert await first.run(_unheard) == await second.run(_unheard) == 128 + signal.SIGKILL
