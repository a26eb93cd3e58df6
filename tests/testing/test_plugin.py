"""What the pytest plugin shows of a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

REFUSED = """
from pathlib import Path
from kubewright.client import load_config

def test_a_cluster() -> None:
    load_config(Path("nowhere"))
"""


@pytest.mark.parametrize("whole", [False, True])
def test_what_kubewright_says_is_shown_at_the_line_of_the_test(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "test_refused.py").write_text(REFUSED)
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain", *(["--full-trace"] if whole else [])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        '>       load_config(Path("nowhere"))' in done.stdout
        or '>   load_config(Path("nowhere"))' in done.stdout
    )
    assert "ConfigError: " in done.stdout
    assert ("client/kubeconfig.py" in done.stdout) == whole
