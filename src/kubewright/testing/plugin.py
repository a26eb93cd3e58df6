"""The pytest plugin: options that select the server, reports of failures, and fixtures if pytest-asyncio is installed."""

import asyncio
import inspect
import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import cast

import pytest

from kubewright.api import KubewrightError
from kubewright.testing.environments import ServerName, check_release, server_release
from kubewright.testing.recorder import HAPPENED
from kubewright.testing.releases import (
    MARK,
    VARIABLE,
    ReleaseError,
    check_mark,
    reason_to_skip,
    select_release,
    supported_releases,
)

SEEDS_MARK = "kubewright_seeds"
FIXTURES = frozenset({"cluster", "embedded_cluster", "module_cluster", "session_cluster"})
_RECORD = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+(?P<logger>[\w.]+):\S+:\d+ ")
"""The first line of a record in pytest's default format of captured logs."""
_RELEASE = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the server and the seeds of simulations."""
    group = parser.getgroup("kubewright", "Kubernetes operators")
    group.addoption(
        "--server",
        choices=("embedded", "real", "existing"),
        default="embedded",
        help="run on the embedded server, on a real control plane, or on the current kubeconfig context",
    )
    releases = list(supported_releases())
    group.addoption(
        "--kubernetes",
        metavar="VERSION",
        help=f"run on this Kubernetes version, {releases[0]} to {releases[-1]} or a release of them"
        f" (default: {VARIABLE}, otherwise {releases[-1]})",
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
    """Select the Kubernetes release, and register the fixtures if pytest-asyncio is installed to run them."""
    config.addinivalue_line("markers", f"{SEEDS_MARK}(count): run a simulation with this many seeds")
    config.addinivalue_line(
        "markers",
        f"{MARK}(since, until): run only on Kubernetes versions from `since` to `until`, each optional",
    )
    try:
        if version := config.getoption("--kubernetes"):
            select_release(version)
        check_release(_server(config))
    except ReleaseError as error:
        raise pytest.UsageError(str(error)) from None
    if find_spec("pytest_asyncio") is not None:
        config.pluginmanager.import_plugin("kubewright.testing.fixtures")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs another Kubernetes version, before its fixtures are set up."""
    for mark in item.iter_markers(MARK):
        try:
            check_mark(mark.args, mark.kwargs)
        except ReleaseError as error:
            pytest.fail(f"{item.nodeid}: {error}", pytrace=False)
        if reason := reason_to_skip(release_under_test(item.config), **mark.kwargs):
            # Not `pytest.skip`: pytest itself reports a marker at the line of the test.
            item.add_marker(pytest.mark.skip(reason=reason))


def release_under_test(config: pytest.Config) -> str:
    """Return the Kubernetes release of the selected server; for an existing cluster, one request is sent."""
    if _RELEASE not in config.stash:
        # In a thread, because this one may have an event loop that belongs to tests.
        with ThreadPoolExecutor(1) as thread:
            config.stash[_RELEASE] = thread.submit(asyncio.run, server_release(_server(config))).result()
    return config.stash[_RELEASE]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show an error of kubewright at the author's own line, and what the operator logged once; --full-trace shows all."""
    failure = call.excinfo
    if failure is None or item.config.option.fulltrace:
        return (yield)
    if failure.errisinstance(KubewrightError):
        _cut_after_author(failure.tb, item.config.rootpath)
    report = yield
    if HAPPENED in str(failure.value):
        report.sections = [
            (title, text)
            for title, section in report.sections
            if (text := _without_our_records(section) if title.startswith("Captured log") else section)
        ]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Mark a coroutine that takes a cluster for pytest-asyncio, which runs only what is marked unless its mode is `auto`."""
    if (
        inspect.iscoroutinefunction(obj)
        and collector.istestfunction(obj, name)
        and not FIXTURES.isdisjoint(inspect.signature(obj).parameters)
        and collector.get_closest_marker("asyncio") is None
        and not any(mark.name == "asyncio" for mark in getattr(obj, "pytestmark", ()))
        and collector.config.pluginmanager.has_plugin("asyncio")
    ):
        pytest.mark.asyncio(obj)


def _server(config: pytest.Config) -> ServerName:
    return cast(ServerName, config.getoption("--server"))


def _without_our_records(captured: str) -> str:
    """Return a captured log without the records of kubewright, with their tracebacks: the error message has them."""
    kept: list[str] = []
    ours = False
    for line in captured.splitlines(keepends=True):
        if found := _RECORD.match(line):
            ours = found["logger"].split(".")[0] == "kubewright"
        if not ours:
            kept.append(line)
    return "".join(kept)


def _cut_after_author(entry: TracebackType | None, project: Path) -> None:
    """Cut a traceback after the last frame of the project; one without a frame of the project is not cut."""
    last: TracebackType | None = None
    while entry is not None:
        file = Path(entry.tb_frame.f_code.co_filename)
        if project in file.parents and "site-packages" not in file.parts:
            last = entry
        entry = entry.tb_next
    if last is not None:
        last.tb_next = None
