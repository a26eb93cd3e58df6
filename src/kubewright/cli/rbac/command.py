"""`kubewright rbac verify`: check the generated RBAC rules with the operator's own tests."""

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
from kubewright.cli.rbac.rights import Verification, compare_rules
from kubewright.cli.target import load_operator
from kubewright.client.recording import VARIABLE, RecordedAccess, read_recordings
from kubewright.controller import Operator

NO_TESTS = 5
"""Pytest's exit code when it collected no tests."""


class RecordingError(KubewrightError):
    """There are no recorded requests to check the rules against."""


@click.group()
def command() -> None:
    """Verify an operator's generated RBAC rules."""


@command.command()
@target_argument
@click.argument("tests", metavar="[TESTS]...", nargs=-1)
@click.option(
    "--server",
    type=click.Choice(["embedded", "real", "existing"]),
    default="embedded",
    show_default=True,
    help="API server to run the tests against.",
)
@click.option(
    "--recording",
    type=FILE,
    default=None,
    help="Check this recording of `kubewright run --record-access` instead of running tests.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(target: str, tests: Sequence[str], server: str, recording: Path | None, output: str) -> int:
    """Run the tests of TARGET with its generated RBAC rules, and list missing and unused rules.

    TESTS are passed to pytest; default: the tests next to TARGET. The verbs get, list and watch count as one. Exits
    with 1 if a rule is missing or unused, or if a test fails.
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
    result = compare_rules(operator, accesses)
    click.echo(_shown(operator, result, output))
    if code:
        click.echo(f"Error: the tests failed (pytest exited with {code})", err=True)
    return int(bool(code) or not result.proved)


def _run_tests(tests: Sequence[str], server: str, path: Path) -> int:
    arguments = [sys.executable, "-m", "pytest", "-q", "--server", server, *tests]
    # pytest's output goes to standard error: standard output is for the result.
    done = subprocess.run(
        arguments, env={**os.environ, VARIABLE: str(path)}, stdout=sys.stderr.fileno(), check=False
    )
    if done.returncode == NO_TESTS:
        raise RecordingError(f"pytest found no tests in {' '.join(tests)}: pass their paths after TARGET")
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
    raise RecordingError(f"no tests found next to {target}: pass their paths after TARGET")


def _recorded(path: Path, operator: Operator) -> list[RecordedAccess]:
    try:
        found = [run for run in read_recordings(path) if run.operator == operator.name]
    except OSError as error:
        raise RecordingError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise RecordingError(f"{path} is not a recording of API requests: {error}") from None
    if not found:
        raise RecordingError(
            f"no recorded requests of operator {operator.name!r}: run it with its ServiceAccount, "
            "in tests with `async with cluster.running(operator)`"
        )
    return [access for run in found for access in run.accesses]


def _shown(operator: Operator, result: Verification, output: str) -> str:
    if output == "json":
        document = {
            "operator": operator.name,
            "proved": result.proved,
            "used": result.used,
            "denied": [
                {"verb": item.verb, "group": item.group, "resource": item.resource} for item in result.denied
            ],
            "unused": [
                {"verb": right.verb, "group": right.group, "resource": right.resource, "remedy": why}
                for right, why in result.unused
            ],
        }
        return json.dumps(document, indent=2)
    lines = [
        f"denied  {item.verb} {item.resource}{f' of {item.group}' if item.group else ''}: "
        "add it to needs=[kw.needs(...)]"
        for item in result.denied
    ]
    lines += [f"unused  {right}: {why}" for right, why in result.unused]
    if result.proved:
        lines.append(f"{operator.name}: all {result.used} rights were used and none is missing")
    return "\n".join(lines)
