"""What the packages offer: a name comes or goes only together with the list beside this file."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FACES = sorted(Path(__file__).with_name("faces").glob("*.txt"))


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.stem)
def test_the_public_names_are_those_that_were_agreed(face: Path) -> None:
    assert sorted(importlib.import_module(face.stem).__all__) == face.read_text().split()


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.stem)
def test_every_public_name_is_explained(face: Path) -> None:
    package = importlib.import_module(face.stem)
    assert [name for name in package.__all__ if not getattr(package, name).__doc__] == []


def test_declaring_an_operator_loads_nothing_that_runs_one() -> None:
    running = {"asyncio", "ssl", "aiohttp", "cryptography", "prometheus_client", "yaml", "rich", "typer"}
    code = "import sys, kubewright; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert running.isdisjoint(done.stdout.split())
