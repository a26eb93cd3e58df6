"""What the pytest plugin shows of a failure."""

import os
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
def test_errors_of_kubewright_are_shown_at_the_line_of_the_test(tmp_path: Path, whole: bool) -> None:
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


OPERATOR = """
import logging
import kubewright as kw
from kubewright.testing import Cluster

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Jar(kw.Resource[Spec, Status], group="jars.example.com", version="v1"):
    \"\"\"A jar.\"\"\"

@kw.controller(Jar)
async def jars(jar: Jar, ctx: kw.Context) -> None:
    ctx.event("Opened", "the jar is open")
    raise LookupError("no lid")

operator = kw.Operator(jars, name="jars")

async def test_a_jar_is_ready(cluster: Cluster) -> None:
    async with cluster.running(operator):
        logging.getLogger("shop").error("a line of the test's own")
        await cluster.create(Jar(kw.Meta("jam"), spec=Spec()))
        await cluster.eventually(Jar, "jam", lambda jar: jar.status.ready, timeout=3)
"""


def test_a_failing_test_shows_events_and_log_once_with_the_frames_of_the_author(tmp_path: Path) -> None:
    """Also: a coroutine that takes a cluster runs without any configuration of pytest-asyncio."""
    (tmp_path / "test_jars.py").write_text(OPERATOR)
    # Where CI is set, pytest repeats whole messages in its summary.
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = done.stdout
    assert done.returncode == 1
    assert "Jar jam did not become what the test waits for within 3 s" in shown
    story = shown[shown.index("what happened, in order:") :]
    assert "Event Normal Opened: the jar is open" in story
    assert "frames in kubewright" in story
    assert shown.count('raise LookupError("no lid")') == 1
    assert "Reconciler error, failed " in story
    assert "running/runner.py" not in shown
    assert "a line of the test's own" in story
    assert len(story.splitlines()) < 35
