"""Every public name is put to use by a test, under the name that its face gives it."""

import importlib
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FACES = ("kubewright", "kubewright.api", "kubewright.schema", "kubewright.schema.cel", "kubewright.client")
_IMPORTS = re.compile(r"from (kubewright[\w.]*) import (?:\(([^)]*)\)|([^\n(]*))")
_MODULES = re.compile(
    r"^(?:import (kubewright[\w.]*)(?: as (\w+))?|from (kubewright[\w.]*) import (\w+))$", re.MULTILINE
)


def used_names() -> set[str]:
    """Return the names that tests and samples take from packages, by import or as members of them."""
    found: set[str] = set()
    for path in [*TESTS.rglob("*.py"), *(TESTS.parent / "examples").rglob("*.py")]:
        text = path.read_text()
        for module, grouped, plain in _IMPORTS.findall(text):
            found.update(module.split("."))
            found.update(re.findall(r"\w+", grouped or plain))
        for module, alias, _, name in _MODULES.findall(text):
            found.update(re.findall(rf"\b{alias or name or module}\.(\w+)", text))
    return found


@pytest.mark.parametrize("face", FACES)
def test_no_public_name_is_without_a_test(face: str) -> None:
    used = used_names()
    assert [name for name in importlib.import_module(face).__all__ if name not in used] == []
