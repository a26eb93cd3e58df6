"""Samples of an operator's kinds written by its author, in the directory `samples` of its package or project."""

from pathlib import Path
from typing import cast

from kubewright.api import ConfigError, JsonObject
from kubewright.cli.documents.resources import read_values
from kubewright.cli.project import find_project

FOLDER = "samples"


def written_samples(target: str) -> list[JsonObject]:
    """Read the samples next to TARGET, otherwise those of its project."""
    place = Path(target.partition(":")[0])
    beside = place if place.is_dir() else place.parent
    folders = [beside / FOLDER] if place.exists() else []
    project = find_project(beside if place.exists() else None)
    if project is not None:
        folders.append(project.root / FOLDER)
    for folder in folders:
        if folder.is_dir():
            return [document for path in sorted(folder.glob("*.y*ml")) for document in _documents(path)]
    return []


def _documents(path: Path) -> list[JsonObject]:
    try:
        found = read_values(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not valid UTF-8") from None
    return [cast("JsonObject", document) for document in found if isinstance(document, dict)]
