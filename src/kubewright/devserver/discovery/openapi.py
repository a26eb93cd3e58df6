"""OpenAPI documents: the built-in ones from the data bundle, those of custom resources from their schemas."""

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from kubewright.devserver.data import BUNDLE, RELEASE
from kubewright.devserver.discovery.swagger import swagger_protobuf
from kubewright.devserver.objects import JsonObject, api_version, copy, encode
from kubewright.devserver.registry.codecs import CustomCodec
from kubewright.devserver.registry.resources import ResourceRegistry, ServedResource
from kubewright.devserver.wire import TypeTable

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OBJECT_META = f"{_META}ObjectMeta"
_REF = "#/components/schemas/"
_INFO = {"title": "Kubernetes", "version": f"v{RELEASE}"}
_BODY = {"application/json": {"schema": {"type": "object"}}}
_OWNER = ("apiVersion", "kind", "name", "uid")
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


class OpenApi:
    """Serve the OpenAPI documents."""

    def __init__(self, registry: ResourceRegistry, types: TypeTable) -> None:
        self._registry = registry
        self._types = types
        self._custom: dict[str, bytes] = {}
        self._builtin: dict[str, bytes] = {}
        self._hashes: dict[str, str] = {}
        self._index = b""
        self._version2: dict[bool, bytes] = {}
        self._generation = -1

    def _refresh(self) -> None:
        if self._generation != self._registry.generation:
            self._custom.clear()
            self._version2.clear()
            self._index = b""
            self._generation = self._registry.generation

    async def index(self) -> bytes:
        """Return the paths of all documents with the hashes of their contents."""
        self._hashes = BUNDLE.sha256
        self._refresh()
        if not self._index:
            paths = {
                path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash(path)}"}
                for path in self._paths()
            }
            self._index = encode({"paths": paths})
        return self._index

    async def document(self, path: str) -> bytes | None:
        """Return the document of a path such as `apis/apps/v1`."""
        self._refresh()
        if path not in self._paths():
            return None
        if self._custom_resources(path):
            return self._custom_document(path)
        if path not in self._builtin:
            version = path.partition("/")[2]
            self._builtin[path] = await asyncio.to_thread(self._types.openapi, version)
        return self._builtin[path]

    async def tag(self, path: str) -> str:
        """Return the hash of a document's content, by which the index names it."""
        self._hashes = BUNDLE.sha256
        return self._hash(path)

    def _custom_document(self, path: str) -> bytes:
        if path not in self._custom:
            self._custom[path] = encode(custom_document(self._custom_resources(path)))
        return self._custom[path]

    def _paths(self) -> list[str]:
        found = [
            f"apis/{group}/{version}" if group else f"api/{version}"
            for group, version in self._registry.group_versions()
        ]
        return sorted(found)

    def _hash(self, path: str) -> str:
        known = self._hashes.get(f"openapi/{path.replace('/', '__')}.json.xz")
        if known:
            return known.upper()
        return hashlib.sha256(self._custom_document(path)).hexdigest().upper()

    def _custom_resources(self, path: str) -> list[ServedResource]:
        group, _, name = path.partition("/")[2].rpartition("/")
        return [item for item in self._registry.resources(group, name) if item.custom]

    async def version2(self, *, protobuf: bool = False) -> bytes:
        """Return everything as one OpenAPI v2 document, for clients that know no other."""
        self._refresh()
        generation = self._generation
        if found := self._version2.get(protobuf):
            return found
        swagger = await self._swagger()
        made = await asyncio.to_thread(swagger_protobuf, swagger) if protobuf else encode(swagger)
        if generation == self._registry.generation:
            self._version2[protobuf] = made
        return made

    async def _swagger(self) -> JsonObject:
        definitions: JsonObject = {}
        for path in self._paths():
            document: JsonObject = msgspec.json.decode(await self.document(path) or b"{}")
            definitions.update(document.get("components", {}).get("schemas", {}))
        return {
            "swagger": "2.0",
            "info": _INFO,
            "paths": {},
            "definitions": {name: _as_version2(item) for name, item in sorted(definitions.items())},
        }


def _as_version2(value: Any) -> Any:
    if isinstance(value, dict):
        found: JsonObject = {}
        for name, item in cast(JsonObject, value).items():
            if name == "allOf" and isinstance(item, list) and len(cast(list[Any], item)) == 1:
                found.update(_as_version2(item[0]))
            elif name == "$ref" and isinstance(item, str):
                found[name] = item.replace(_REF, "#/definitions/")
            elif name not in ("nullable", "oneOf", "anyOf", "not"):
                found[name] = _as_version2(item)
        return found
    if isinstance(value, list):
        return [_as_version2(item) for item in cast(list[Any], value)]
    return value


def schema_name(resource: ServedResource) -> str:
    """Return the name of a custom kind's schema: the reversed group, the version and the kind."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def custom_document(resources: list[ServedResource]) -> JsonObject:
    """Build the document of a group version of custom resources."""
    schemas: JsonObject = _meta_schemas()
    paths: JsonObject = {}
    for resource in resources:
        name = schema_name(resource)
        schemas[name] = _kind_schema(resource)
        items = {"type": "array", "items": {"$ref": f"{_REF}{name}"}}
        schemas[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "items": items},
            "x-kubernetes-group-version-kind": [{**_gvk(resource), "kind": resource.list_kind}],
        }
        paths.update(_paths_of(resource))
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def _gvk(resource: ServedResource) -> JsonObject:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _kind_schema(resource: ServedResource) -> JsonObject:
    schema: JsonObject = (
        copy(resource.codec.schema) if isinstance(resource.codec, CustomCodec) else {"type": "object"}
    )
    properties: JsonObject = schema.setdefault("properties", {})
    own: JsonObject = {
        "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
        "kind": {"type": "string", "description": "The kind of this object."},
        "metadata": {
            "description": "Standard object's metadata.",
            "allOf": [{"$ref": f"{_REF}{_OBJECT_META}"}],
        },
    }
    schema["properties"] = {**own, **{name: item for name, item in properties.items() if name not in own}}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _meta_schemas() -> JsonObject:
    text, texts = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    moment = {"type": "string", "format": "date-time"}
    number = {"type": "integer", "format": "int64"}
    flag = {"type": "boolean"}
    entries = {"type": "array", "items": {"$ref": f"{_REF}{_META}ManagedFieldsEntry"}}
    owners = {"type": "array", "items": {"$ref": f"{_REF}{_META}OwnerReference"}}
    properties = {
        _OBJECT_META: {
            "annotations": texts,
            "creationTimestamp": moment,
            "deletionGracePeriodSeconds": number,
            "deletionTimestamp": moment,
            "finalizers": {"type": "array", "items": text},
            "generateName": text,
            "generation": number,
            "labels": texts,
            "managedFields": entries,
            "name": text,
            "namespace": text,
            "ownerReferences": owners,
            "resourceVersion": text,
            "selfLink": text,
            "uid": text,
        },
        f"{_META}ManagedFieldsEntry": {
            **dict.fromkeys(("apiVersion", "fieldsType", "manager", "operation", "subresource"), text),
            "fieldsV1": {"$ref": f"{_REF}{_META}FieldsV1"},
            "time": moment,
        },
        f"{_META}FieldsV1": {},
        f"{_META}OwnerReference": {
            **dict.fromkeys(_OWNER, text),
            "blockOwnerDeletion": flag,
            "controller": flag,
        },
    }
    schemas: JsonObject = {
        name: {"type": "object", "properties": fields} for name, fields in properties.items()
    }
    schemas[f"{_META}OwnerReference"]["required"] = list(_OWNER)
    return schemas


def _paths_of(resource: ServedResource) -> JsonObject:
    base = f"/apis/{api_version(resource.group, resource.version)}"
    if resource.namespaced:
        base = f"{base}/namespaces/{{namespace}}"
    one = f"{base}/{resource.plural}/{{name}}"
    found: JsonObject = {
        f"{base}/{resource.plural}": dict(_operations(resource, {"get": "list", "post": "post"}))
    }
    found[one] = dict(
        _operations(resource, {"get": "get", "put": "put", "patch": "patch", "delete": "delete"})
    )
    for part in resource.subresources:
        found[f"{one}/{part}"] = dict(_operations(resource, {"get": "get", "put": "put", "patch": "patch"}))
    return found


def _operations(resource: ServedResource, methods: dict[str, str]) -> Iterator[tuple[str, JsonObject]]:
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS]
    for method, action in methods.items():
        operation: JsonObject = {
            "responses": {"200": {"description": "OK", "content": _BODY}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _gvk(resource),
        }
        if method in ("post", "put", "patch"):
            operation["parameters"] = parameters
            operation["requestBody"] = {"content": _BODY}
        yield method, operation
