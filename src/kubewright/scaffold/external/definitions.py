"""Read the versions that CustomResourceDefinitions declare."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from kubewright.api import JsonObject, KubewrightError

_GROUP = "apiextensions.k8s.io/"
APPROVAL = "api-approved.kubernetes.io"
_SUPPORTED = f"{_GROUP}v1"


class DefinitionError(KubewrightError):
    """A CRD cannot be turned into classes."""


class _Names(msgspec.Struct, rename="camel"):
    kind: str
    plural: str
    singular: str = ""
    list_kind: str = ""
    short_names: list[str] = []
    categories: list[str] = []


class _Schema(msgspec.Struct):
    open_api: JsonObject = msgspec.field(name="openAPIV3Schema", default_factory=dict[str, Any])


class _Scale(msgspec.Struct, rename="camel"):
    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str = ""


class _Subresources(msgspec.Struct):
    status: JsonObject | None = None
    scale: _Scale | None = None


class _Selectable(msgspec.Struct, rename="camel"):
    json_path: str


class _Version(msgspec.Struct, rename="camel"):
    name: str
    served: bool
    storage: bool
    schema: _Schema = msgspec.field(default_factory=_Schema)
    subresources: _Subresources = msgspec.field(default_factory=_Subresources)
    selectable_fields: list[_Selectable] = []
    deprecated: bool = False
    deprecation_warning: str = ""


class _Spec(msgspec.Struct):
    group: str
    names: _Names
    scope: str
    versions: list[_Version]


class ExternalVersion(NamedTuple):
    """One served version of a kind, as its CRD declares it."""

    group: str
    names: _Names
    namespaced: bool
    version: _Version
    alone: bool
    """True if the CRD has no other version."""
    approval: str
    """The annotation that the server requires of CRDs in groups of Kubernetes."""

    @property
    def schema(self) -> JsonObject:
        """The schema of the whole object."""
        return self.version.schema.open_api

    def __str__(self) -> str:
        return f"{self.names.kind} of {self.group}/{self.version.name}"


class Definitions(NamedTuple):
    """The versions to write classes for, and why others were left out."""

    versions: list[ExternalVersion]
    skipped: list[str]


def read_definitions(documents: Iterable[JsonObject]) -> Definitions:
    """Return the served versions of the CRDs among the documents, sorted; other objects are ignored.

    Raise DefinitionError if a CRD is malformed or two of them declare the same version of a kind.
    """
    found: dict[tuple[str, str, str], ExternalVersion] = {}
    skipped: list[str] = []
    for document in documents:
        if document.get("kind") != "CustomResourceDefinition":
            continue
        name = document["metadata"]["name"]
        if not str(document.get("apiVersion")).startswith(_GROUP):
            continue
        if document["apiVersion"] != _SUPPORTED:
            raise DefinitionError(
                f"CustomResourceDefinition {name} is {document['apiVersion']}: only {_SUPPORTED} is supported"
            )
        for each in _versions(document):
            if not each.version.served:
                skipped.append(f"{each}: the version is not served")
            elif not _has_fields(each.schema):
                skipped.append(f"{each}: its schema declares no fields; use it as a kw.Kind")
            elif found.setdefault((each.group, each.version.name, each.names.kind), each) is not each:
                raise DefinitionError(f"{each} is declared by two of the given CRDs: pass one of them")
    return Definitions([found[key] for key in sorted(found)], skipped)


def _versions(document: JsonObject) -> list[ExternalVersion]:
    metadata: JsonObject = document["metadata"]
    try:
        read = msgspec.convert(document.get("spec"), _Spec)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"CustomResourceDefinition {metadata['name']}: spec: {error}") from None
    alone = len(read.versions) == 1
    annotations: JsonObject = metadata.get("annotations") or {}
    approval = str(annotations.get(APPROVAL, ""))
    return [
        ExternalVersion(read.group, read.names, read.scope == "Namespaced", version, alone, approval)
        for version in read.versions
    ]


def _has_fields(schema: JsonObject) -> bool:
    properties: JsonObject = schema.get("properties") or {}
    return bool(properties.keys() - {"apiVersion", "kind", "metadata"})
