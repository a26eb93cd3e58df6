"""Kinds whose CRDs are among the documents, so that the server may not serve them yet."""

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from kubewright.api import GroupVersionKind, JsonObject, Kind
from kubewright.schema import compile_schema


class DefinedKind(NamedTuple):
    """A version of a kind as defined by its CRD."""

    kind: Kind
    schema: JsonObject

    def validation_errors(self, document: JsonObject) -> list[str]:
        """Return the validation errors of an object according to the schema only, without webhooks and policies."""
        validator, value = compile_schema(self.schema), copy.deepcopy(document)
        unknown = [f'unknown field "{field}"' for field in validator.prune(value)]
        validator.apply_defaults(value)
        return [*unknown, *map(str, validator.validate(value))]


class _Schema(msgspec.Struct):
    open_api_v3_schema: JsonObject = msgspec.field(name="openAPIV3Schema", default_factory=dict[str, Any])


class _Version(msgspec.Struct):
    name: str
    served: bool = True
    schema: _Schema = msgspec.field(default_factory=_Schema)


class _Names(msgspec.Struct):
    kind: str
    plural: str


class _Definition(msgspec.Struct):
    group: str
    names: _Names
    scope: str
    versions: list[_Version]


def defined_kinds(documents: Iterable[JsonObject]) -> Mapping[GroupVersionKind, DefinedKind]:
    """Return the kinds that CRDs among the documents define; invalid CRDs are left for the server to reject."""
    found: dict[GroupVersionKind, DefinedKind] = {}
    for document in documents:
        if document["kind"] != "CustomResourceDefinition":
            continue
        with suppress(msgspec.ValidationError):
            definition = msgspec.convert(document.get("spec"), _Definition)
            found |= {each.kind.gvk: each for each in _versions(definition)}
    return found


def _versions(definition: _Definition) -> Iterator[DefinedKind]:
    for version in definition.versions:
        if version.served:
            kind = Kind(
                group=definition.group,
                version=version.name,
                kind=definition.names.kind,
                plural=definition.names.plural,
                namespaced=definition.scope == "Namespaced",
            )
            yield DefinedKind(kind, version.schema.open_api_v3_schema)
