"""The embedded server's data bundle: the Kubernetes releases that it can serve.

`bundle.json` is the one source of the project's release; `scripts/kubernetes` moves the project to another one. That
release is stored as it is, earlier ones as differences to it. `KubernetesRelease.find` is the entry point.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import msgspec

_DATA = Path(__file__).parent
_BOOTSTRAP = _DATA.parent / "auth" / "bootstrap.json"


class DataManifest(msgspec.Struct, frozen=True):
    """The contents of bundle.json."""

    kubernetes: str
    """The release that the project is built on and tested with."""
    releases: dict[str, str]
    """The release that is used for each earlier minor version."""
    sha256: dict[str, str]
    """The hash of each file of the bundle, without its compression."""


BUNDLE = msgspec.json.decode((_DATA / "bundle.json").read_bytes(), type=DataManifest)
RELEASE = BUNDLE.kubernetes
MINOR = int(RELEASE.split(".")[1])


class UnknownReleaseError(ValueError):
    """A Kubernetes version that the bundle has no data of."""


class KubernetesRelease:
    """What one Kubernetes release serves: types, discovery, OpenAPI documents, first objects and feature gates."""

    def __init__(self, version: str) -> None:
        self.version = version
        """The release, such as `1.33.13`."""
        self.minor: int = int(version.split(".")[1])
        self.minor_version: str = f"1.{self.minor}"

    @staticmethod
    def find(version: str = "") -> "KubernetesRelease":
        """Return the release for a version such as `1.33` or `1.33.13`, or the project's without one.

        Raise UnknownReleaseError if there is no data of it.
        """
        text = version.removeprefix("v") or RELEASE
        releases = {**BUNDLE.releases, f"1.{MINOR}": RELEASE}
        found = releases.get(text) or (text if text in releases.values() else None)
        if found is None:
            known = ", ".join(KubernetesRelease.known())
            raise UnknownReleaseError(f"unknown Kubernetes version {version!r}: known versions are {known}")
        return _release(found)

    @staticmethod
    def known() -> tuple[str, ...]:
        """Return the minor versions that can be served, the oldest first."""
        return (*BUNDLE.releases, f"1.{MINOR}")

    def load(self) -> None:
        """Read the files that a server needs to start; what is read once is kept."""
        _ = (
            self.types,
            self.discovery,
            self.bootstrap,
            self.openapi_hashes,
            self.dropped_fields,
            _features(),
        )

    @property
    def is_current(self) -> bool:
        """Return True if it is the release that the project is built on."""
        return self.version == RELEASE

    @cached_property
    def types(self) -> dict[str, Any]:
        """The Go types of all kinds that are served."""
        return self._applied("types", _read("types.json"))

    @cached_property
    def discovery(self) -> list[Any]:
        """The group versions that are served by default, with their resources."""
        return self._applied("discovery", _read("discovery.json")["groups"])

    @cached_property
    def bootstrap(self) -> list[dict[str, Any]]:
        """The roles, bindings, priority classes and flow schemas of an empty cluster."""
        return self._applied("bootstrap", msgspec.json.decode(_BOOTSTRAP.read_bytes()))

    @cached_property
    def openapi_hashes(self) -> Mapping[str, str]:
        """The hash of each OpenAPI document, by the document's path with `__` in place of slashes."""
        if not self.is_current:
            return self._differences["hashes"]
        parts = {name: name.removeprefix("openapi/").removesuffix(".json.xz") for name in BUNDLE.sha256}
        return {parts[name]: value for name, value in BUNDLE.sha256.items() if name.startswith("openapi/")}

    def openapi(self, name: str) -> bytes:
        """Return an OpenAPI v3 document by name (`api__v1`, `apis__apps__v1`); raise KeyError if there is none."""
        if name not in self.openapi_hashes:
            raise KeyError(name)
        file = _DATA / "openapi" / f"{name}.json.xz"
        data = lzma.decompress(file.read_bytes()) if file.is_file() else b"{}"
        change = None if self.is_current else self._differences["openapi"][name]
        if change is None:
            return data
        document = applied(msgspec.json.decode(data), change)
        # The bytes that the recorded hash is of.
        return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

    @cached_property
    def dropped_fields(self) -> Mapping[str, Sequence[str]]:
        """Fields that the server of the release drops because their feature gates are off, by struct."""
        if self.is_current:
            return msgspec.json.decode((_DATA / "dropped.json").read_bytes())
        return self._differences["dropped"]

    def enabled(self, gate: str) -> bool:
        """Return True if a feature gate is on by default; raise KeyError if no release has it."""
        return self.minor in _features()[gate]

    @cached_property
    def _differences(self) -> dict[str, Any]:
        return msgspec.json.decode(
            lzma.decompress((_DATA / "releases" / f"1.{self.minor}.json.xz").read_bytes())
        )

    def _applied(self, name: str, current: Any) -> Any:
        return current if self.is_current else applied(current, self._differences[name])


@cache
def _release(version: str) -> KubernetesRelease:
    return KubernetesRelease(version)


def _read(name: str) -> Any:
    return msgspec.json.decode((_DATA / name).read_bytes())


@cache
def _features() -> dict[str, list[int]]:
    return _read("features.json")


def applied(base: Any, change: Any) -> Any:
    """Return a JSON value with a difference applied that tools/release_data.py made; unchanged parts are shared."""
    if change is None:
        return base
    if "value" in change:
        return change["value"]
    if "items" in change:
        return [_element(base, item) for item in change["items"]]
    gone = change.get("without", ())
    found = {name: value for name, value in base.items() if name not in gone}
    for name, inner in change["fields"].items():
        found[name] = applied(base.get(name), inner)
    return found


def _element(base: Sequence[Any], item: Any) -> Any:
    if isinstance(item, int):
        return base[item]
    if isinstance(item, list):
        place, change = cast(list[Any], item)
        return applied(base[place], change)
    return item["value"]
