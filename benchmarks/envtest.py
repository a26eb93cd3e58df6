"""controller-runtime's envtest with kubewright's programs, against the real kube-apiserver and etcd.

The same program in Go starts the environment, installs a CRD, creates 200 ConfigMaps one after another and stops. CPU is
that of all programs that it started, including `--help`, which envtest reads.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harness import Bench, alternate_async
from support.programs import go_program

from kubewright.cli.loops import run_program
from kubewright.envtest.assets import create_folder
from kubewright.testing.controlplane import find_binaries

REAL = "real pair"
MEGABYTE = 1024.0


async def run_once(program: Path, assets: Path) -> dict[str, Any]:
    """Run the program with the binaries in a folder; return its figures."""
    process = await asyncio.create_subprocess_exec(
        program,
        "-only-start",
        env={**os.environ, "KUBEBUILDER_ASSETS": str(assets)},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"the program in Go failed with {assets}")
    found: dict[str, Any] = json.loads(out)
    return found


async def main() -> int:
    """Compare both."""
    bench = Bench(
        "envtest", "controller-runtime's envtest, against the real kube-apiserver and etcd", rounds=5
    )
    binaries, program = find_binaries(), await go_program(bench, "envtest")
    if binaries is None or program is None:
        bench.progress("Go and the real binaries are needed: run scripts/control-plane build")
        return 1
    ours = await asyncio.to_thread(create_folder)
    contenders: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
        "kubewright": lambda: run_once(program, ours),
        REAL: lambda: run_once(program, binaries),
    }
    runs = await alternate_async(bench.rounds, contenders)
    figures = (
        ("start, with a CRD", "time", "s", "start", "<= 0.5", 1.0),
        ("200 creates", "time", "s", "write", "", 1.0),
        ("stop", "time", "s", "stop", "", 1.0),
        ("start, 200 creates, stop", "CPU", "s", "cpu", "<= 0.5", 1.0),
        ("start, 200 creates, stop", "memory", "MB", "memory", "<= 0.5", MEGABYTE),
    )
    for work, metric, unit, name, goal, divisor in figures:
        values = {pair: [run[name] / divisor for run in found] for pair, found in runs.items()}
        bench.row(work, metric, unit, values, goal=goal)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(run_program(main))
