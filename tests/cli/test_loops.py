"""Programs that end when they get a signal, whatever runs in them."""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

PROGRAM = """
import asyncio, concurrent.futures, sys, time
from kubewright.cli import loops

async def swallow():
    print("ready", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def leave_a_thread():
    with_thread = concurrent.futures.ThreadPoolExecutor()
    future = asyncio.get_running_loop().run_in_executor(with_thread, time.sleep, 3600)
    print("ready", flush=True)
    await future

async def block():
    print("ready", flush=True)
    time.sleep(3600)

async def end():
    print("ready", flush=True)
    await asyncio.sleep(3600)

async def clean_up():
    print("ready", flush=True)
    try:
        await asyncio.sleep(3600)
    finally:
        print("stopping", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print("clean", flush=True)

works = {"swallow": swallow, "thread": leave_a_thread, "block": block, "end": end, "clean up": clean_up}
loops.SAME_REQUEST = float(sys.argv[3])
loops.run_program(lambda: loops.until_signalled(works[sys.argv[1]](), limit=float(sys.argv[2])))
"""


@contextmanager
def running(
    work: str, *, limit: float = 3600.0, same_request: float = 3600.0
) -> Generator[subprocess.Popen[str], None, None]:
    """Run one of the works in a program of its own, from when it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, work, str(limit), str(same_request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert next_line(program) == "ready"
            yield program
        finally:
            program.kill()


def next_line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


@pytest.mark.parametrize("work", ["swallow", "thread", "block"])
def test_the_limit_ends_a_program_in_which_something_does_not_stop(work: str) -> None:
    with running(work, limit=0.2) as program:
        program.send_signal(signal.SIGTERM)
        _, log = program.communicate(timeout=60)
    assert program.returncode == 1
    assert "Shutdown timed out" in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_program_that_stops_by_itself_ends_with_0(number: signal.Signals) -> None:
    with running("end") as program:
        program.send_signal(number)
        _, log = program.communicate(timeout=60)
    assert program.returncode == 0
    assert log == ""


def test_a_signal_sent_twice_at_once_is_one_stop_request() -> None:
    # As timeout(1) does: to its child, and to its process group, which the child is in.
    with running("clean up") as program:
        program.send_signal(signal.SIGTERM)
        assert next_line(program) == "stopping"
        program.send_signal(signal.SIGTERM)
        out, _ = program.communicate("go on\n", timeout=60)
    assert program.returncode == 0
    assert out == "clean\n"


@pytest.mark.parametrize("work", ["clean up", "block"])
def test_a_later_signal_ends_the_program_at_once(work: str) -> None:
    with running(work, same_request=0.0) as program:
        program.send_signal(signal.SIGTERM)
        if work == "clean up":
            assert next_line(program) == "stopping"
        while program.poll() is None:
            # Two that are pending at the same time are delivered as one.
            program.send_signal(signal.SIGTERM)
    assert program.returncode == 1
