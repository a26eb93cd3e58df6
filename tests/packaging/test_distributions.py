"""The wheel and the sdist: what is in them, and that an installation of the wheel works by itself."""

import os
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from it, with the build backend that is installed here."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installation(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment of its own, which borrows only the dependencies of this one."""
    folder = tmp_path_factory.mktemp("installation") / "venv"
    venv.create(folder, with_pip=False)
    (wheel,) = distributions.glob("*.whl")
    python = folder / "bin" / "python"
    run(
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--offline",
        "--no-deps",
        "--python",
        python,
        wheel,
        cwd=folder,
    )
    (place,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file lends its packages, but not its own .pth files: this checkout stays unseen.
    (place / "borrowed.pth").write_text("\n".join(site.getsitepackages()))
    found = run(python, "-c", "import kubewright; print(kubewright.__file__)", cwd=folder)
    assert found.startswith(str(folder))
    return folder / "bin" / "kubewright"


def test_the_sdist_can_be_built_and_tested(distributions: Path) -> None:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "src/kubewright/scaffold/templates/kind.py.txt",
        "tests/golden/shop/shop/cart.py",
        "tests/golden/shop/.github/workflows/ci.yml",
        "tests/golden/shop/.vscode/launch.json",
    } <= names


def test_the_wheel_has_the_package_and_nothing_else(distributions: Path) -> None:
    (path,) = distributions.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {
        "kubewright",
        f"{path.name.rsplit('-', 3)[0]}.dist-info",
    }
    assert "kubewright/py.typed" in names
    assert {"kubewright/ui/static/index.html", "kubewright/ui/static/main.js"} <= set(names)
    assert not any("__pycache__" in name for name in names)


def test_an_installed_command_creates_and_renders_a_project(installation: Path, tmp_path: Path) -> None:
    assert "init" in run(installation, "--help", cwd=tmp_path)
    assert run(installation, "version", cwd=tmp_path).startswith("kubewright ")
    run(installation, "init", "shop", "--domain", "example.com", cwd=tmp_path)
    run(installation, "create", "api", "--version", "v1", "--kind", "Cart", cwd=tmp_path / "shop")
    assert "name: carts.shop.example.com" in run(installation, "manifests", cwd=tmp_path / "shop")
