import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from programs import TestPlane

from kubewright.envtest.assets import create_folder


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs."""
    return create_folder(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def plane(assets: Path, tmp_path: Path) -> TestPlane:
    """Return a pair of programs, to be started."""
    return TestPlane(assets, tmp_path)
