"""Compare the embedded server with the real one: `scripts/compare`, see its help."""

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

from compare_allowed import AllowList
from compare_areas import AREAS, Area
from compare_case import draw
from compare_difference import Difference, first_difference, show
from compare_servers import Servers, both, is_unreached
from compare_shrink import Shrinker

from kubewright.devserver import KubernetesRelease, UnknownReleaseError
from kubewright.testing.controlplane import (
    CONTROLLERS,
    KUBERNETES,
    SERVERS,
    binaries_folder,
    find_binaries,
    missing_binaries,
)

SECONDS = 60.0


@dataclass
class Finding:
    """A class of differences: the smallest example, and how often the class was met."""

    example: Difference
    origin: Difference
    kubernetes: str
    count: int = 1


@dataclass
class Tally:
    """What was done in an area."""

    requests: int = 0
    compared: int = 0
    differences: int = 0
    unrepeatable: int = 0
    unreached: int = 0
    """Cases that ended because both servers did not reach a state that a step waits for."""
    allowed: Counter[str] = field(default_factory=Counter)


class Comparison:
    """Play cases, and collect the differences by class."""

    def __init__(
        self, servers: Callable[[Area], Servers], allowed: AllowList, kubernetes: str = KUBERNETES
    ) -> None:
        self._servers = servers
        self._kubernetes = kubernetes
        self._allowed = allowed
        self.findings: dict[tuple[str, ...], Finding] = {}
        self.tallies: dict[str, Tally] = {}

    def play(self, area: Area, seed: int, number: int) -> None:
        """Play one case."""
        servers = self._servers(area)
        case = draw(area.name, area.generator, seed, number)
        tally = self.tallies.setdefault(area.name, Tally())
        before = servers.sent
        pairings = servers.play(case)
        tally.requests += servers.sent - before
        tally.compared += len(pairings)
        tally.unreached += any(is_unreached(pairing) for pairing in pairings)
        difference = first_difference(case, pairings)
        if difference is not None:
            self._count(servers, tally, difference)

    def _count(self, servers: Servers, tally: Tally, difference: Difference) -> None:
        name = self._allowed.find(difference)
        if name is not None:
            tally.allowed[name] += 1
            return
        known = self.findings.get(difference.key)
        if known is not None:
            tally.differences += 1
            known.count += 1
            return
        shrinker = Shrinker(servers)
        again = shrinker.replay(difference, difference.case.steps)
        if again is None or again.key != difference.key:
            tally.unrepeatable += 1
            return
        tally.differences += 1
        finding = Finding(shrinker.shrink(difference), difference, self._kubernetes)
        self.findings[difference.key] = finding
        print(f"\n{_heading(finding)}\n{show(finding.example)}", flush=True)


def _heading(finding: Finding) -> str:
    return f"== {finding.origin.case.area}: {_class(finding)[:300]}\n  repeat: {_repeat(finding)}"


def _class(finding: Finding) -> str:
    return " | ".join(finding.origin.key).replace("\n", " ")


def _repeat(finding: Finding) -> str:
    case = finding.origin.case
    release = (
        "" if finding.kubernetes == KUBERNETES else f" --kubernetes {finding.kubernetes.removeprefix('v')}"
    )
    return f"scripts/compare --only {case.area} --seed {case.seed} --case {case.number}{release}"


def table(comparison: Comparison) -> str:
    """Return the summary."""
    titles = ("requests", "compared", "differences", "unrepeatable", "unreached")
    lines = [f"{'area':12} {' '.join(titles)}  allowed"]
    for name, tally in comparison.tallies.items():
        allowed = ", ".join(f"{entry} {times}" for entry, times in sorted(tally.allowed.items())) or "-"
        numbers = " ".join(f"{getattr(tally, title):{len(title)}}" for title in titles)
        lines.append(f"{name:12} {numbers}  {allowed}")
    lines += ["", *(f"{name:12} {AREAS[name].covers}" for name in comparison.tallies)]
    return "\n".join(lines)


@dataclass(frozen=True)
class Budget:
    """When to stop: after some seconds, or when each area has sent a number of requests, or after one case."""

    seconds: float | None = None
    requests: int | None = None
    case: int | None = None

    def cases(self, areas: Sequence[Area], comparison: Comparison) -> Iterator[tuple[Area, int]]:
        """Return the areas and case numbers to play, one case of each area in turn."""
        if self.case is not None:
            yield from ((area, self.case) for area in areas)
            return
        deadline = None if self.seconds is None else time.monotonic() + self.seconds
        for number in count():
            pending = [area for area in areas if not self._is_spent(comparison.tallies.get(area.name))]
            if not pending:
                return
            for area in pending:
                if deadline is not None and time.monotonic() > deadline:
                    return
                yield area, number

    def _is_spent(self, tally: Tally | None) -> bool:
        return self.requests is not None and tally is not None and tally.requests >= self.requests


def compare(
    areas: Sequence[Area], seeds: Sequence[int], budget: Budget, kubernetes: str = KUBERNETES
) -> Comparison:
    """Start the servers, play the cases of the areas and return what was found."""
    with ExitStack() as stack:
        running: dict[bool, Servers] = {}

        def servers(area: Area) -> Servers:
            if area.controllers not in running:
                running[area.controllers] = stack.enter_context(
                    both(controllers=area.controllers, kubernetes=kubernetes)
                )
            return running[area.controllers]

        for area in areas:
            servers(area)
        comparison = Comparison(servers, AllowList(), kubernetes)
        for seed in seeds:
            for area, number in budget.cases(areas, comparison):
                comparison.play(area, seed, number)
        return comparison


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exit with 2 on a mistake."""
    parser = argparse.ArgumentParser(
        "scripts/compare", description="Compare the embedded API server with the real one."
    )
    ends = parser.add_mutually_exclusive_group()
    ends.add_argument(
        "--seconds", type=float, metavar="N", help=f"compare for this long (default: {SECONDS:g})"
    )
    ends.add_argument(
        "--requests", type=int, metavar="N", help="send this many requests in each area instead"
    )
    ends.add_argument(
        "--case", type=int, metavar="N", help="play one case, as a reported difference names it"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="draw the same requests as a run with this seed"
    )
    parser.add_argument("--only", choices=list(AREAS), metavar="AREA", help=f"one of {', '.join(AREAS)}")
    parser.add_argument(
        "--kubernetes",
        default=KUBERNETES,
        metavar="VERSION",
        help=f"the version of both servers, such as 1.33 (default: {KUBERNETES}); texts of errors and warnings are compared for the default only",
    )
    found = parser.parse_args(arguments)
    for name in ("seconds", "requests"):
        value = getattr(found, name)
        if value is not None and not value > 0:
            parser.error(f"--{name} must be greater than 0, not {value:g}")
    if found.case is not None and found.case < 0:
        parser.error(f"--case must not be negative, not {found.case}")
    try:
        found.kubernetes = f"v{KubernetesRelease.find(found.kubernetes).version}"
    except UnknownReleaseError as error:
        parser.error(f"--kubernetes: {error}")
    folder = find_binaries() if found.kubernetes == KUBERNETES else binaries_folder(found.kubernetes)
    chosen = [AREAS[found.only]] if found.only else AREAS.values()
    programs = [*SERVERS, *(CONTROLLERS if any(area.controllers for area in chosen) else ())]
    if folder is None or missing_binaries(folder, programs):
        parser.error(
            f"the binaries of Kubernetes {found.kubernetes} are not there: run scripts/control-plane build --kubernetes {found.kubernetes}"
        )
    return found


def main(arguments: Sequence[str]) -> int:
    """Compare, print the findings and the table, and return the exit code."""
    options = parse(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    areas = [AREAS[options.only]] if options.only else list(AREAS.values())
    seconds = options.seconds
    if seconds is None and options.requests is None and options.case is None:
        seconds = SECONDS
    print(
        f"seed {seed}, Kubernetes {options.kubernetes}, areas: {', '.join(area.name for area in areas)}",
        flush=True,
    )
    if options.case is None:
        # A response with status 500 shows a failure of the embedded server; --case also shows the traceback.
        logging.getLogger("kubewright").setLevel(logging.CRITICAL)
    comparison = compare(areas, [seed], Budget(seconds, options.requests, options.case), options.kubernetes)
    print(f"\n{table(comparison)}")
    found = comparison.findings.values()
    if found:
        print(f"\n{len(found)} classes of differences:")
        for finding in sorted(found, key=lambda item: -item.count):
            print(f"{finding.count:5} {_repeat(finding)}  # {_class(finding)[:160]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
