"""run --reload: the operator follows its files, the dev cluster stays."""

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kubewright.cli.run.command import command as run_command
from kubewright.cli.run.reload import arguments_of, folder_of, stamps

OPERATOR = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Shoe(kw.Resource[Spec, Status], group="reload.example.com", version="v1"):
    """A shoe."""

@kw.controller(Shoe)
async def {name}(shoe: Shoe, ctx: kw.Context) -> None:
    pass

operator = kw.Operator({name}, name="{name}")
'''


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    seen: list[str] = []
    for line in process.stderr:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} was not printed:\n{''.join(seen)}")


def test_the_operator_restarts_after_a_change_and_waits_after_a_syntax_error(tmp_path: Path) -> None:
    path = tmp_path / "shoes.py"
    path.write_text(OPERATOR.format(name="first"))
    quiet = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    command = "from kubewright.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", command, "run", str(path), "--dev", "--reload", *quiet],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            wait_for(process, "Starting workers")
            path.write_text("def f(:\n")
            wait_for(process, "shoes.py changed: restarting")
            wait_for(process, "shoes.py:1: SyntaxError")
            wait_for(process, "waiting for a change")
            path.write_text(OPERATOR.format(name="second"))
            wait_for(process, "Starting workers")
        finally:
            process.send_signal(signal.SIGTERM)
            wait_for_end = process.communicate()
        assert process.returncode == 0, wait_for_end


def test_the_files_of_a_target_are_watched(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    (package / ".hidden").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / ".hidden" / "x.py").touch()
    (package / "notes.txt").touch()
    assert folder_of(str(package)) == package
    assert folder_of(str(package / "__init__.py")) == package
    assert folder_of(f"{package}:operator") == package
    before = stamps(package)
    assert [path.name for path in before] == ["__init__.py"]
    (package / "__init__.py").write_text("x = 1\n")
    assert stamps(package) != before


def test_arguments_are_passed_on_unchanged() -> None:
    found: list[list[str]] = []

    @click.command()
    @click.argument("target")
    @click.option("--dev", is_flag=True)
    @click.option("--install", is_flag=True)
    @click.option("-n", "--namespace", multiple=True)
    @click.option("--address", default=":1")
    @click.pass_context
    def command(ctx: click.Context, **_: object) -> None:
        found.append(arguments_of(ctx, without=("dev",)))

    arguments = ["x.py", "--dev", "-n", "a", "--install", "--namespace", "b"]
    command.main(arguments, standalone_mode=False)
    assert sorted(found[0]) == sorted(["x.py", "--install", "-n", "a", "-n", "b"])


@pytest.mark.parametrize(
    "given",
    [
        ["--shards", "8"],
        ["--shards", "8,namespace", "--namespace-selector", "team=a"],
        ["--selector", "track in (canary, beta)", "--journal-limit", "20Mi", "-n", "a,b", "-n", "c"],
    ],
)
def test_a_reloaded_run_has_the_same_options(given: list[str]) -> None:
    first = run_command.make_context("run", ["x.py", *given])
    again = run_command.make_context("run", arguments_of(first, without=()))
    assert again.params == first.params


@pytest.mark.parametrize("target", ["nowhere.py", "no_such_module_at_all:x"])
def test_a_missing_target_is_waited_for(target: str, tmp_path: Path) -> None:
    assert folder_of(target) == tmp_path
