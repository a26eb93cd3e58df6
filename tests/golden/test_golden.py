"""The golden projects are what the commands make, and pass their own tests."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kubewright.testing.environments import ServerName

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("golden")
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.mark.parametrize("name", ["shop", "fleet", "cachefarm"])
def test_the_commands_make_the_golden_project(golden: ModuleType, name: str, tmp_path: Path) -> None:
    made = golden.make(name, tmp_path)
    assert golden.differences(made, GOLDEN / name) == [], "run tools/golden.py and look at the difference"
    assert (made / "requirements.lock").read_text() == (ROOT / "requirements" / "runtime.txt").read_text()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["shop", "fleet"])
def test_a_golden_project_passes_its_own_tests(name: str, tmp_path: Path, server_name: ServerName) -> None:
    """Nothing of the repository around it may help: it runs elsewhere."""
    project = tmp_path / name
    shutil.copytree(GOLDEN / name, project)
    # Plain assertions spare pytest the rewriting of all of kubewright where nothing compiled may be kept.
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--server", server_name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
