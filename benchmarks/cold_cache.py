"""Fill a cold cache with 10,000 custom resources of 2 KB from a real API server: kubewright and controller-runtime.

Each program runs in a process of its own, in turn; medians and ratios to controller-runtime are printed.
`cpu` is all that the process used until the cache was whole, its start and imports included; `fill` leaves those out.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from kubewright_programs.coldcache import EnvVar, Sample, SampleSpec

from kubewright.api import Meta
from kubewright.client import Client, NotFound, load_config
from kubewright.schema import crd
from kubewright.testing.controlplane import ControlPlane

HERE = Path(__file__).parent
PEER = "controller-runtime"
GOALS = {"cpu": 0.3, "seconds": 0.45, "rss": 1.0}
WRITERS = 32

Figures = dict[str, float]


def sample(number: int) -> Sample:
    """Make one resource of about two kilobytes."""
    return Sample(
        Meta(f"sample-{number:06}", namespace="default", labels={"app": "bench", "shard": str(number % 10)}),
        spec=SampleSpec(
            replicas=number,
            image=f"registry.example/app:{number}",
            env=[EnvVar(name=f"VARIABLE_{k}", value=f"{number}-{k}-{'x' * 30}") for k in range(12)],
            settings={f"setting-{k}": f"{number}-{k}-{'y' * 30}" for k in range(10)},
        ),
    )


async def populate(kubeconfig: Path, count: int) -> None:
    async with Client(load_config(kubeconfig), field_manager="bench") as client:
        await client.create(crd(Sample))
        async with asyncio.timeout(30):
            while True:
                try:
                    await client.list(Sample, limit=1)
                    break
                except NotFound:
                    await asyncio.sleep(0.05)
        numbers = iter(range(count))

        async def write() -> None:
            for number in numbers:
                await client.create(sample(number))

        async with asyncio.TaskGroup() as writers:
            for _ in range(WRITERS):
                writers.create_task(write())


async def build_peer() -> Path:
    """Build the Go program into the cache folder; quick when nothing changed."""
    go = shutil.which("go")
    if go is None:
        raise SystemExit("the comparison with controller-runtime needs Go")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "kubewright" / "benchmarks" / "coldcache"
    module = HERE / "controller_runtime"
    build = await asyncio.create_subprocess_exec(go, "build", "-o", program, "./coldcache", cwd=module)
    if await build.wait():
        raise SystemExit("the Go program did not build")
    return program


async def measure(command: Sequence[str | Path], expected: int) -> Figures:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"{command} failed")
    figures: Figures = json.loads(output)
    if figures["objects"] != expected:
        raise SystemExit(f"{command} saw {figures['objects']:.0f} objects, not {expected}")
    return {**figures, "fill": figures["cpu"] - figures["startup"]}


async def compare(count: int, runs: int) -> dict[str, Figures]:
    peer = await build_peer()
    program = HERE / "kubewright_programs" / "coldcache.py"
    async with ControlPlane(controllers=False) as plane:
        await populate(plane.kubeconfig, count)
        commands: dict[str, list[str | Path]] = {
            PEER: [peer, plane.kubeconfig],
            "kubewright": [sys.executable, program, plane.kubeconfig],
            "kubewright --pages": [sys.executable, program, plane.kubeconfig, "--pages"],
        }
        found: dict[str, list[Figures]] = {name: [] for name in commands}
        # The first round warms the server's caches and is thrown away.
        for round_number in range(runs + 1):
            for name, command in commands.items():
                figures = await measure(command, count)
                if round_number:
                    found[name].append(figures)
    return {
        name: {key: statistics.median(run[key] for run in taken) for key in taken[0]}
        for name, taken in found.items()
    }


def table(medians: dict[str, Figures]) -> str:
    lines = [f"{'':22}{'CPU':>8}{'fill CPU':>10}{'time':>8}{'RSS':>9}"]
    for name, run in medians.items():
        rss = run["rss"] / 1e6
        lines.append(f"{name:22}{run['cpu']:6.2f} s{run['fill']:8.2f} s{run['seconds']:6.2f} s{rss:6.0f} MB")
    for name, run in medians.items():
        if name != PEER:
            ratios = [run[key] / medians[PEER][key] for key in ("cpu", "fill", "seconds", "rss")]
            cells = "".join(f"{ratio:{width}.2f}" for ratio, width in zip(ratios, (8, 10, 8, 9), strict=True))
            lines.append(f"{name + ' ratio':22}{cells}")
    lines.append(f"{'goal':22}{GOALS['cpu']:8.2f}{'':10}{GOALS['seconds']:8.2f}{GOALS['rss']:9.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    medians = asyncio.run(compare(options.objects, options.runs))
    print(json.dumps({"medians": medians, "goals": GOALS}, indent=2) if options.json else table(medians))


if __name__ == "__main__":
    main()
