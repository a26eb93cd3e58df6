"""What holds for every test: blocking the event loop fails it, and a slow machine does not."""

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from blockbuster import BlockBuster

sys.path.insert(0, str(Path(__file__).parent / "acceptance"))
sys.path.insert(0, str(Path(__file__).parent / "http"))

from acceptance_report import Reporter

# Examples are judged by what they find, never by how long a busy machine takes to think of one or to try it.
hypothesis.settings.register_profile(
    "kubewright", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kubewright")


def pytest_configure(config: pytest.Config) -> None:
    """Tell at the end which acceptance cases hold; where workers share the tests, their controller knows.

    Programs that tests start find their modules compiled, as an installation has them: compiling them anew each
    time costs more than most of these programs do.
    """
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
    return BlockBuster("kubewright")


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
