"""Every verb as a pure function that returns a request; nothing is sent here."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, TypedDict, cast
from urllib.parse import quote, urlencode

import msgspec

from kubewright.api import (
    InvalidRequest,
    JsonObject,
    Kind,
    Object,
    encode,
    kind_of,
    status_wire,
    to_wire,
)
from kubewright.api.meta import Propagation

PatchType = Literal["json", "merge", "strategic", "apply"]
FieldValidation = Literal["", "Ignore", "Warn", "Strict"]

JSON = "application/json"
TEXT = "text/plain, application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PATCH_TYPES: Mapping[PatchType, str] = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PLAIN = re.compile(r"[A-Za-z0-9._:-]+")
LIST_TIMEOUT = 60.0
"""The server's limit for requests other than watches."""


class ListOptions(TypedDict, total=False):
    """Options of a list or watch: namespace, selectors and resourceVersion.

    `shard_selector` is the `shardSelector` of KEP-5866. A server that does not know it, or has the feature gate
    ShardedListAndWatch off, ignores it and sends all objects.
    """

    namespace: str
    labels: str
    fields: str
    resource_version: str
    shard_selector: str


class WriteOptions(TypedDict, total=False):
    """Options of every write: field manager, dry run, and field validation."""

    field_manager: str
    dry_run: bool
    field_validation: FieldValidation


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One HTTP request, with its verb and its object.

    `retry_safe`: sending it twice does no harm, so it is retried when a connection breaks. True for reads, dry
    runs, server-side apply (which is idempotent), updates and patches with a resourceVersion (the first copy changes
    it, so the second is rejected) and deletes with a uid or a resourceVersion. Every other write is retried only if
    it is certain that it was not sent.
    `honor_retry_after`: wait and retry when the server responds with 429 or 503 and Retry-After.
    """

    method: str
    path: str
    verb: str
    query: str = ""
    body: bytes = b""
    content_type: str = ""
    accept: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 0.0
    retry_safe: bool = False
    honor_retry_after: bool = True
    resource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def object(self) -> str:
        """Return the object of the request for messages: `configmaps default/a`."""
        key = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name or self.namespace
        return f"{self.resource or self.path} {key}".rstrip()


def get(
    kind: Kind, name: str, namespace: str = "", *, subresource: str = "", resource_version: str = ""
) -> ApiRequest:
    """Read one object."""
    return ApiRequest(
        method="GET",
        path=object_path(kind, name, namespace, subresource),
        query=_query(resourceVersion=resource_version) if resource_version else "",
        verb="get",
        retry_safe=True,
        resource=_resource(kind, subresource),
        namespace=namespace,
        name=name,
    )


def list_page(
    kind: Kind,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    resource_version: str = "",
    resource_version_match: str = "",
    limit: int = 0,
    continue_token: str = "",
    shard_selector: str = "",
    metadata_only: bool = False,
) -> ApiRequest:
    """Read one page of a collection; a continue token includes the version, so the two cannot be combined."""
    return ApiRequest(
        method="GET",
        path=collection_path(kind, namespace),
        accept=METADATA_LIST if metadata_only else JSON,
        query=_query(
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion="" if continue_token else resource_version,
            resourceVersionMatch="" if continue_token else resource_version_match,
            limit=str(limit) if limit else "",
            shardSelector=shard_selector,
            **{"continue": continue_token},
        ),
        verb="list",
        timeout=LIST_TIMEOUT,
        retry_safe=True,
        resource=kind.resource,
        namespace=namespace,
    )


def watch(
    kind: Kind,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    resource_version: str = "",
    initial_events: bool = False,
    timeout_seconds: int = 0,
    shard_selector: str = "",
    metadata_only: bool = False,
) -> ApiRequest:
    """Watch a collection from a version on, or with its current state as initial events.

    429 and 503 are not retried here: the caller must know about the gap.
    """
    return ApiRequest(
        method="GET",
        path=collection_path(kind, namespace),
        accept=METADATA if metadata_only else JSON,
        query=_query(
            watch="true",
            allowWatchBookmarks="true",
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion=resource_version,
            sendInitialEvents="true" if initial_events else "",
            resourceVersionMatch="NotOlderThan" if initial_events else "",
            timeoutSeconds=str(timeout_seconds) if timeout_seconds else "",
            shardSelector=shard_selector,
        ),
        verb="watch",
        retry_safe=True,
        honor_retry_after=False,
        resource=kind.resource,
        namespace=namespace,
    )


def create(
    obj: Object | JsonObject,
    kind: Kind | None = None,
    *,
    field_manager: str = "",
    dry_run: bool = False,
    field_validation: FieldValidation = "",
) -> ApiRequest:
    """Create an object; the server generates the name from generateName if there is no name."""
    kind, name, namespace = _identify(obj, kind)
    return ApiRequest(
        method="POST",
        path=collection_path(kind, _needed_namespace(kind, namespace)),
        query=_write_query(field_manager, dry_run, field_validation),
        body=_body(obj, kind),
        content_type=JSON,
        verb="create",
        retry_safe=dry_run,
        resource=kind.resource,
        namespace=namespace,
        name=name,
    )


def replace(
    obj: Object | JsonObject,
    kind: Kind | None = None,
    *,
    subresource: str = "",
    field_manager: str = "",
    dry_run: bool = False,
    field_validation: FieldValidation = "",
) -> ApiRequest:
    """Replace an object (PUT); fields that its class does not know are lost."""
    kind, name, namespace = _identify(obj, kind)
    return ApiRequest(
        method="PUT",
        path=object_path(kind, name, namespace, subresource),
        query=_write_query(field_manager, dry_run, field_validation),
        body=_body(obj, kind),
        content_type=JSON,
        verb="update",
        retry_safe=dry_run or _names_version(_resource_version(obj)),
        resource=_resource(kind, subresource),
        namespace=namespace,
        name=name,
    )


def patch(
    kind: Kind,
    name: str,
    namespace: str,
    document: Any,
    *,
    type: PatchType = "merge",  # noqa: A002 (the word of the whole API)
    subresource: str = "",
    field_manager: str = "",
    force: bool = False,
    dry_run: bool = False,
    field_validation: FieldValidation = "",
) -> ApiRequest:
    """Patch an object with one of the four patch types; `document` is the patch as a value or as JSON bytes."""
    if type not in PATCH_TYPES:
        raise InvalidRequest(f"patch {kind.resource} {name}: type={type!r}: use {', '.join(PATCH_TYPES)}")
    if type == "apply" and not field_manager:
        raise InvalidRequest(f"apply {kind.resource} {name}: name a field manager")
    query = _write_query(field_manager, dry_run, field_validation)
    return ApiRequest(
        method="PATCH",
        path=object_path(kind, name, namespace, subresource),
        query=f"{query}&force=true" if force and type == "apply" else query,
        body=document if isinstance(document, bytes) else msgspec.json.encode(document),
        content_type=PATCH_TYPES[type],
        verb="patch",
        retry_safe=dry_run or type == "apply" or _is_locked(document),
        resource=_resource(kind, subresource),
        namespace=namespace,
        name=name,
    )


def apply(
    obj: Object | JsonObject,
    kind: Kind | None = None,
    *,
    field_manager: str,
    force: bool = True,
    subresource: str = "",
    dry_run: bool = False,
    field_validation: FieldValidation = "",
) -> ApiRequest:
    """Apply an object (server-side apply); fields that this manager applied before and not now are removed."""
    kind, name, namespace = _identify(obj, kind)
    return patch(
        kind,
        name,
        namespace,
        _applied(obj, kind, subresource),
        type="apply",
        subresource=subresource,
        field_manager=field_manager,
        force=force,
        dry_run=dry_run,
        field_validation=field_validation,
    )


def delete(
    kind: Kind,
    name: str,
    namespace: str = "",
    *,
    uid: str = "",
    resource_version: str = "",
    propagation: Propagation = "",
    grace_period_seconds: int | None = None,
    dry_run: bool = False,
) -> ApiRequest:
    """Delete an object, optionally with a uid or resourceVersion as precondition."""
    return ApiRequest(
        method="DELETE",
        path=object_path(kind, name, namespace),
        body=msgspec.json.encode(
            delete_options(uid, resource_version, propagation, grace_period_seconds, dry_run)
        ),
        content_type=JSON,
        verb="delete",
        retry_safe=dry_run or bool(uid or resource_version),
        resource=kind.resource,
        namespace=namespace,
        name=name,
    )


def delete_collection(
    kind: Kind,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    propagation: Propagation = "",
    grace_period_seconds: int | None = None,
    dry_run: bool = False,
) -> ApiRequest:
    """Delete the objects of a kind in a namespace that the selectors match."""
    return ApiRequest(
        method="DELETE",
        path=collection_path(kind, _needed_namespace(kind, namespace)),
        query=_query(labelSelector=labels, fieldSelector=fields),
        body=msgspec.json.encode(delete_options("", "", propagation, grace_period_seconds, dry_run)),
        content_type=JSON,
        verb="deletecollection",
        timeout=LIST_TIMEOUT,
        retry_safe=dry_run,
        resource=kind.resource,
        namespace=namespace,
    )


def post_subresource(
    kind: Kind, name: str, namespace: str, subresource: str, document: Any, *, honor_retry_after: bool = True
) -> ApiRequest:
    """Post to a subresource such as eviction or token."""
    return ApiRequest(
        method="POST",
        path=object_path(kind, name, namespace, subresource),
        body=msgspec.json.encode(document),
        content_type=JSON,
        verb="create",
        honor_retry_after=honor_retry_after,
        resource=_resource(kind, subresource),
        namespace=namespace,
        name=name,
    )


def logs(kind: Kind, name: str, namespace: str, options: Mapping[str, str]) -> ApiRequest:
    """Read the logs of a Pod's container."""
    return ApiRequest(
        method="GET",
        path=object_path(kind, name, namespace, "log"),
        query=_query(**options),
        accept=TEXT,
        verb="get",
        retry_safe=True,
        resource=_resource(kind, "log"),
        namespace=namespace,
        name=name,
    )


def port_forward(
    kind: Kind, name: str, namespace: str, port: int, headers: tuple[tuple[str, str], ...]
) -> ApiRequest:
    """Open a WebSocket to a port of a Pod; `headers` are those of the handshake."""
    return ApiRequest(
        method="GET",
        path=object_path(kind, name, namespace, "portforward"),
        query=_query(ports=str(port)),
        headers=headers,
        verb="get",
        retry_safe=True,
        resource=_resource(kind, "portforward"),
        namespace=namespace,
        name=name,
    )


def get_path(path: str, *, accept: str = JSON, headers: tuple[tuple[str, str], ...] = ()) -> ApiRequest:
    """Read a path that is not an object: discovery, version, OpenAPI."""
    return ApiRequest(
        method="GET", path=quote(path, safe="/:"), accept=accept, headers=headers, verb="get", retry_safe=True
    )


def delete_options(
    uid: str, resource_version: str, propagation: str, grace_period_seconds: int | None, dry_run: bool
) -> JsonObject:
    """Return DeleteOptions, as used by deletions and evictions."""
    options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": uid, "resourceVersion": resource_version}
    if uid or resource_version:
        options["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if propagation:
        options["propagationPolicy"] = propagation
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return options


@lru_cache(maxsize=1024)
def collection_path(kind: Kind, namespace: str = "") -> str:
    """Return the path of a kind's objects, in one namespace or in all."""
    if not namespace:
        return f"{kind.path}/{kind.plural}"
    if not kind.namespaced:
        raise InvalidRequest(f"{kind.kind} is cluster-scoped: leave out the namespace {namespace!r}")
    return f"{kind.path}/namespaces/{_segment(namespace, 'namespace', kind)}/{kind.plural}"


def object_path(kind: Kind, name: str, namespace: str = "", subresource: str = "") -> str:
    """Return the path of one object or of a subresource of it."""
    path = f"{collection_path(kind, _needed_namespace(kind, namespace))}/{_segment(name, 'name', kind)}"
    return f"{path}/{_segment(subresource, 'subresource', kind)}" if subresource else path


def _needed_namespace(kind: Kind, namespace: str) -> str:
    if kind.namespaced and not namespace:
        raise InvalidRequest(f"{kind.kind} is namespaced: give a namespace")
    return namespace


def _segment(value: str, what: str, kind: Kind) -> str:
    """Raise InvalidRequest for a text that is not a path segment, as the server does."""
    if not value:
        raise InvalidRequest(f"the {what} of the {kind.kind} is missing")
    if "/" in value or "%" in value or value in (".", ".."):
        raise InvalidRequest(f"{value!r} cannot be the {what} of a {kind.kind}: no '/' or '%' may be in it")
    return value if _PLAIN.fullmatch(value) else quote(value, safe=":@!$&'()*+,;=")


def _resource(kind: Kind, subresource: str) -> str:
    if not subresource:
        return kind.resource
    return f"{kind.plural}/{subresource}.{kind.group}" if kind.group else f"{kind.plural}/{subresource}"


def _query(**parameters: str) -> str:
    return urlencode({name: value for name, value in parameters.items() if value})


@lru_cache(maxsize=64)
def _write_query(field_manager: str, dry_run: bool, field_validation: str) -> str:
    if not (field_manager or dry_run or field_validation):
        return ""
    return _query(
        fieldManager=field_manager, dryRun="All" if dry_run else "", fieldValidation=field_validation
    )


def _identify(obj: Object | JsonObject, kind: Kind | None) -> tuple[Kind, str, str]:
    if not isinstance(obj, dict):
        return kind or kind_of(obj), obj.metadata.name, obj.metadata.namespace
    if kind is None:
        raise InvalidRequest("an object given as a dictionary needs its Kind")
    metadata: JsonObject = obj.get("metadata") or {}
    return kind, metadata.get("name", ""), metadata.get("namespace", "")


def _body(obj: Object | JsonObject, kind: Kind) -> bytes:
    if not isinstance(obj, dict):
        return encode(obj)
    return msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.kind, **obj})


def _applied(obj: Object | JsonObject, kind: Kind, subresource: str) -> bytes:
    """Return the document of an apply: without managedFields, and with a status only for its subresource."""
    if not isinstance(obj, dict):
        if subresource == "status":
            return encode(status_wire(obj))
        obj = to_wire(obj, without_status=kind.status and not subresource)
    metadata: JsonObject = obj.get("metadata") or {}
    if "managedFields" in metadata:
        obj = {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
    return _body(obj, kind)


def _resource_version(obj: Object | JsonObject) -> str:
    if not isinstance(obj, dict):
        return obj.metadata.resource_version
    metadata: JsonObject = obj.get("metadata") or {}
    return metadata.get("resourceVersion", "")


def _names_version(value: Any) -> bool:
    """Return True if a write with this resourceVersion is rejected once the object has changed.

    Servers treat "" and "0" as no version.
    """
    return isinstance(value, str) and value not in ("", "0")


def _is_locked(document: Any) -> bool:
    """Return True if a second copy of the patch is rejected after the first one changed the object.

    Only a resourceVersion causes that. A uid stays the same, so a second copy of a patch with only a uid would add
    its element to a list again.
    """
    if isinstance(document, dict):
        metadata: JsonObject = cast(JsonObject, document).get("metadata") or {}
        return _names_version(metadata.get("resourceVersion"))
    if isinstance(document, list):
        return _is_locked_json_patch(cast("list[JsonObject]", document))
    return False


def _is_locked_json_patch(operations: Sequence[JsonObject]) -> bool:
    version, around = "/metadata/resourceVersion", ("", "/metadata")
    written = locked = False
    for operation in operations:
        op, path, value = operation.get("op"), operation.get("path"), operation.get("value")
        if op == "test":
            if path == version and not written and _names_version(value):
                return True
        elif path == version:
            written, locked = True, op in ("add", "replace") and _names_version(value)
        elif path in around or (op == "move" and operation.get("from") in (version, *around)):
            written, locked = True, False
    return locked
