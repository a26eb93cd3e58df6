"""What holds for every test: blocking the event loop fails it, a slow machine does not, and chance is repeatable."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.core
import pytest
from blockbuster import BlockBuster

sys.path.insert(0, str(Path(__file__).parent / "acceptance"))
sys.path.insert(0, str(Path(__file__).parent / "clients"))
sys.path.insert(0, str(Path(__file__).parent / "http"))

from acceptance_report import Reporter
from clients_kubectl import find_kubectl

from kubewright.devserver.data import RELEASE
from kubewright.testing import Cluster, ControlPlane
from kubewright.testing.releases import minor_of

# An example must never fail because a busy machine took long to find or to try it. By default each test tries the
# same examples on every machine; scripts/search-seeds tries others.
_UNHURRIED: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
    "print_blob": True,
    "database": None,
}
hypothesis.settings.register_profile("fixed", derandomize=True, **_UNHURRIED)
# Said in both: Hypothesis takes what a profile leaves out from one of its own, and that differs where CI is set.
hypothesis.settings.register_profile("search", derandomize=False, **_UNHURRIED)
hypothesis.settings.load_profile("fixed")


SEARCHED_SIMULATIONS = 20
"""Seeds of each simulation in one round of scripts/search-seeds."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that scripts/search-seeds sets, and the one for operators in other languages."""
    parser.addoption(
        "--search-seed",
        type=int,
        metavar="SEED",
        help="run randomised tests from this seed instead of the fixed ones",
    )
    parser.addoption(
        "--languages",
        action="store_true",
        help="build and test the operators in Go, TypeScript, Java and Rust (tests/languages)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test marked with `seeds` once for each of them, or for as many that follow from --search-seed."""
    marker = metafunc.definition.get_closest_marker("seeds")
    if marker is None:
        return
    start = metafunc.config.getoption("--search-seed")
    seeds = list(marker.args) if start is None else [start + number for number in range(len(marker.args))]
    metafunc.parametrize("seed", seeds)


def pytest_report_header(config: pytest.Config) -> str:
    """Return a header with the seeds of randomised tests."""
    start = config.getoption("--search-seed")
    if start is None:
        return "randomised tests: fixed seeds (scripts/search-seeds tries others)"
    return f"randomised tests: --search-seed={start}"


def pytest_configure(config: pytest.Config) -> None:
    """Set up the seeds, the programs that tests start, and the report of the acceptance cases.

    Programs find their modules compiled, as an installation has them: compiling them each time costs more
    than most of these programs do. Where workers share the tests, their controller reports.
    """
    start = config.getoption("--search-seed")
    if start is not None:
        hypothesis.settings.load_profile("search")
        hypothesis.core.global_force_seed = start
        config.option.seed = start
        config.option.seeds = config.option.seeds or SEARCHED_SIMULATIONS
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and hasattr(config, "cache"):
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("bytecode"))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config.getoption("--server")), "acceptance-report")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on another server than the embedded one, what would only say the same again.

    A test depends on the server if it, or a fixture of its, asks for `server_name`.
    """
    if config.getoption("--server") == "embedded":
        return
    apart = [item for item in items if "server_name" not in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=apart)
    left_out = set(apart)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def blocking_calls() -> BlockBuster:
    """Find out once, not for every test, which calls block."""
    # `eventually` calls functions of the test, which may read files.
    found = BlockBuster("kubewright", excluded_modules=["kubewright.testing.waiting"])
    # At its end a loop joins the threads of its executor; that of uvloop has no frame by which this is recognized.
    found.functions["threading.Lock.acquire"].can_block_in("asyncio/runners.py", {"close"})
    return found


@pytest.fixture(autouse=True)
def unblocked_event_loop(blocking_calls: BlockBuster) -> Iterator[None]:
    """Fail a test in which our own code makes a blocking call on the event loop."""
    blocking_calls.activate()
    yield
    blocking_calls.deactivate()


@pytest.fixture(autouse=True)
def logging_of_its_own() -> Iterator[None]:
    """Take back how a command line run by a test sets up logging: it writes to streams that end with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def _of_shared_server(record: logging.LogRecord) -> bool:
    return record.thread != threading.main_thread().ident and record.name.startswith(
        ("kubewright.devserver", "kubewright.devcluster")
    )


@pytest.fixture(autouse=True)
def log_without_shared_servers(caplog: pytest.LogCaptureFixture) -> None:
    """Capture nothing from servers that tests share: they run in threads and log what other tests caused."""
    caplog.handler.addFilter(lambda record: not _of_shared_server(record))


@pytest.fixture(scope="session")
def project_release(kubernetes_version: str) -> None:
    """Skip the test unless the server has the minor version that recorded responses and the embedded server are of."""
    if minor_of(kubernetes_version) != minor_of(RELEASE):
        pytest.skip(f"compares with recorded responses or an embedded server of Kubernetes {RELEASE}")


@pytest.fixture(scope="session")
def bare_plane(server_name: str) -> Iterator[ControlPlane | None]:
    """Run one real API server without controllers for all tests of this process; None on another server.

    It runs on the event loop of a thread, because the loops of tests end with them.
    """
    if server_name != "real":
        yield None
        return
    plane = ControlPlane(controllers=False, users={"jane": ["readers"], "bob": []})
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with plane:
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(150), "the control plane did not start"
    yield plane
    ended.set()
    thread.join()


@pytest.fixture(scope="session")
def kubectl_path() -> Path:
    """Return the path of kubectl: among the control plane's programs or on PATH; skip the test without one."""
    found = find_kubectl()
    if found is None:
        pytest.skip(
            f"no kubectl of Kubernetes {RELEASE}: run scripts/control-plane build, or set KUBEBUILDER_ASSETS"
        )
    return found


@pytest.fixture
def kubectl(cluster: Cluster, kubectl_path: Path, tmp_path: Path) -> Callable[..., Awaitable[str]]:
    """Run kubectl in the test's namespace and return what it prints; a failure fails the test."""

    async def run(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            kubectl_path,
            f"--kubeconfig={cluster.kubeconfig}",
            f"--cache-dir={tmp_path}",
            f"--namespace={cluster.namespace}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode()
        assert process.returncode == 0, f"kubectl {' '.join(arguments)}: {text}"
        return text

    return run
