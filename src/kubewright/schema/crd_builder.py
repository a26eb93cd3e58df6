"""CustomResourceDefinitions from kinds, with one class for each version."""

import re
from typing import Any

from kubewright.api import Column, DeclarationError, FieldError, Kind, Object, Scale, kind_of
from kubewright.api.field_paths import path_problems
from kubewright.schema.crd_validation import check_crd
from kubewright.schema.structural import structural

_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
# CEL's error, followed by the line of the rule and a caret below the mistake.
_COMPILE_ERROR = re.compile(r"(?<!messageExpression )compilation failed: (?P<reason>.*)\n \| (?P<rule>.*)")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


def crd(*versions: type[Object], conversion: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind, given one class per version."""
    if not versions:
        raise DeclarationError("crd() needs at least one class")
    classes = sorted(versions, key=lambda cls: version_priority(kind_of(cls).version), reverse=True)
    kinds = [kind_of(cls) for cls in classes]
    stored = _stored(kinds)
    _reject_differences(kinds)
    spec: dict[str, Any] = {}
    if conversion is not None:
        spec["conversion"] = conversion
    spec["group"] = stored.group
    spec["names"] = _names(stored)
    spec["scope"] = "Namespaced" if stored.namespaced else "Cluster"
    spec["versions"] = [_version(cls, kind, kind is stored) for cls, kind in zip(classes, kinds, strict=True)]
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{stored.plural}.{stored.group}", **_metadata(classes)},
        "spec": spec,
    }
    for cls, kind in zip(classes, kinds, strict=True):
        # Another project may declare paths that its schema does not have: the API server accepts that.
        for problem in () if kind.external else path_problems(cls, kind):
            raise DeclarationError(f"{cls.__name__}: {problem}")
    for error in sorted(check_crd(document), key=_default_depth):
        raise DeclarationError(f"{stored.kind}: {_in_one_line(error)}")
    return document


def _default_depth(error: FieldError) -> float:
    """Sort bad defaults last and the innermost of them first: an object's default repeats those of its fields."""
    is_default = re.search(r"\.default\b", error.field) is not None
    return 1 / (1 + error.field.count("properties[")) if is_default else 0


def _in_one_line(error: FieldError) -> str:
    """Return the API server's message with the path that the author knows, such as `spec.size`."""
    location = error.field.rpartition("openAPIV3Schema.")[2]
    location = re.sub(r"properties\[([^\]]+)\]", r"\1", location)
    if found := _COMPILE_ERROR.search(error.detail):
        place = re.sub(r"\.(default|x-kubernetes-validations\[\d+\]\.rule)$", "", location)
        return f"{place}: the rule {found['rule']!r} does not compile: {found['reason']}"
    is_rule = location.endswith(".rule") and error.type == "FieldValueInvalid"
    message = error.detail if is_rule else error.message
    line = f"{location}: {message.partition(chr(10))[0]}"
    field = location.removesuffix(".default")
    if field == location:
        return line
    return (
        f"{line}; the default comes from the Python defaults: change them or the rule, "
        f"or make {field} required with Annotated[..., kw.Field(optional=False)]"
    )


def _metadata(classes: list[type[Object]]) -> dict[str, dict[str, str]]:
    """Return the labels and annotations that the versions declare for the CRD; newer versions take precedence."""
    found: dict[str, dict[str, str]] = {}
    for cls in reversed(classes):
        for name, values in cls.__crd_metadata__.items():
            if values:
                found.setdefault(name, {}).update(values)
    return found


def version_priority(name: str) -> tuple[int, int, int, str]:
    """Return a key that sorts versions as the API server does: v2, v1, v1beta2, v1alpha1, then other names."""
    match = _VERSION.fullmatch(name)
    if match is None:
        # Other names come last, in ascending order.
        return (-1, 0, 0, "".join(chr(0x10FFFF - ord(char)) for char in name))
    major, stability, minor = match.groups()
    return (_STABILITY[stability], int(major), int(minor or 0), "")


def _stored(kinds: list[Kind]) -> Kind:
    if len(kinds) == 1:
        return kinds[0]
    stored = [kind for kind in kinds if kind.stored]
    if len(stored) != 1:
        names = ", ".join(kind.version for kind in stored) or "none"
        kind = kinds[0].kind
        raise DeclarationError(
            f"{kind}: exactly one version must be stored, got {names}: set stored=True on one of them"
        )
    return stored[0]


def _reject_differences(kinds: list[Kind]) -> None:
    first = kinds[0]
    seen: set[str] = set()
    for kind in kinds:
        for name in ("group", "kind", "plural", "singular", "namespaced"):
            if getattr(kind, name) != getattr(first, name):
                text = (
                    f"{getattr(first, name)!r} in {first.version}, {getattr(kind, name)!r} in {kind.version}"
                )
                raise DeclarationError(
                    f"{first.kind}: {name} differs: {text}: use the same value in all versions"
                )
        if kind.version in seen:
            raise DeclarationError(
                f"{kind.kind}: two classes for version {kind.version}: pass one class per version"
            )
        seen.add(kind.version)


def _names(kind: Kind) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "categories": list(kind.categories),
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "shortNames": list(kind.short_names),
        "singular": kind.singular,
    }
    return {key: value for key, value in fields.items() if value}


def _version(cls: type[Object], kind: Kind, stored: bool) -> dict[str, Any]:
    version: dict[str, Any] = {}
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    if kind.deprecated:
        version["deprecated"] = True
        if isinstance(kind.deprecated, str):
            version["deprecationWarning"] = kind.deprecated
    version["name"] = kind.version
    version["schema"] = {"openAPIV3Schema": structural(cls)}
    if kind.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    version["served"] = kind.served
    version["storage"] = stored
    subresources: dict[str, Any] = {}
    if kind.scale is not None:
        subresources["scale"] = _scale(kind.scale)
    if kind.status:
        subresources["status"] = {}
    if subresources:
        version["subresources"] = subresources
    return version


def _column(column: Column) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "description": column.description,
        "format": column.format,
        "jsonPath": column.json_path,
        "name": column.name,
        "priority": column.priority,
        "type": column.type,
    }
    return {key: value for key, value in fields.items() if value}


def _scale(scale: Scale) -> dict[str, str]:
    fields = {
        "labelSelectorPath": scale.selector,
        "specReplicasPath": scale.spec,
        "statusReplicasPath": scale.status,
    }
    return {key: value for key, value in fields.items() if value}
