"""Programs that end when they are told to, whatever runs in them."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, concurrent.futures, sys, time
from kubewright.cli.loops import run_program, until_signalled

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

async def end():
    print("ready", flush=True)
    await asyncio.sleep(3600)

work = {"swallow": swallow, "thread": leave_a_thread, "end": end}[sys.argv[1]]
run_program(lambda: until_signalled(work(), limit=0.2))
"""


@pytest.mark.parametrize(("what", "code"), [("swallow", 1), ("thread", 1), ("end", 0)])
def test_a_signal_ends_the_program_even_where_something_in_it_does_not_stop(what: str, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGTERM)
        _, told = program.communicate(timeout=60)
    assert program.returncode == code
    assert ("Something still runs" in told) == (code == 1)
