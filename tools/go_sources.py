"""Read the published Go sources of the Kubernetes release that bundle.json names: structs, OpenAPI, discovery."""

import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BUNDLE = Path(__file__).resolve().parents[1] / "src/kubewright/devserver/data/bundle.json"
# What the generators read, besides k8s.io/kubernetes itself.
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "apiserver", "kube-aggregator")

_STRUCT = re.compile(r"^type (\w+) struct ?\{(\}|\n.*?^\})", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\S+)\s+`([^`]*)`")
_ALIAS = re.compile(r"^type (\w+)\s+(?:= )?((?:map\[[\w.]+\])?(?:\[\])?[\w.]+)\s*$", re.MULTILINE)
_IMPORT = re.compile(r'^\s*(?:import\s+)?(?:(\w+)\s+)?"(k8s\.io/[^"]+)"', re.MULTILINE)


def release() -> str:
    """Return the Kubernetes release of the project, such as `1.37.1`."""
    return json.loads(BUNDLE.read_text())["kubernetes"]


def staging_version(version: str) -> str:
    """Return the version of the k8s.io modules that are published with a release: `v0.37.1` for `1.37.1`."""
    return f"v0.{version.split('.', 1)[1]}"


@dataclass(frozen=True)
class GoField:
    """A field of a struct that has a name in JSON, or is embedded."""

    go_type: str
    name: str
    options: tuple[str, ...]
    tag: str

    @property
    def inline(self) -> bool:
        """Return True if the fields of the field's type are part of the struct."""
        return "inline" in self.options or not self.name

    def tagged(self, key: str) -> str | None:
        """Return what the field's tag says under a key."""
        match = re.search(rf'{key}:"([^"]*)"', self.tag)
        return match[1] if match else None


@dataclass(frozen=True)
class GoFile:
    """The declarations of one file: structs, other named types, imports by the name used in the file."""

    structs: dict[str, list[GoField]]
    aliases: dict[str, str]
    imports: dict[str, str]


class Sources:
    """The Go modules of one release in the module cache."""

    def __init__(self, version: str = "", cache: Path | None = None) -> None:
        self.version = version or release()
        self._cache = cache or module_cache()
        self.minor = int(self.version.split(".")[1])
        self._kubernetes = self._cache / f"k8s.io/kubernetes@v{self.version}"

    def of(self, version: str) -> "Sources":
        """Return the sources of another release in the same cache."""
        return Sources(version, self._cache)

    def present(self) -> bool:
        """Return True if the modules that the generators read are in the cache."""
        folders = [self.package(f"k8s.io/{module}") for module in MODULES]
        return all(folder.is_dir() for folder in (self._kubernetes / "api", *folders))

    def package(self, path: str) -> Path:
        """Return the folder of a Go package."""
        host, module, *rest = path.split("/")
        if module == "kubernetes":
            return self._kubernetes / "/".join(rest)
        return self._cache / host / f"{module}@{staging_version(self.version)}" / "/".join(rest)

    def files(self, path: str) -> Iterator[GoFile]:
        """Read the declarations of a package, file by file, without tests and generated code."""
        for file in sorted(self.package(path).glob("*.go")):
            if not file.name.endswith("_test.go") and "generated" not in file.name:
                yield parse(file.read_text())

    def openapi(self, group: str, version: str) -> Any:
        """Return the published OpenAPI document of a group version."""
        return self._document(f"openapi-spec/v3/{document_name(group, version)}_openapi.json")

    def discovery(self, group: str, version: str) -> Any:
        """Return the published APIResourceList of a group version."""
        return self._document(f"discovery/{document_name(group, version)}.json")

    def aggregated_discovery(self) -> Any:
        """Return the published discovery document of all groups except the core group."""
        return self._document("discovery/aggregated_v2.json")

    def _document(self, name: str) -> Any:
        return json.loads((self._kubernetes / "api" / name).read_text())


def document_name(group: str, version: str) -> str:
    """Return the name that Kubernetes gives the documents of a group version."""
    return f"apis__{group}__{version}" if group else f"api__{version}"


def parse(source: str) -> GoFile:
    """Read the declarations in the text of a Go file."""
    return GoFile(
        structs={
            name: [field for line in body.split("\n") if (field := _parse_field(line))]
            for name, body in _STRUCT.findall(source)
        },
        aliases=dict(_ALIAS.findall(source)),
        imports={name or target.rsplit("/", 1)[-1]: target for name, target in _IMPORT.findall(source)},
    )


def _parse_field(line: str) -> GoField | None:
    if line.strip().startswith("//") or not (match := _FIELD.match(line)):
        return None
    tag = match[3]
    json_tag = re.search(r'json:"([^"]*)"', tag)
    if json_tag is None or json_tag[1] == "-":
        return None
    name, *options = json_tag[1].split(",")
    return GoField(match[2], name, tuple(options), tag)


@functools.cache
def module_cache() -> Path:
    """Return the folder of Go's module cache."""
    if folder := os.environ.get("GOMODCACHE"):
        return Path(folder)
    try:
        result = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return Path.home() / "go" / "pkg" / "mod"
    return Path(result.stdout.strip())
