"""Lint: the public names of each package are the listed ones, documented, and used by a test or an example."""

import importlib
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LISTS = sorted((TESTS / "public_names").glob("*.txt"))
USED = ("kubewright", "kubewright.api", "kubewright.schema", "kubewright.schema.cel", "kubewright.client")
_IMPORTS = re.compile(r"from (kubewright[\w.]*) import (?:\(([^)]*)\)|([^\n(]*))")
_MODULES = re.compile(
    r"^(?:import (kubewright[\w.]*)(?: as (\w+))?|from (kubewright[\w.]*) import (\w+))$", re.MULTILINE
)


@pytest.mark.parametrize("names", LISTS, ids=lambda path: path.stem)
def test_a_package_exports_the_names_of_its_list(names: Path) -> None:
    assert sorted(importlib.import_module(names.stem).__all__) == names.read_text().split()


@pytest.mark.parametrize("names", LISTS, ids=lambda path: path.stem)
def test_every_public_name_has_a_docstring(names: Path) -> None:
    package = importlib.import_module(names.stem)
    assert [name for name in package.__all__ if not getattr(package, name).__doc__] == []


def used_names() -> set[str]:
    """Return the names that tests and examples take from packages, by import or as members of them."""
    found: set[str] = set()
    for path in [*TESTS.rglob("*.py"), *(TESTS.parent / "examples").rglob("*.py")]:
        text = path.read_text()
        for module, grouped, plain in _IMPORTS.findall(text):
            found.update(module.split("."))
            found.update(re.findall(r"\w+", grouped or plain))
        for module, alias, _, name in _MODULES.findall(text):
            found.update(re.findall(rf"\b{alias or name or module}\.(\w+)", text))
    return found


@pytest.mark.parametrize("package", USED)
def test_every_public_name_is_used_by_a_test(package: str) -> None:
    used = used_names()
    assert [name for name in importlib.import_module(package).__all__ if name not in used] == []
