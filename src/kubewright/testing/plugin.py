"""The pytest plugin: the switch that chooses the server; the fixtures come where pytest-asyncio is installed."""

from importlib.util import find_spec

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that chooses the server."""
    group = parser.getgroup("kubewright", "Kubernetes operators")
    group.addoption(
        "--server",
        choices=("embedded", "real", "existing"),
        default="embedded",
        help="run on the embedded server, on a real control plane, or on the current kubeconfig context",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Bring the fixtures, which are coroutines, where something runs those."""
    if find_spec("pytest_asyncio") is not None:
        config.pluginmanager.import_plugin("kubewright.testing.fixtures")
