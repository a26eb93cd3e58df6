"""`kubewright prove`: run an operator with faults, in other message orders and with many specs, and check properties."""

import json
import os
from pathlib import Path

import click

from kubewright.api import ConfigError, JsonObject
from kubewright.cli.documents import read_documents
from kubewright.cli.loops import run_program
from kubewright.cli.options import FILE, filenames_option, target_argument
from kubewright.cli.packages.examples import written_samples
from kubewright.cli.progress import Progress
from kubewright.cli.project import find_project
from kubewright.cli.prove.worker import load_invariants
from kubewright.cli.prove.workers import Exploration, Setup
from kubewright.cli.target import load_operator
from kubewright.testing.proving import Effort, ProofError, Report
from kubewright.testing.proving.exploration import DEFAULT_PAIRS, DEFAULT_SEEDS, DEFAULT_SEQUENCES, PARTS
from kubewright.testing.proving.generated_test import source_of_tests
from kubewright.testing.proving.orders import DEFAULT_DEPTH, DEFAULT_SCHEDULES
from kubewright.testing.proving.violations import DEFAULT_VIOLATIONS

INVARIANTS = "invariants.py"


@click.command()
@target_argument
@filenames_option(
    "File or directory with samples of the operator's kinds; repeatable. Default: samples/ beside TARGET or in the project."
)
@click.option(
    "--only",
    type=click.Choice(PARTS),
    multiple=True,
    help="Part to explore: crashes and faults, orders of messages, or specs that the CRDs allow; repeatable. Default: all parts.",
)
@click.option(
    "--seeds",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=DEFAULT_SEEDS,
    show_default=True,
    help="Number of random cases.",
)
@click.option(
    "--first-seed",
    metavar="NUMBER",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the first random case and of the first sequence of specs.",
)
@click.option(
    "--pairs",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=DEFAULT_PAIRS,
    show_default=True,
    help="Maximum number of pairs of crashes.",
)
@click.option(
    "--depth",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=DEFAULT_DEPTH,
    show_default=True,
    help="Maximum number of steps in which a schedule deviates from the default order.",
)
@click.option(
    "--schedules",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=DEFAULT_SCHEDULES,
    show_default=True,
    help="Maximum number of schedules.",
)
@click.option(
    "--sequences",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=DEFAULT_SEQUENCES,
    show_default=True,
    help="Number of random sequences of specs, and maximum number of changes of one field that run before them.",
)
@click.option(
    "--violations",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    default=DEFAULT_VIOLATIONS,
    show_default=True,
    help="Number of distinct violations after which a part ends.",
)
@click.option(
    "--minutes",
    metavar="NUMBER",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    help="Start no further case after this time, which is divided among the parts; default: no limit.",
)
@click.option(
    "--keep",
    "keeps",
    metavar="RESOURCE",
    multiple=True,
    help="Resource, such as pods or configmaps, whose objects may stay after everything is deleted; repeatable.",
)
@click.option(
    "--invariants",
    type=FILE,
    default=None,
    help="Python file with @prove.invariant functions; default: tests/invariants.py of the project, if it exists.",
)
@click.option(
    "--jobs",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    default=None,
    help="Processes to run at once; default: one for each CPU.",
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True
)
@click.option("--test", type=FILE, default=None, help="Write a pytest for each violation to this file.")
def command(
    target: str,
    files: tuple[Path, ...],
    only: tuple[str, ...],
    seeds: int,
    first_seed: int,
    pairs: int,
    depth: int,
    schedules: int,
    sequences: int,
    violations: int,
    minutes: float | None,
    keeps: tuple[str, ...],
    invariants: Path | None,
    jobs: int | None,
    output: str,
    test: Path | None,
) -> int:
    """Run TARGET in a simulated cluster with faults, in other message orders and with many specs, and check properties.

    Each case creates, changes and deletes the samples. The cases are: a crash before and after each request, pairs of
    crashes, and random faults from a seed; each order of requests, responses and watch events that deviates from the
    default order in at most --depth steps; and sequences of specs that the CRDs allow, with children edited and deleted
    by hand in between. Each distinct violation is reduced to the fewest faults or steps and printed as a timeline.
    Nothing is read from or written to a real cluster. Exits with 1 if a property does not hold.
    """
    load_operator(target)
    samples = read_documents(files) if files else written_samples(target)
    if not samples:
        raise ProofError(
            "no samples: write at least one object of the operator's kinds into samples/, or pass -f FILE"
        )
    file = invariants or _project_invariants()
    declared = _invariants(file)
    if test is not None and test.exists():
        raise ConfigError(f"{test} exists: choose another name with --test, or delete it")
    setup = Setup(_absolute(target), samples, file, declared, keeps)
    effort = Effort(
        seeds, first_seed, pairs, minutes, frozenset(only), depth, schedules, sequences, violations
    )
    with Progress().waiting("starting") as update:
        exploration = Exploration(setup, effort, jobs or len(os.sched_getaffinity(0)), update)
        report = run_program(exploration.run)
    _print(report, output)
    if report.violations and test is not None:
        _write_test(test, report, setup)
    return int(bool(report.violations))


def _project_invariants() -> Path | None:
    project = find_project()
    file = None if project is None else project.root / "tests" / INVARIANTS
    return file if file is not None and file.is_file() else None


def _invariants(file: Path | None) -> int:
    if file is None:
        return 0
    if not file.is_file():
        raise ConfigError(f"{file}: no such file")
    count = len(load_invariants(str(file)))
    if not count:
        raise ProofError(
            f"{file} declares no invariants: decorate functions with @kubewright.testing.prove.invariant"
        )
    return count


def _absolute(target: str) -> str:
    place, colon, name = target.partition(":")
    return f"{Path(place).resolve()}{colon}{name}" if Path(place).exists() else target


def _print(report: Report, output: str) -> None:
    match output:
        case "json":
            click.echo(json.dumps(report.json(), indent=2))
        case "markdown":
            click.echo(report.markdown())
        case _:
            click.echo(report.text())


def _write_test(path: Path, report: Report, setup: Setup) -> None:
    samples = json.dumps(list[JsonObject](setup.samples), indent=4)
    imports = ["import json", "", "from kubewright.cli.target import load_operator"]
    place, colon, name = setup.target.partition(":")
    target, further = repr(setup.target), ""
    if Path(place).exists():
        target = _beside(path, Path(place)) + (f' + "{colon}{name}"' if colon else "")
    if setup.keeps:
        further += f", keeps={list(setup.keeps)!r}"
    if setup.invariants is not None:
        imports.append("from kubewright.cli.prove.worker import load_invariants")
        further += f", invariants=load_invariants({_beside(path, setup.invariants)})"
    if "HERE" in target + further:
        imports[1:1] = ["from pathlib import Path"]
    here = "HERE = Path(__file__).resolve().parent\n" if "HERE" in target + further else ""
    text = source_of_tests(
        [violation.found for violation in report.violations],
        operator=report.operator,
        imports=imports,
        setup=f"{here}SAMPLES = json.loads(\n    r'''{samples}'''\n)",
        make=f"FreshModules(lambda: load_operator({target}))",
        samples="SAMPLES",
        further=further,
    )
    try:
        path.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    click.echo(f"wrote {path}", err=True)


def _beside(test: Path, file: Path) -> str:
    """Return Python source for the path of a file, relative to the directory of a test: a project may be moved."""
    relative = os.path.relpath(file.resolve(), test.resolve().parent)
    return f"str(HERE / {Path(relative).as_posix()!r})"
