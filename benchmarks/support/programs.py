"""The programs under test: building them, running them as processes of their own, and what they used so far."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

BENCHMARKS = Path(__file__).resolve().parents[1]
KUBEWRIGHT = BENCHMARKS / "kubewright_programs"
KOPF = BENCHMARKS / "kopf_programs"
GO_MODULE = BENCHMARKS / "controller_runtime"
RUST_PACKAGE = BENCHMARKS / "kube_rs"

Command = Sequence[str | Path]


class Noting(Protocol):
    """What selects the contenders and reports missing peers."""

    def includes(self, contender: str) -> bool: ...

    def note(self, text: str) -> None: ...

    def progress(self, text: str) -> None: ...


class ProgramFailed(RuntimeError):
    """A program under test ended by itself."""


class Usage(NamedTuple):
    """What a process has used."""

    cpu: float
    """Seconds, user and system, since the process began."""
    rss: float
    """Megabytes now."""
    peak: float
    """Megabytes at most."""


def built_folder() -> Path:
    """Name the folder for the built peers: the user's cache, so that a second run builds nothing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "kubewright" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def go_program(bench: Noting, name: str) -> Path | None:
    """Build one program of the Go module; None, with a note, where that cannot be done."""
    go = shutil.which("go")
    if go is None:
        bench.note("controller-runtime is left out: there is no Go here")
        return None
    program = built_folder() / name
    command = [go, "build", "-trimpath", "-o", program, f"./{name}"]
    return await _built(bench, f"controller-runtime's {name}", program, command, GO_MODULE)


async def rust_program(bench: Noting, name: str) -> Path | None:
    """Build one program of the Rust package; None, with a note, where that cannot be done."""
    cargo = shutil.which("cargo")
    if cargo is None:
        bench.note("kube-rs is left out: there is no Rust here")
        return None
    target = built_folder() / "kube_rs"
    command = [cargo, "build", "--release", "--quiet", "--target-dir", target, "--bin", name]
    return await _built(bench, f"kube-rs's {name}", target / "release" / name, command, RUST_PACKAGE)


async def _built(bench: Noting, what: str, program: Path, command: Command, folder: Path) -> Path | None:
    if _is_fresh(program, folder):
        return program
    bench.progress(f"building {what}")
    build = await asyncio.create_subprocess_exec(
        *map(str, command), cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await build.communicate()
    if build.returncode:
        reason = errors.decode(errors="replace").strip().splitlines()
        bench.note(f"{what} is left out: it did not build ({reason[-1] if reason else 'no reason given'})")
        return None
    # A builder that finds nothing to do leaves the program as old as it was.
    program.touch()
    return program


def _is_fresh(program: Path, sources: Path) -> bool:
    """Return True if the program was built after the last change of its sources."""
    if not program.exists():
        return False
    built = program.stat().st_mtime
    return all(path.stat().st_mtime <= built for path in sources.rglob("*") if path.is_file())


def kopf_command(bench: Noting, name: str, kubeconfig: Path) -> Command | None:
    """Return how kopf runs one of its programs; None, with a note, where kopf is not installed."""
    kopf = Path(sys.executable).with_name("kopf")
    if not kopf.exists():
        bench.note("kopf is left out: run `scripts/setup --peers`")
        return None
    return [
        "env",
        f"KUBECONFIG={kubeconfig}",
        kopf,
        "run",
        "--quiet",
        "--all-namespaces",
        KOPF / f"{name}.py",
    ]


def kubewright_command(name: str, kubeconfig: Path, *options: str) -> Command:
    """Return how one of our programs is run: by the same command that a user types."""
    kubewright = Path(sys.executable).with_name("kubewright")
    off = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
    return [kubewright, "run", KUBEWRIGHT / f"{name}.py", "--kubeconfig", kubeconfig, *off, *options]


def environment() -> dict[str, str]:
    """Let Python programs find their modules compiled, as an installation or an image has them."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**inherited, "PYTHONPYCACHEPREFIX": str(built_folder() / "bytecode")}


async def figures_of(command: Command) -> dict[str, float]:
    """Run a program to its end and return the object that it printed, with `since` it was started in seconds."""
    began = time.time()
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, env=environment()
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise ProgramFailed(f"{command[0]} failed with {process.returncode}")
    figures: dict[str, float] = json.loads(output)
    return {**figures, "since": figures["at"] - began}


class Running:
    """A program at work."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self.began = time.perf_counter()

    @property
    def usage(self) -> Usage:
        """Return what it has used by now (Linux)."""
        if self._process.returncode is not None:
            raise ProgramFailed(f"{self._process.pid} ended: {self._log.read_text()[-2000:]}")
        folder = Path("/proc") / str(self._process.pid)
        lines = dict(
            line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
        )
        return Usage(
            cpu=cpu_seconds(self._process.pid),
            rss=_megabytes(lines["VmRSS"]),
            peak=_megabytes(lines["VmHWM"]),
        )

    def check(self) -> None:
        """Raise where it ended by itself."""
        if self._process.returncode is not None:
            raise ProgramFailed(f"the program ended: {self._log.read_text()[-2000:]}")


@asynccontextmanager
async def running(command: Command, log: Path) -> AsyncGenerator[Running, None]:
    """Run a program for the length of the block; what it says goes to the log."""
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            stdin=asyncio.subprocess.DEVNULL,
            env=environment(),
        )
    try:
        yield Running(process, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                process.kill()
                await process.wait()


def cpu_seconds(process: int) -> float:
    """Return the CPU time of another process: to the nanosecond, where /proc counts hundredths of a second."""
    return time.clock_gettime((~process << 3) | 2)


def _megabytes(text: str) -> float:
    return int(text.split(maxsplit=1)[0]) * 1024 / 1e6


def column(runs: Sequence[Any], name: str) -> list[float]:
    """Take one figure of each run."""
    return [run[name] if isinstance(run, dict) else getattr(run, name) for run in runs]
