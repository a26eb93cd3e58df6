import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs import TestPlane

from kubewright.envtest.assets import create_folder
from kubewright.testing.controlplane import find_binaries


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs."""
    return create_folder(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def plane(assets: Path, tmp_path: Path) -> TestPlane:
    """Return a pair of programs, to be started."""
    return TestPlane(assets, tmp_path)


@pytest.fixture
def either_plane(server_name: str, assets: Path, tmp_path: Path) -> TestPlane:
    """Return our pair of programs or, with `--server real`, the real one."""
    if server_name != "real":
        return TestPlane(assets, tmp_path)
    folder = find_binaries()
    if folder is None:
        pytest.skip("no real binaries: run scripts/control-plane build")
    return TestPlane(folder, tmp_path)
