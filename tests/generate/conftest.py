"""Programs that validate the rendered manifests; tests are skipped if theirs is not built."""

import os
from pathlib import Path

import pytest

from kubewright.testing import find_binaries


def packaging_tool(name: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "kubewright" / "packaging" / name
    if not path.exists():
        pytest.skip(f"{name} is not built: scripts/packaging-tools builds it")
    return path


@pytest.fixture
def helm_program() -> Path:
    return packaging_tool("helm")


@pytest.fixture
def kubectl_program() -> Path:
    folder = find_binaries()
    if folder is None or not (folder / "kubectl").exists():
        pytest.skip("kubectl is not built: scripts/control-plane build builds it")
    return folder / "kubectl"


@pytest.fixture
def operator_verify() -> Path:
    return packaging_tool("operator-verify")


@pytest.fixture
def prometheus_rules_program() -> Path:
    return packaging_tool("prometheus-rules")
