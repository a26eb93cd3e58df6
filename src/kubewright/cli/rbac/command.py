"""`kubewright rbac verify`: the generated rules, proved by the operator's own tests."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from kubewright.api import KubewrightError
from kubewright.cli.options import FILE, target_argument
from kubewright.cli.rbac.rights import Verdict, judge
from kubewright.cli.target import load_operator
from kubewright.client.recording import VARIABLE, Access, read_recordings
from kubewright.controller import Operator

NO_TESTS = 5
"""Pytest's exit code when it found none."""


class RecordingError(KubewrightError):
    """There is nothing to judge the rules by."""


@click.group()
def command() -> None:
    """Prove the rules that an operator's declarations become."""


@command.command()
@target_argument
@click.argument("tests", metavar="[TESTS]...", nargs=-1)
@click.option(
    "--server",
    type=click.Choice(["embedded", "real", "existing"]),
    default="embedded",
    show_default=True,
    help="API server on which the tests run.",
)
@click.option(
    "--recording", type=FILE, default=None, help="Judge by this recording of `run --record-access` instead."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(target: str, tests: Sequence[str], server: str, recording: Path | None, output: str) -> int:
    """Run the tests of TARGET with only its generated rules; list what was denied and what never used.

    TESTS are what pytest takes; default: the tests beside TARGET. Get, list and watch count as one right.
    Exits with 1 if a right is missing, unused, or a test fails.
    """
    operator = load_operator(target)
    if recording is not None:
        accesses, code = _recorded(recording, operator), 0
    else:
        with tempfile.TemporaryDirectory(prefix="kubewright-rbac-") as folder:
            path = Path(folder, "accesses.jsonl")
            path.touch()
            code = _run_tests(tests or _tests_of(target), server, path)
            accesses = _recorded(path, operator)
    verdict = judge(operator, accesses)
    click.echo(_shown(operator, verdict, output))
    if code:
        click.echo(f"Error: the tests failed (pytest exited with {code})", err=True)
    return int(bool(code) or not verdict.proved)


def _run_tests(tests: Sequence[str], server: str, path: Path) -> int:
    arguments = [sys.executable, "-m", "pytest", "-q", "--server", server, *tests]
    # What pytest says is news for people: standard output belongs to the verdict.
    done = subprocess.run(
        arguments, env={**os.environ, VARIABLE: str(path)}, stdout=sys.stderr.fileno(), check=False
    )
    if done.returncode == NO_TESTS:
        raise RecordingError(f"pytest finds no tests in {' '.join(tests)}: name them after TARGET")
    return done.returncode


def _tests_of(target: str) -> Sequence[str]:
    place = Path(target.rpartition(":")[0] or target)
    folder = place if place.is_dir() else place.parent
    if any(folder.glob("test_*.py")):
        return [str(folder)]
    for parent in (folder, *folder.resolve().parents):
        if (parent / "tests").is_dir():
            return [str(parent / "tests")]
        if (parent / "pyproject.toml").is_file():
            break
    raise RecordingError(f"there are no tests beside {target}: name them after TARGET")


def _recorded(path: Path, operator: Operator) -> list[Access]:
    try:
        found = [run for run in read_recordings(path) if run.operator == operator.name]
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise RecordingError(f"{path} is no recording: {error}") from None
    if not found:
        raise RecordingError(
            f"nothing ran the operator {operator.name!r} as its ServiceAccount: "
            "tests do so with `async with cluster.running(operator)`"
        )
    return [access for run in found for access in run.accesses]


def _shown(operator: Operator, verdict: Verdict, output: str) -> str:
    if output == "json":
        document = {
            "operator": operator.name,
            "proved": verdict.proved,
            "used": verdict.used,
            "denied": [
                {"verb": item.verb, "group": item.group, "resource": item.resource} for item in verdict.denied
            ],
            "unused": [
                {"verb": right.verb, "group": right.group, "resource": right.resource, "remedy": why}
                for right, why in verdict.unused
            ],
        }
        return json.dumps(document, indent=2)
    lines = [
        f"denied  {item.verb} {item.resource}{f' of {item.group}' if item.group else ''}: "
        "declare it with needs=[kw.needs(...)]"
        for item in verdict.denied
    ]
    lines += [f"unused  {right}: {why}" for right, why in verdict.unused]
    if verdict.proved:
        lines.append(f"{operator.name}: all {verdict.used} rights were used and no other was asked for")
    return "\n".join(lines)
