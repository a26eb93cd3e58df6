"""The demo runs all steps, and leaves nothing behind however it ends."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from kubewright.testing import eventually

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"
SEEN = (
    "my-custom-resource-01 is Healthy, 02 is not",
    "5 of 5 shells are ready",
    "back at 5",
    "a new Pod called test is there",
    'ERROR: could not find template "no-such-template"',
    "RUNNING 3/3",
    "its Deployment follows in one change",
    "the other replica has taken over: 2 shells are ready",
)


@pytest.fixture(autouse=True)
def embedded_only(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--server") != "embedded":
        pytest.skip("the demo brings a cluster of its own")


async def start(folder: Path) -> asyncio.subprocess.Process:
    """Start the demo with a home that cannot be written and a folder of its own for temporary files."""
    home, temporary = folder / "home", folder / "tmp"
    home.mkdir(mode=0o500)
    temporary.mkdir()
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(DEMO),
        "--once",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "NO_COLOR": "1"},
    )


async def test_the_demo_shows_every_step_and_leaves_no_file(tmp_path: Path) -> None:
    process = await start(tmp_path)
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert (process.returncode, err.decode()) == (0, "")
    printed = out.decode()
    assert [text for text in SEEN if text not in printed] == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("The dev cluster is up", signal.SIGINT),
        ("back at 5", signal.SIGHUP),
        ("is killed; its lease", signal.SIGTERM),
    ],
)
async def test_a_signal_ends_the_demo(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    process = await start(tmp_path)
    assert process.stdout is not None
    printed = ""
    while moment not in printed:
        line = await asyncio.wait_for(process.stdout.readline(), 120)
        assert line, (await process.communicate())[1].decode()
        printed += line.decode()
    process.send_signal(number)
    # A second signal does not interrupt the cleanup.
    process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, err.decode()) == (130, "")
    assert "nothing is left running" in out.decode()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to see a process before Python has started")
async def test_ctrl_c_before_python_has_started_ends_the_demo(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        str(ROOT / "scripts" / "demo"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
        # Tests that run in the background may ignore SIGINT, and a shell cannot undo that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    await eventually(lambda: _runs(process.pid, b"demo.py"), interval=0)
    # As a terminal sends it: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, out.decode(), err.decode()) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


def _runs(parent: int, program: bytes) -> bool:
    """Return True if one of a process's children runs a program."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    with contextlib.suppress(OSError):
        return any(program in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)
    return False
