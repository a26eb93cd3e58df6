"""Find the class of each kind that a kopf operator handles: generated from a CRD, or built in."""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from kubewright.api import JsonObject, Kind, builtin, kind_of
from kubewright.scaffold.external import ExternalVersion, external_modules, read_definitions
from kubewright.scaffold.from_kopf.reading import KindName, KopfError

PACKAGE = "kinds"
"""The package of the generated classes inside the project's package."""


class KindClass(NamedTuple):
    """A kind and how code refers to it."""

    kind: Kind
    reference: str
    module: str
    """The module to import; the first word of the reference is imported from it."""
    is_typed: bool = True
    """False for a kind without a class: its objects are dictionaries."""

    @property
    def imports(self) -> tuple[str, str]:
        """Return the module and the name to import from it."""
        return self.module, self.reference.partition(".")[0]

    @property
    def annotation(self) -> str:
        """Return the type of its objects."""
        return self.reference if self.is_typed else "dict[str, Any]"


class Kinds:
    """The kinds of the given CRDs and the built-in ones."""

    def __init__(self, package: str, documents: Sequence[JsonObject]) -> None:
        definitions = read_definitions(documents)
        self.files: dict[str, str] = {
            f"{package}/{PACKAGE}/{name}": text
            for name, text in external_modules(definitions.versions).items()
        }
        modules = _modules_of(self.files)
        self._own = [
            KindClass(_kind(each), each.names.kind, modules[each.names.kind, each.version.name])
            for each in definitions.versions
        ]
        self._names = {
            id(known): _all_names(each) for known, each in zip(self._own, definitions.versions, strict=True)
        }
        self._stored = {
            id(known): each.version.storage
            for known, each in zip(self._own, definitions.versions, strict=True)
        }
        self._package = package
        self._untyped(documents, {(known.kind.group, known.kind.kind) for known in self._own})

    def find(self, name: KindName) -> KindClass | None:
        """Return the class of a kind; of several versions the named one, or the stored one."""
        fitting = [
            known
            for known in self._own
            if name.name in self._names[id(known)]
            and name.group in (None, known.kind.group)
            and name.version in (None, known.kind.version)
        ]
        fitting.sort(key=lambda known: not self._stored[id(known)])
        return fitting[0] if fitting else _builtin_kind(name)

    def _untyped(self, documents: Sequence[JsonObject], typed: set[tuple[str, str]]) -> None:
        """Add a `kw.Kind` for each CRD whose schema declares no fields."""
        lines: list[str] = []
        for document in documents:
            spec = document.get("spec", {})
            if (
                document.get("kind") != "CustomResourceDefinition"
                or (spec["group"], spec["names"]["kind"]) in typed
            ):
                continue
            version = next((each for each in spec["versions"] if each.get("storage")), spec["versions"][0])
            names, reference = (
                spec["names"],
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", spec["names"]["kind"]).upper(),
            )
            has_status = "status" in (version.get("subresources") or {})
            kind = Kind(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                namespaced=spec["scope"] == "Namespaced",
                status=has_status,
            )
            known = KindClass(kind, reference, f"{self._package}.{PACKAGE}.untyped", is_typed=False)
            self._own.append(known)
            self._names[id(known)] = {
                names["plural"],
                names.get("singular") or names["kind"].lower(),
                names["kind"],
            }
            self._stored[id(known)] = True
            words = {"group": kind.group, "version": kind.version, "kind": kind.kind, "plural": kind.plural}
            inner = "".join(f'    {word}="{text}",\n' for word, text in words.items())
            lines.append(
                f"{reference} = kw.Kind(\n{inner}    namespaced={kind.namespaced},\n    status={has_status},\n)\n"
            )
        if lines:
            head = '"""Kinds whose CRDs declare no fields: their objects are dictionaries."""\n\nimport kubewright as kw\n\n'
            self.files[f"{self._package}/{PACKAGE}/untyped.py"] = head + "".join(lines)


@cache
def builtin_kinds() -> tuple[KindClass, ...]:
    """Return the built-in kinds, newer versions of a kind first."""
    return tuple(sorted(_walk_builtin(), key=lambda known: known.reference, reverse=True))


def builtin_by_kind(kind: str) -> KindClass | None:
    """Return the built-in kind of this name."""
    return next((known for known in builtin_kinds() if known.kind.kind == kind), None)


def require(kinds: Kinds, name: KindName, where: str) -> KindClass:
    """Return the class of a kind; raise KopfError, with the option to pass, if there is none."""
    found = kinds.find(name)
    if found is None:
        raise KopfError(f"{where}: no CRD declares the kind {name}: pass its CRD with -f FILE")
    return found


def _builtin_kind(name: KindName) -> KindClass | None:
    for known in builtin_kinds():
        kind = known.kind
        if name.name not in (kind.plural, kind.singular, kind.kind, *kind.short_names):
            continue
        if name.group in (None, kind.group) and name.version in (None, kind.version):
            return known
    return None


def _walk_builtin() -> Iterator[KindClass]:
    for found in pkgutil.iter_modules(builtin.__path__):
        module = importlib.import_module(f"{builtin.__name__}.{found.name}")
        for name in module.__all__:
            value = getattr(module, name)
            if value.__module__.startswith(module.__name__) and hasattr(value, "__kind__"):
                kind = kind_of(value)
                if kind.kind == name:
                    yield KindClass(kind, f"{found.name}.{name}", builtin.__name__)


def _kind(version: ExternalVersion) -> Kind:
    names = version.names
    return Kind(
        group=version.group,
        version=version.version.name,
        kind=names.kind,
        plural=names.plural,
        namespaced=version.namespaced,
        status=version.version.subresources.status is not None,
    )


def _all_names(version: ExternalVersion) -> set[str]:
    names = version.names
    return {names.kind, names.plural, names.singular or names.kind.lower(), *names.short_names}


def _modules_of(files: dict[str, str]) -> dict[tuple[str, str], str]:
    """Return the module of each generated kind by kind and version."""
    found: dict[tuple[str, str], str] = {}
    for path, text in files.items():
        module = path.removesuffix(".py").replace("/", ".")
        for match in re.finditer(r"^class (\w+)\(([^:]*?)\):$", text, re.MULTILINE | re.DOTALL):
            version = re.search(r'version="([^"]+)"', match[2])
            if version:
                found[match[1], version[1]] = module
    return found
