import errno
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from kubewright.cli.app import COMMANDS, main


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    shown = capsys.readouterr().out
    for name in ("dev", "run", "install", "uninstall", "manifests", "version"):
        assert f"  {name} " in shown


def test_help_loads_no_library_for_the_network() -> None:
    code = (
        "import sys; from kubewright.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'httptools', 'ssl', 'prometheus_client', 'yaml', 'cryptography'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_an_unknown_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("fly") == 2
    assert "unknown command 'fly'" in capsys.readouterr().err


def test_a_users_mistake_is_one_line_and_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("manifests", str(tmp_path / "nothing.py")) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Error: ")
    assert shown.count("\n") == 1


def test_dev_and_kubeconfig_exclude_each_other(tmp_path: Path) -> None:
    assert exit_code("run", "x.py", "--dev", "--context", "other") == 2


def test_version_prints_kubewright_and_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("version") == 0
    assert capsys.readouterr().out.startswith("kubewright ")
    assert exit_code("version", "-o", "json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {"kubewright", "python"}


def test_a_full_disk_below_standard_output_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.stdout, "write", full)
    assert exit_code("version") == 1
    assert capsys.readouterr().err == "Error: cannot write to standard output: No space left on device\n"


def test_a_deleted_working_directory_is_one_error_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert exit_code("manifests") == 1
    assert (
        capsys.readouterr().err
        == "Error: the current directory does not exist: change to another directory\n"
    )


def test_the_version_option_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("version") == 0
    printed = capsys.readouterr().out
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    "command", [*COMMANDS, "create api", "create webhook", "rbac verify"], ids=lambda it: it.replace(" ", "-")
)
def test_help_reads_well_in_a_narrow_terminal(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_code(*command.split(), "--help") == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    # A metavar that describes the value is more useful than its type.
    assert " TEXT" not in shown
    assert not any(word in shown for word in (" INTEGER", " FLOAT"))


def test_every_machine_readable_output_has_the_same_option() -> None:
    for name in ("get", "plan", "doctor", "rbac", "scorecard", "version"):
        found = import_module(COMMANDS[name].module).command
        command = found.commands["verify"] if name == "rbac" else found
        (option,) = (each for each in command.params if each.name == "output")
        assert option.opts == ["-o", "--output"]
        assert "json" in option.type.choices


def test_output_is_a_format_in_every_command() -> None:
    for entry in COMMANDS.values():
        found = getattr(import_module(entry.module), entry.attribute)
        for command in [found, *getattr(found, "commands", {}).values()]:
            for option in command.params:
                if "-o" in option.opts or "--output" in option.opts:
                    assert isinstance(option.type, click.Choice), entry.module


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("completion", shell) == 0
    assert "_KUBEWRIGHT_COMPLETE" in capsys.readouterr().out


def test_commands_are_completed_without_loading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; from kubewright.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'yaml' not in sys.modules"
    )
    environment = {"_KUBEWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": "kubewright un", "COMP_CWORD": "1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["plain,uninstall", "plain,undeploy"]


def test_unknown_commands_have_no_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"_KUBEWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": "kubewright nosuch --", "COMP_CWORD": "2"}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    program = [sys.executable, "-c", "from kubewright.cli import main; main()"]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_the_package_runs_as_a_module_as_debuggers_start_it() -> None:
    """`.vscode/launch.json` of new projects names the module, because scripts differ between operating systems."""
    command = [sys.executable, "-m", "kubewright", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kubewright ")
