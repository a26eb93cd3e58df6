"""Processes are killed by their mark only."""

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


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_only_processes_with_the_exact_mark_are_killed(reaper: Reaper) -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_that_executes_another_program_is_killed(reaper: Reaper, tmp_path: Path) -> None:
    # It executes itself all the time, and has no environment meanwhile.
    script = tmp_path / "again.sh"
    script.write_text(f"exec sh {script}\n")
    mark = f"{reaper.name}/uid/main"
    for _ in range(20):
        process = subprocess.Popen(["sh", script], env={**os.environ, MARK: mark}, start_new_session=True)
        try:
            kill_orphans(mark)
            assert process.wait(60) == -9
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("command", "variables"), [(["true", "a\0b"], {}), (["true"], {"A": "b\0c"}), (["/no/such/thing"], {})]
)
async def test_an_invalid_command_raises_start_error(
    reaper: Reaper, tmp_path: Path, command: list[str], variables: dict[str, str]
) -> None:
    with pytest.raises(StartError):
        await Child.start(command, reaper=reaper, environment=variables, folder=tmp_path)


def _helper(reaper: Reaper) -> int:
    """Return the PID of a reaper's helper, found by its command line."""
    for number in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"={reaper.name}/".encode() in Path("/proc", number, "cmdline").read_bytes():
                return int(number)
    raise AssertionError("the reaper has no process")


async def _unheard(stream: str, data: bytes) -> None:
    raise AssertionError(f"{stream}: {data!r}")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_killed_reaper_is_replaced_and_knows_all_live_groups(reaper: Reaper, tmp_path: Path) -> None:
    first = await Child.start(["sleep", "1000"], reaper=reaper, environment=dict(os.environ), folder=tmp_path)
    helper = _helper(reaper)
    os.kill(helper, signal.SIGKILL)
    await asyncio.to_thread(os.waitid, os.P_PID, helper, os.WEXITED | os.WNOWAIT)
    second = await Child.start(
        ["sleep", "1000"], reaper=reaper, environment=dict(os.environ), folder=tmp_path
    )
    await asyncio.to_thread(reaper.stop)
    assert await first.run(_unheard) == await second.run(_unheard) == 128 + signal.SIGKILL
