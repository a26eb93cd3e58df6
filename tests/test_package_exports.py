"""Importing kubewright to declare an operator loads nothing that runs one."""

import importlib
import subprocess
import sys
from dataclasses import is_dataclass

import pytest


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    code = "import sys, kubewright; print(*sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_declaring_an_operator_loads_nothing_that_runs_one(loaded: list[str]) -> None:
    running = {"asyncio", "ssl", "httptools", "cryptography", "prometheus_client", "yaml", "rich", "click"}
    assert running.isdisjoint(loaded)


def test_declaring_an_operator_generates_no_code(loaded: list[str]) -> None:
    # A dataclass compiles its methods when it is made: thirty of them were a third of the import.
    ours = [importlib.import_module(name) for name in loaded if name.partition(".")[0] == "kubewright"]
    assert not [
        value
        for module in ours
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and is_dataclass(value)
    ]


def test_declaring_an_operator_loads_no_built_in_kinds(loaded: list[str]) -> None:
    assert not [name for name in loaded if name.startswith("kubewright.api.builtin.")]
