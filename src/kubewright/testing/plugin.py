"""The pytest plugin: which server the tests run on."""

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
