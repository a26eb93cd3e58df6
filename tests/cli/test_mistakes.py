"""A user's mistake is one line and no traceback, also where it is found inside running tasks."""

import socket
from pathlib import Path

import pytest

from kubewright.cli.app import main

SHELL = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Shell(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A shell."""

@kw.controller(Shell)
async def shells(shell: Shell, ctx: kw.Context) -> None:
    pass
'''


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: x}}]
"""


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def shell(tmp_path: Path) -> str:
    path = tmp_path / "a_shell_with_mistakes.py"
    path.write_text(SHELL)
    return str(path)


def test_a_kubeconfig_that_is_no_yaml(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad"
    path.write_text("garbage: [")
    assert "is not valid YAML" in told(capsys, "run", shell, "--kubeconfig", str(path))


def test_a_context_that_is_not_there(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    line = told(capsys, "run", shell, "--kubeconfig", str(path), "--context", "other")
    assert "'other' is not in" in line


def test_a_kubeconfig_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert "cannot write the kubeconfig" in told(capsys, "dev", "--kubeconfig", str(tmp_path / "file" / "x"))


def test_a_port_that_is_taken(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        line = told(capsys, "run", shell, "--dev", "--metrics-bind-address", address)
    assert f"cannot listen on {address}" in line
