"""The form every benchmark shares: alternating runs, medians with their spread, one table for people, one object for machines.

bench = Bench("codec", "what a list of 10,000 objects costs to read")
runs = alternate(bench.rounds, {"kubewright": ours, "msgspec": theirs})      # name -> list of what each run returned
bench.row("decode 10,000", "time", "ms", runs, goal="<= 1.3")
raise SystemExit(bench.report())
"""

import argparse
import asyncio
import json
import operator
import os
import platform
import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

OURS = "kubewright"
LEAST_ROUNDS = 3
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def alternate(rounds: int, contenders: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Run the contenders in turn, each `rounds` times, after one run of each that does not count."""
    results: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in _in_turn(contenders, number):
            result = run()
            if number:
                results[name].append(result)
    return results


async def alternate_async(
    rounds: int,
    contenders: Mapping[str, Callable[[], Awaitable[T]]],
    *,
    warming: Mapping[str, Callable[[], Awaitable[T]]] | None = None,
) -> dict[str, list[T]]:
    """Do the same with coroutine functions; `warming` are shorter runs in place of those that do not count."""
    results: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in _in_turn(contenders if number or warming is None else warming, number):
            result = await run()
            if number:
                results[name].append(result)
    return results


def _in_turn(contenders: Mapping[str, T], number: int) -> list[tuple[str, T]]:
    # The order alternates, so that a machine that slows down or warms up favours no contender.
    listed = list(contenders.items())
    shift = number % len(listed)
    return listed[shift:] + listed[:shift]


@dataclass(frozen=True)
class Measured:
    """The runs of one contender."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.runs), max(self.runs)


@dataclass(frozen=True)
class Row:
    """One figure of ours beside the peers', with the goal for their ratio."""

    work: str
    metric: str
    unit: str
    measured: Mapping[str, Measured]
    goal: str
    against: str

    @property
    def ratio(self) -> float | None:
        """Return ours divided by the peer's that the goal is about; None where that peer is missing."""
        peer = self.measured.get(self.against)
        ours = self.measured.get(OURS)
        if ours is None or peer is None or peer.median <= 0 or ours.median < 0:
            # Less than nothing is a failed measurement, and no ratio to it may meet a goal.
            return None
        return ours.median / peer.median

    @property
    def compared(self) -> float | None:
        """Return what the goal is about: the ratio, or our own figure where the goal names its unit."""
        words = self.goal.split()
        if len(words) == 3 and OURS in self.measured:
            return self.measured[OURS].median
        return self.ratio

    @property
    def met(self) -> bool | None:
        """Return True if the goal is met; None without a goal or without what it is about."""
        if not self.goal or self.compared is None:
            return None
        comparison, bound = self.goal.split()[:2]
        return _COMPARISONS[comparison](self.compared, float(bound))

    def as_json(self) -> dict[str, Any]:
        ours = self.measured.get(OURS)
        return {
            "work": self.work,
            "metric": self.metric,
            "unit": self.unit,
            OURS: _round(ours.median) if ours else None,
            "peers": {name: _round(peer.median) for name, peer in self.measured.items() if name != OURS},
            "against": self.against,
            "ratio": _round(self.ratio) if self.ratio is not None else None,
            "goal": self.goal,
            "met": self.met,
            "spread": {name: [_round(edge) for edge in peer.spread] for name, peer in self.measured.items()},
            "runs": min(len(measured.runs) for measured in self.measured.values()),
        }


class Bench:
    """Collect rows and print them: a table, or with --json one object."""

    def __init__(
        self,
        name: str,
        about: str,
        *,
        parser: argparse.ArgumentParser | None = None,
        rounds: int = 5,
        peers: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.about = about
        parser = parser or argparse.ArgumentParser()
        parser.prog = f"scripts/bench {name}"
        parser.description = about
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        parser.add_argument(
            "--rounds", type=int, default=rounds, help=f"runs of each contender (default {rounds})"
        )
        if peers:
            parser.add_argument(
                "--peers",
                nargs="*",
                choices=peers,
                default=list(peers),
                help="only these peers, or none (default all): %(choices)s",
                metavar="NAME",
            )
        self.options = parser.parse_args()
        if self.options.rounds < LEAST_ROUNDS:
            parser.error(f"--rounds must be at least {LEAST_ROUNDS}")
        self.rounds: int = self.options.rounds
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def includes(self, contender: str) -> bool:
        """Return True if a contender was chosen; ours always is, and a peer unless `--peers` leaves it out."""
        return contender == OURS or contender in getattr(self.options, "peers", (contender,))

    def progress(self, text: str) -> None:
        """Report progress on standard error; standard output is for the result."""
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Add a remark to the result, such as why a peer is missing."""
        self.notes.append(text)

    def row(
        self,
        work: str,
        metric: str,
        unit: str,
        runs: Mapping[str, Sequence[float]],
        *,
        goal: str = "",
        against: str = "",
    ) -> Row:
        """Add a row. `goal` is about the ratio to the peer `against` (by default the first): "<= 1.3".

        With a unit behind it, "<= 0.5 s", it is about our own figure.
        """
        measured = {name: Measured(tuple(values)) for name, values in runs.items() if values}
        for name, each in measured.items():
            if len(each.runs) < LEAST_ROUNDS:
                raise ValueError(f"{work}: {name} was run {len(each.runs)} times, not {LEAST_ROUNDS}")
        peers = [name for name in measured if name != OURS]
        made = Row(work, metric, unit, measured, goal, against or (peers[0] if peers else ""))
        self.rows.append(made)
        return made

    def report(self) -> int:
        """Print the result and return the exit code: 0 although goals are missed, which the table shows."""
        if self.options.json:
            document = {
                "bench": self.name,
                "machine": machine(),
                "rows": [row.as_json() for row in self.rows],
                "notes": self.notes,
            }
            print(json.dumps(document))
            return 0
        described = machine()
        print(f"{self.name}: {self.about}")
        print(
            f"on {described['cpu']}, {described['cores']} cores, Python {described['python']}, load {described['load']}"
        )
        _print_table([_HEADER, *map(_cells, self.rows)])
        for note in self.notes:
            print(f"note: {note}")
        return 0


_HEADER = ("work", "metric", "kubewright", "peers", "ratio", "goal", "")


def _cells(row: Row) -> tuple[str, ...]:
    peers = "  ".join(f"{name} {_shown(each)}" for name, each in row.measured.items() if name != OURS)
    verdict = {True: "met", False: "MISSED", None: ""}[row.met]
    ours = _shown(row.measured[OURS]) if OURS in row.measured else "-"
    ratio = f"{row.ratio:.2f}" if row.ratio is not None else "-"
    return row.work, f"{row.metric} ({row.unit})", ours, peers or "-", ratio, row.goal, verdict


def _shown(measured: Measured) -> str:
    low, high = measured.spread
    return f"{_round(measured.median):g} [{_round(low):g}-{_round(high):g}]"


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def machine() -> dict[str, Any]:
    """Describe the machine, as far as figures depend on it; nothing that names its owner."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


async def at_once(count: int, width: int, work: Callable[[int], Awaitable[Any]]) -> None:
    """Do work(0) to work(count - 1), `width` of them at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())
