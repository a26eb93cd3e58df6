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
from kubewright.cli.options import FILE, optional_target_argument, target_or_project
from kubewright.cli.rbac.rights import Verification, compare_rules
from kubewright.cli.rbac.roles import (
    GrantedRole,
    RoleError,
    choose_user,
    compare_roles,
    read_roles,
    role_report,
)
from kubewright.cli.target import load_operator
from kubewright.client.recording import VARIABLE, RecordedAccess, read_recordings
from kubewright.controller import Operator
from kubewright.documents import DocumentError, read_yaml
from kubewright.envtest.recording import read_accesses

NO_TESTS = 5
"""Pytest's exit code when it collected no tests."""


class RecordingError(KubewrightError):
    """There are no recorded requests to check the rules against."""


@click.group()
def command() -> None:
    """Verify an operator's generated RBAC rules."""


@command.command()
@optional_target_argument
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
@click.option(
    "--role",
    "role_files",
    type=FILE,
    multiple=True,
    help="File with Roles or ClusterRoles to check instead of those of TARGET; requires --recording; repeatable.",
)
@click.option("--user", metavar="NAME", default=None, help="With --role, the recorded user of the operator.")
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    default="default",
    help="With --role, the namespace of Roles that name none.  [default: default]",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def verify(
    target: str | None,
    tests: Sequence[str],
    server: str,
    recording: Path | None,
    role_files: Sequence[Path],
    user: str | None,
    namespace: str,
    output: str,
) -> int:
    """Run the tests of TARGET with its generated RBAC rules, and list missing and unused rules.

    TESTS are passed to pytest; default: the tests next to TARGET. The verbs get, list and watch count as one. Exits
    with 1 if a rule is missing or unused, or if a test fails.

    For an operator in another language, pass its roles with --role, and with --recording the file of
    `kube-apiserver --record-access` (kubewright envtest path).
    """
    if role_files:
        if target is not None or recording is None:
            raise click.UsageError("--role requires --recording and takes no TARGET")
        return _verify_roles(role_files, recording, user, namespace, output)
    if user is not None:
        raise click.UsageError("--user requires --role")
    target = target_or_project(target)
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


def _verify_roles(
    role_files: Sequence[Path], recording: Path, user: str | None, namespace: str, output: str
) -> int:
    roles = [role for path in role_files for role in _roles(path, namespace)]
    try:
        accesses = list(read_accesses(recording))
    except OSError as error:
        raise RecordingError(f"cannot read {recording}: {error.strerror}") from None
    except ValueError as error:
        raise RecordingError(f"{recording} is not a recording of `--record-access`: {error}") from None
    if not accesses:
        raise RecordingError(f"{recording} is empty: run the tests with `--record-access={recording}`")
    chosen = choose_user(accesses, user)
    result = compare_roles(roles, (access for access in accesses if access.user == chosen))
    click.echo(role_report(chosen, result, output))
    return int(not result.proved)


def _roles(path: Path, namespace: str) -> list[GrantedRole]:
    try:
        roles = read_roles((each.value for each in read_yaml(path.read_bytes())), namespace)
    except OSError as error:
        raise RoleError(f"cannot read {path}: {error.strerror}") from None
    except DocumentError as error:
        raise RoleError(f"{path}:{error.line}: {error}") from None
    if not roles:
        raise RoleError(f"{path} contains no Role or ClusterRole")
    return roles


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
