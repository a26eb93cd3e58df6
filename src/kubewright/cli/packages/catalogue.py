"""Metadata for an OLM catalog, from the tables [project] and [tool.kubewright.bundle] of pyproject.toml."""

import base64
import mimetypes
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from kubewright.api import ConfigError
from kubewright.cli.project import Project
from kubewright.generate import Capability, Package

_SEMVER = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_TEXTS = (
    "display_name",
    "description",
    "provider",
    "maturity",
    "capability",
    "minimum_kubernetes",
    "default_channel",
)
_LISTS = ("channels", "keywords", "categories")
_WHERE = "[tool.kubewright.bundle]"
CAPABILITIES: tuple[str, ...] = get_args(Capability)


def package_of(project: Project, *, version: str = "", replaces: str = "") -> Package:
    """Read the catalog metadata of a project; raise ConfigError if it is invalid."""
    table: Mapping[str, Any] = project.settings.get("bundle", {})
    known = {*_TEXTS, *_LISTS, "icon", "maintainers", "links"}
    if unknown := sorted(set(table) - known):
        raise ConfigError(f"{_WHERE}: unknown key {unknown[0]!r}: choose from {', '.join(sorted(known))}")
    about: dict[str, Any] = {"description": str(project.package.get("description", ""))}
    about |= {name: str(table[name]) for name in _TEXTS if name in table}
    about |= {"keywords": _texts(project.package.get("keywords", []))}
    about |= {name: _texts(table[name]) for name in _LISTS if name in table}
    about["maintainers"] = _pairs(
        table.get("maintainers", project.package.get("authors", [])), "name", "email"
    )
    about["links"] = _pairs(table.get("links", _urls(project)), "name", "url")
    if about.get("capability", CAPABILITIES[0]) not in CAPABILITIES:
        raise ConfigError(
            f"{_WHERE} capability = {about['capability']!r}: choose from {', '.join(CAPABILITIES)}"
        )
    chosen = version or project.version
    if not _SEMVER.fullmatch(chosen):
        raise ConfigError(
            f"version {chosen!r} is not a semantic version such as 1.2.3, as OLM requires: pass --version"
        )
    if "icon" in table:
        about |= _icon(project.root / str(table["icon"]))
    return Package(name=project.name, version=chosen, replaces=replaces, **about)


def _texts(values: Sequence[Any]) -> list[str]:
    if isinstance(values, str):
        raise ConfigError(f"{_WHERE}: expected a list of strings, got {values!r}")
    return [str(value) for value in values]


def _pairs(values: Sequence[Any], *names: str) -> list[dict[str, str]]:
    """Return the entries that have all fields that OLM requires."""
    tables = [cast("Mapping[str, Any]", value) for value in values if isinstance(value, Mapping)]
    return [
        {name: str(value[name]) for name in names}
        for value in tables
        if all(value.get(name) for name in names)
    ]


def _urls(project: Project) -> list[dict[str, str]]:
    urls: Mapping[str, Any] = project.package.get("urls", {})
    return [{"name": name, "url": str(url)} for name, url in urls.items()]


def _icon(path: Path) -> dict[str, str]:
    kind = mimetypes.guess_type(path.name)[0] or ""
    if kind not in ("image/gif", "image/jpeg", "image/png", "image/svg+xml"):
        raise ConfigError(f"{_WHERE} icon = {path.name!r}: supported formats are gif, jpeg, png and svg")
    try:
        return {"icon": base64.b64encode(path.read_bytes()).decode(), "icon_type": kind}
    except OSError as error:
        raise ConfigError(f"cannot read the icon {path}: {error.strerror}") from None
