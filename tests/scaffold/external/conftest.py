"""Classes made from the reduced CRDs of three projects, as `kubewright create types` writes them."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubewright.api import Object
from kubewright.scaffold.external import external_modules, read_definitions

sys.path.insert(0, str(Path(__file__).parent))
CRDS = Path(__file__).parent / "crds"


class Example(NamedTuple):
    """One kind: its class, and the schema that the class was made from."""

    cls: type[Object]
    schema: dict[str, Any]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a package with the modules of all projects."""
    folder = tmp_path_factory.mktemp("external") / "other_kinds"
    folder.mkdir()
    documents = [json.loads(path.read_text()) for path in sorted(CRDS.glob("*.json"))]
    for name, text in external_modules(read_definitions(documents).versions).items():
        (folder / name).write_text(text)
    sys.path.insert(0, str(folder.parent))
    yield folder
    sys.path.remove(str(folder.parent))


@pytest.fixture(scope="session")
def example(package: Path) -> Callable[[str, str], Example]:
    """Return the class and the schema of a kind, by module and name."""

    def find(module: str, kind: str) -> Example:
        cls = getattr(importlib.import_module(f"{package.name}.{module}"), kind)
        path = CRDS / f"{cls.__kind__.plural}.{cls.__kind__.group}.json"
        versions = json.loads(path.read_text())["spec"]["versions"]
        (schema,) = [
            each["schema"]["openAPIV3Schema"] for each in versions if each["name"] == cls.__kind__.version
        ]
        return Example(cls, schema)

    return find
