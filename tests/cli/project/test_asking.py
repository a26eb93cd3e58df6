"""Prompts on a terminal; an error that names the option otherwise."""

import io
import sys
from pathlib import Path

import click
import pytest

from kubewright.cli.app import main
from kubewright.cli.project.asking import known
from kubewright.scaffold import kind_problem


class Terminal(io.StringIO):
    """A terminal at which these lines are typed."""

    def isatty(self) -> bool:
        return True


def sit_down(monkeypatch: pytest.MonkeyPatch, lines: str) -> Terminal:
    """Type lines; what is shown at the terminal is returned. Only inside a test: pytest takes the streams back."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(lines))
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_an_invalid_answer_is_reported_and_prompted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = sit_down(monkeypatch, "cart\nCart\n")
    assert known(None, "--kind", "Kind", kind_problem) == "Cart"
    assert "kind 'cart' is not in CamelCase: like Cart" in shown.getvalue()


def test_a_given_option_is_not_prompted_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch, "")
    assert known("Cart", "--kind", "Kind", kind_problem) == "Cart"


def test_a_missing_option_is_named_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(click.UsageError, match="Missing option '--kind'"):
        known(None, "--kind", "Kind", kind_problem)
    assert known(None, "--domain", "Domain", lambda text: "", default="") == ""


def test_a_project_is_created_from_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sit_down(monkeypatch, "toyshop\nexample.com\n")
    with pytest.raises(SystemExit) as ended:
        main(["init"])
    assert ended.value.code == 0
    assert 'domain = "example.com"' in (tmp_path / "toyshop" / "pyproject.toml").read_text()
