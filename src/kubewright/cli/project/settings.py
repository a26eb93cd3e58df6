"""The settings of the project around the current directory, from its pyproject.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kubewright.api import ConfigError

FILE = "pyproject.toml"
TomlTable = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a pyproject.toml that has the table `[tool.kubewright]`."""

    root: Path
    settings: TomlTable
    """The table `[tool.kubewright]`."""
    package: TomlTable
    """The table `[project]`."""

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.package.get("name") or self.root.name)

    @property
    def version(self) -> str:
        """The project's version."""
        return str(self.package.get("version", "0.0.0"))

    @property
    def domain(self) -> str:
        """The domain of the project's API groups."""
        return str(self.settings.get("domain", ""))

    @property
    def made_with(self) -> str:
        """The version of kubewright that last updated the project."""
        return str(self.settings.get("version", ""))

    @property
    def module(self) -> str:
        """The package that declares the operator."""
        return str(self.settings.get("target") or self.name.replace("-", "_"))

    @property
    def target(self) -> str:
        """The default TARGET of commands."""
        place = self.root / self.module
        return str(place) if place.exists() else self.module


def find_project(start: Path | None = None) -> Project | None:
    """Return the project of the directory or its parents, or None."""
    try:
        here = (start or Path.cwd()).resolve()
    except FileNotFoundError:
        raise ConfigError("the current directory does not exist: change to another directory") from None
    for folder in (here, *here.parents):
        if (found := read_project(folder)) is not None:
            return found
    return None


def read_project(folder: Path) -> Project | None:
    """Read the project of exactly this folder."""
    path = folder / FILE
    try:
        document = cast("TomlTable", tomllib.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    tool = _table(document, "tool", path)
    if "kubewright" not in tool:
        return None
    return Project(folder, _table(tool, "kubewright", path), _table(document, "project", path))


def _table(document: TomlTable, name: str, path: Path) -> TomlTable:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: {name!r} is not a table")
    return cast("TomlTable", found)


def the_project() -> Project:
    """Return the project of the current directory or its parents; raise ConfigError if there is none."""
    found = find_project()
    if found is None:
        raise ConfigError(
            "no kubewright project found in the current directory or its parents: create one with `kubewright init NAME`"
        )
    return found
