"""OpenAPI documents: the built-in ones from the data bundle, those of custom resources from their schemas."""

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from kubewright.devserver.discovery.swagger import swagger_protobuf
from kubewright.devserver.objects import JsonObject, api_version, copy, encode, is_object
from kubewright.devserver.registry.codecs import CustomCodec
from kubewright.devserver.registry.resources import ResourceRegistry, ServedResource
from kubewright.devserver.wire import TypeTable

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SMALLEST = "scheduling.k8s.io/v1"
_SHARED = (
    "DeleteOptions",
    "FieldsV1",
    "ListMeta",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "Patch",
    "Preconditions",
    "ShardInfo",
    "Status",
    "StatusCause",
    "StatusDetails",
    "Time",
)
_REF = "#/components/schemas/"
_BODY = {"application/json": {"schema": {"type": "object"}}}
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


class OpenApi:
    """Serve the OpenAPI documents."""

    def __init__(self, registry: ResourceRegistry, types: TypeTable) -> None:
        self._registry = registry
        self._types = types
        self._info: JsonObject = {"title": "Kubernetes", "version": f"v{types.release.version}"}
        self._custom: dict[str, bytes] = {}
        self._builtin: dict[str, bytes] = {}
        self._hashes = types.release.openapi_hashes
        self._index = b""
        self._version2: dict[bool, bytes] = {}
        self._generation = -1
        self._shared: JsonObject = {}

    async def _load_shared(self) -> None:
        """Read the schemas that all groups have from the smallest built-in document."""
        if not self._shared:
            document = msgspec.json.decode(await asyncio.to_thread(self._types.openapi, _SMALLEST))
            schemas: JsonObject = document["components"]["schemas"]
            names = [name for short in _SHARED if (name := f"{_META}{short}") in schemas]
            self._shared = {name: schemas[name] for name in names}
            kinds = self._shared[f"{_META}DeleteOptions"]["x-kubernetes-group-version-kind"]
            self._shared[f"{_META}DeleteOptions"]["x-kubernetes-group-version-kind"] = kinds[:1]

    def _refresh(self) -> None:
        if self._generation != self._registry.generation:
            self._custom.clear()
            self._version2.clear()
            self._index = b""
            self._generation = self._registry.generation

    async def index(self) -> bytes:
        """Return the paths of all documents with the hashes of their contents."""
        await self._load_shared()
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
        await self._load_shared()
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
        await self._load_shared()
        return self._hash(path)

    def _custom_document(self, path: str) -> bytes:
        if path not in self._custom:
            document = custom_document(self._custom_resources(path), self._shared, self._info)
            self._custom[path] = encode(document)
        return self._custom[path]

    def _paths(self) -> list[str]:
        found = [
            f"apis/{group}/{version}" if group else f"api/{version}"
            for group, version in self._registry.group_versions()
        ]
        return sorted(found)

    def _hash(self, path: str) -> str:
        known = self._hashes.get(path.replace("/", "__"))
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
            for name, schema in document.get("components", {}).get("schemas", {}).items():
                definitions[name] = _as_version2(schema)
            for resource in self._custom_resources(path):
                definitions[schema_name(resource)] = _kind_schema_version2(resource)
        return {
            "swagger": "2.0",
            "info": self._info,
            "paths": {},
            "definitions": dict(sorted(definitions.items())),
        }


def _as_version2(value: Any) -> Any:
    if isinstance(value, dict):
        found: JsonObject = {}
        for name, item in cast(JsonObject, value).items():
            if name == "properties" and is_object(item):
                # Properties may have the names of keywords.
                found[name] = {key: _as_version2(part) for key, part in item.items()}
            elif name == "allOf" and isinstance(item, list) and len(cast(list[Any], item)) == 1:
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


def custom_document(
    resources: list[ServedResource], shared: JsonObject, information: JsonObject
) -> JsonObject:
    """Build the document of a group version of custom resources; `shared` are the schemas of metadata and options."""
    schemas: JsonObject = dict(shared)
    paths: JsonObject = {}
    for resource in resources:
        name = schema_name(resource)
        schemas[name] = _kind_schema(resource)
        items = {"type": "array", "items": {"$ref": f"{_REF}{name}"}}
        schemas[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": _reference("Standard list metadata.", "ListMeta"),
                "items": items,
            },
            "x-kubernetes-group-version-kind": [{**_gvk(resource), "kind": resource.list_kind}],
        }
        paths.update(_paths_of(resource))
    return {"openapi": "3.0.0", "info": information, "paths": paths, "components": {"schemas": schemas}}


def _gvk(resource: ServedResource) -> JsonObject:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _kind_schema(resource: ServedResource) -> JsonObject:
    schema: JsonObject = (
        copy(resource.codec.schema) if isinstance(resource.codec, CustomCodec) else {"type": "object"}
    )
    _complete(schema)
    return _named_schema(resource, schema)


def _named_schema(resource: ServedResource, schema: JsonObject) -> JsonObject:
    """Return a kind's schema with the fields that all kinds have."""
    own: JsonObject = {
        "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
        "kind": {"type": "string", "description": "The kind of this object."},
        "metadata": _reference("Standard object's metadata.", "ObjectMeta"),
    }
    properties: JsonObject = schema.get("properties", {})
    schema["properties"] = {**own, **{name: item for name, item in properties.items() if name not in own}}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _reference(description: str, name: str) -> JsonObject:
    return {"description": description, "allOf": [{"$ref": f"{_REF}{_META}{name}"}]}


def _parts(schema: JsonObject) -> Iterator[JsonObject]:
    """Yield the schemas of the values in an object or a list."""
    properties: dict[str, Any] = schema.get("properties") or {}
    for part in (*properties.values(), schema.get("items"), schema.get("additionalProperties")):
        if is_object(part):
            yield part


def _complete(schema: JsonObject) -> None:
    """Write down what the extensions of a schema imply."""
    for part in _parts(schema):
        _complete(part)
    if schema.get("x-kubernetes-int-or-string") and "anyOf" not in schema:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource"):
        schema["properties"] = {
            **(schema.get("properties") or {}),
            "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
            "kind": {"type": "string", "description": "The kind of this object."},
            "metadata": _reference("Standard object's metadata.", "ObjectMeta"),
        }
        required: list[str] = list(schema.get("required") or ())
        schema["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]


def _kind_schema_version2(resource: ServedResource) -> JsonObject:
    """Return a custom kind's schema for OpenAPI v2, where kubectl would refuse fields that are not listed."""
    schema: JsonObject = (
        copy(resource.codec.schema) if isinstance(resource.codec, CustomCodec) else {"type": "object"}
    )
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object", "x-kubernetes-group-version-kind": [_gvk(resource)]}
    _simplify(schema)
    return _as_version2(_named_schema(resource, schema))


def _simplify(schema: JsonObject) -> None:
    """Remove what OpenAPI v2, or kubectl's reading of it, does not have."""
    for name in ("allOf", "anyOf", "oneOf", "not", "default"):
        schema.pop(name, None)
    nullable, open_ended = schema.pop("nullable", False), schema.get("x-kubernetes-preserve-unknown-fields")
    if nullable or open_ended:
        for name in ("items", "properties"):
            schema.pop(name, None)
    untyped = nullable or (open_ended and schema.get("type") == "object")
    if untyped or (schema.get("type") == "array" and "items" not in schema):
        schema.pop("type", None)
    properties: dict[str, Any] = schema.get("properties") or {}
    required = [name for name in schema.get("required") or () if not properties.get(name, {}).get("nullable")]
    schema.pop("required", None)
    additional = schema.get("additionalProperties")
    if required and not (is_object(additional) and additional.get("nullable")):
        schema["required"] = required
    for part in _parts(schema):
        _simplify(part)
    if schema.get("x-kubernetes-embedded-resource") and not open_ended:
        schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
        schema["properties"] = {
            **(schema.get("properties") or {}),
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": _reference("Standard object's metadata.", "ObjectMeta"),
        }


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
