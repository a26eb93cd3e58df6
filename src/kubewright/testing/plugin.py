"""The pytest plugin: the switch that chooses the server; the fixtures come where pytest-asyncio is installed."""

from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import pytest

from kubewright.api import KubewrightError

SEEDS_MARK = "kubewright_seeds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the server and the seeds of simulations."""
    group = parser.getgroup("kubewright", "Kubernetes operators")
    group.addoption(
        "--server",
        choices=("embedded", "real", "existing"),
        default="embedded",
        help="run on the embedded server, on a real control plane, or on the current kubeconfig context",
    )
    group.addoption(
        "--seeds", type=int, help="run this many seeds of each simulation, instead of its own number"
    )
    group.addoption(
        "--seed", type=int, help="run this seed of each simulation; with --seeds, that many from it on"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run simulations once for each seed."""
    mark = metafunc.definition.get_closest_marker(SEEDS_MARK)
    if mark is not None:
        first, count = metafunc.config.getoption("--seed"), metafunc.config.getoption("--seeds")
        if count is None:
            count = mark.args[0] if first is None else 1
        metafunc.parametrize("seed", range(first or 0, (first or 0) + count))


def pytest_configure(config: pytest.Config) -> None:
    """Bring the fixtures, which are coroutines, where something runs those."""
    config.addinivalue_line("markers", f"{SEEDS_MARK}(count): run a simulation with this many seeds")
    if find_spec("pytest_asyncio") is not None:
        config.pluginmanager.import_plugin("kubewright.testing.fixtures")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what kubewright says to a test at the author's own line, unless the whole way there is asked for."""
    failure = call.excinfo
    if failure is not None and failure.errisinstance(KubewrightError) and not item.config.option.fulltrace:
        _cut_after_author(failure.tb, item.config.rootpath)
    return (yield)


def _cut_after_author(entry: TracebackType | None, project: Path) -> None:
    """Let a traceback end where the project was left last; one that is of kubewright itself stays whole."""
    last: TracebackType | None = None
    while entry is not None:
        file = Path(entry.tb_frame.f_code.co_filename)
        if project in file.parents and "site-packages" not in file.parts:
            last = entry
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None
