"""Make the projects under tests/golden as a user would, by the commands; `--check` only compares."""

import argparse
import contextlib
import filecmp
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kubewright.cli import main

TESTS = Path(__file__).resolve().parent.parent / "tests"
GOLDEN = TESTS / "golden"
KOPF = TESTS / "scaffold" / "kopf_project"
# The lock is requirements/runtime.txt, which need not be here once more for each project.
LEFT_OUT = frozenset({"requirements.lock", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"})

PROJECTS: dict[str, Sequence[str]] = {
    "shop": (
        "init shop --domain example.com",
        "create api --version v1 --kind Cart",
    ),
    "fleet": (
        "init fleet",
        "create api --group fleet.example.org --version v1alpha1 --kind Truck",
        "create api --version v1 --kind Truck",
        "create webhook --kind Truck --defaulting --validation --conversion",
        "create api --group fleet.example.org --version v1 --kind LoadingDock --cluster",
        "manifests --with monitoring,network,samples --output-dir deploy/yaml",
        "manifests --format kustomize --output-dir deploy/kustomize",
        "manifests --format helm --output-dir deploy/chart",
        "bundle --image registry.example/fleet:0.1.0 --output-dir deploy/olm",
    ),
    "cachefarm": (
        f"create from-kopf {' '.join(map(str, sorted(KOPF.glob('*.py'))))} --output-dir cachefarm",
    ),
}


class GoldenError(Exception):
    """A command failed that must not."""


def make(name: str, folder: Path) -> Path:
    """Make one project in a folder and return it."""
    before = Path.cwd()
    try:
        for number, line in enumerate(PROJECTS[name]):
            os.chdir(folder / name if number else folder)
            _run(line)
    finally:
        os.chdir(before)
    return folder / name


def _run(line: str) -> None:
    modules, path, shown = set(sys.modules), list(sys.path), io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            main(line.split())
        except SystemExit as ended:
            if ended.code:
                raise GoldenError(f"kubewright {line}: {shown.getvalue()}") from None
        finally:
            # The project is imported by each command that needs it, and changed by the next.
            sys.path[:] = path
            project = str(Path.cwd().resolve())
            for module in set(sys.modules) - modules:
                if (getattr(sys.modules[module], "__file__", None) or "").startswith(project):
                    del sys.modules[module]


def differences(made: Path, golden: Path) -> list[str]:
    """List the files that are not the same in both."""
    both = files_of(made) | files_of(golden)
    return sorted(
        name
        for name in both
        if not (made / name).exists()
        or not (golden / name).exists()
        or not filecmp.cmp(made / name, golden / name, shallow=False)
    )


def files_of(folder: Path) -> set[str]:
    """Return the names of the project files that are compared."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if LEFT_OUT.isdisjoint(path.parts)}


def program() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    stale: list[str] = []
    for name in PROJECTS:
        with tempfile.TemporaryDirectory(prefix="kubewright-golden-") as scratch:
            made = make(name, Path(scratch))
            stale += [f"{name}/{path}" for path in differences(made, GOLDEN / name)]
            if not check:
                for path in files_of(GOLDEN / name) - files_of(made):
                    (GOLDEN / name / path).unlink()
                for path in sorted(files_of(made)):
                    (GOLDEN / name / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(made / path, GOLDEN / name / path)
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(program())
