"""Randomised tests run from fixed seeds, unless another one is asked for."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
RANDOMISED = """
import pytest
from hypothesis import given, strategies as st

def note(text):
    with open("tried", "a") as file:
        file.write(f"{text} ")

@given(st.integers())
def test_a_property(number):
    note(number)

@pytest.mark.kubewright_seeds(2)
def test_a_simulation(seed):
    note(f"simulation={seed}")

@pytest.mark.seeds(1, 20)
def test_a_seed(seed):
    note(f"seed={seed}")
"""


def tried(folder: Path, *arguments: str) -> list[str]:
    """Run three randomised tests under the suite's own configuration and return what they tried.

    In CI, where Hypothesis has other defaults.
    """
    folder.mkdir()
    for name in ("conftest.py", "acceptance", "clients", "http"):
        (folder / name).symlink_to(TESTS / name)
    (folder / "test_randomised.py").write_text(RANDOMISED)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *arguments, "test_randomised.py")
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"CI": "1"}
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return (folder / "tried").read_text().split()


def test_the_same_seed_tries_the_same_examples(tmp_path: Path) -> None:
    fixed = tried(tmp_path / "first")
    assert fixed[-4:] == ["simulation=0", "simulation=1", "seed=1", "seed=20"]
    assert tried(tmp_path / "second") == fixed
    searched = tried(tmp_path / "third", "--search-seed", "77", "--seeds", "2")
    assert searched[-4:] == ["simulation=77", "simulation=78", "seed=77", "seed=78"]
    assert searched[:-4] != fixed[:-4]
