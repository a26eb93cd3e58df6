"""scripts/external-systems reports a missing system or tool in one line, with the remedy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROVIDE = Path(__file__).parents[1] / "tools" / "external_systems" / "provide.py"


def provide(*arguments: str, cache: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command with a cache directory, and with only the programs in `path`."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PATH": path}
    return subprocess.run(
        [sys.executable, str(PROVIDE), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("system", ["vcenter", "pulsar"])
def test_the_cached_option_installs_nothing(tmp_path: Path, system: str) -> None:
    done = provide(system, "--cached", cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"external-systems: not in the cache; scripts/external-systems {system} installs it\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("system", "missing"), [("vcenter", "no go on PATH"), ("pulsar", "no java on PATH")])
def test_a_tool_that_is_missing_is_named(tmp_path: Path, system: str, missing: str) -> None:
    done = provide(system, cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("external-systems: ")
    assert missing in done.stderr


def test_a_failed_build_leaves_nothing_that_looks_like_a_program(tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "go"
    fake.parent.mkdir()
    fake.write_text(f"#!{sys.executable}\nimport sys; sys.exit('out of memory')\n")
    fake.chmod(0o755)
    done = provide("vcenter", cache=tmp_path / "cache", path=str(fake.parent))
    assert done.returncode == 1
    assert "could not be built:\nout of memory" in done.stderr
    assert provide("vcenter", "--cached", cache=tmp_path / "cache").returncode == 1
