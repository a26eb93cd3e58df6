"""The files of a new kind, or of a further version of one, and the code that registers it with the operator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubewright.api import plural_of
from kubewright.generate import plain_yaml
from kubewright.scaffold.naming import controller_name, module_name, variable_name, version_class
from kubewright.scaffold.source import class_parts, import_line
from kubewright.scaffold.texts import fill


@dataclass(frozen=True, slots=True)
class Addition:
    """New files, and the names to import into the operator's module and to pass to its Operator."""

    files: dict[str, str]
    module: str
    controllers: list[str] = field(default_factory=list[str])
    webhooks: list[str] = field(default_factory=list[str])
    kinds: list[str] = field(default_factory=list[str])

    @property
    def names(self) -> list[str]:
        """Return the names to import."""
        return [*self.controllers, *self.webhooks, *self.kinds]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A version of a kind in the project: the module and the name of its class."""

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool
    module: str
    class_name: str
    spec: str
    status: str
    scale: bool
    """Whether `kubectl scale` may change it."""
    example: Mapping[str, Any]
    """A spec that is valid according to its schema."""


def kind_files(
    package: str, *, group: str, version: str, kind: str, plural: str = "", namespaced: bool = True
) -> Addition:
    """Write a kind with its controller, its test and its sample."""
    module, controller = module_name(kind), controller_name(kind)
    is_irregular = plural and plural != plural_of(kind)
    values = {
        "package": package,
        "module": module,
        "kind": kind,
        "group": group,
        "version": version,
        "plural_line": f'\n    plural="{plural}",' if is_irregular else "",
        "variable": variable_name(kind),
        "controller": controller,
    }
    which = "kind" if namespaced else "cluster_kind"
    files = {
        f"{package}/{module}.py": fill(f"{which}.py", **values),
        f"tests/test_{module}.py": fill(f"test_{which}.py", **values),
        f"samples/{module}.yaml": _sample(group, version, kind, {"message": "hello"}),
    }
    return Addition(files, f"{package}.{module}", controllers=[controller])


# Keywords that each version declares for itself.
_OF_ONE_VERSION = frozenset({"kind", "version", "stored", "served", "deprecated"})


def version_files(package: str, *, version: str, old: Declared, source: str) -> Addition:
    """Write a further version of a kind: a copy of the version in the given source, for the author to change."""
    class_name, module = version_class(old.kind, version), f"{module_name(old.kind)}_{version}"
    parts = class_parts(source, old.class_name)
    kept = {word: text for word, text in parts.keywords.items() if word not in _OF_ONE_VERSION}
    text = fill(
        "version.py",
        package=package,
        kind=old.kind,
        version=version,
        class_name=class_name,
        old_version=old.version,
        old_import=import_line(old.module, {old.spec, old.status, *parts.names}),
        old_spec=old.spec,
        old_status=old.status,
        keywords="\n".join(f"    {word}={text}," for word, text in kept.items()),
        docstring=parts.docstring or f'"""A {old.kind}."""',
    )
    files = {
        f"{package}/{module}.py": text,
        f"samples/{module}.yaml": _sample(
            old.group, version, old.kind, old.example, f"{old.kind.lower()}-{version}-sample"
        ),
    }
    return Addition(files, f"{package}.{module}", kinds=[class_name])


def _sample(group: str, version: str, kind: str, spec: Mapping[str, Any], name: str = "") -> str:
    name = name or f"{kind.lower()}-sample"
    return plain_yaml(
        {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
    )
