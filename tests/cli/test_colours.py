"""Colours are for terminals, and for those who want them."""

import io

import pytest

from kubewright.cli.logs import painted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_used_on_a_terminal_and_not_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted(Terminal())
    assert not painted(io.StringIO())


def test_colours_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not painted(Terminal())
