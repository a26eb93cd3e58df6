"""The page's actions on the cluster: apply, edit, delete, scale, pause, resume, reconcile.

The page shows placeholders instead of sensitive values. So an edited manifest is compared with the object as it was
shown, and only the fields that the user changed are sent; placeholders are never sent to the cluster.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, assert_never, cast

import msgspec

from kubewright.api import (
    PAUSED,
    ApiError,
    Conflict,
    GroupVersionKind,
    JsonObject,
    Kind,
    KubewrightError,
    NotFound,
    control_patch,
    merge_diff,
    utc_now,
)
from kubewright.api.control_annotations import ControlAction
from kubewright.client import Client
from kubewright.documents import DocumentError, read_yaml
from kubewright.journal import is_placeholder
from kubewright.ui.history import ObjectIdentity
from kubewright.ui.state import PageState, parse_object

FIELD_MANAGER = "kubewright-ui"
_CONTROL_RESULTS: dict[ControlAction, str] = {
    "pause": "paused",
    "resume": "resumed",
    "reconcile": "will be reconciled now",
}
_LINE = re.compile(r"line \d+: ")
# Set by the server, so not part of an edit.
_SERVER_SET = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request of the page to perform an action."""

    action: Literal["apply", "delete", "scale", "pause", "resume", "reconcile"]
    uid: str = ""
    manifest: str = ""
    replicas: int | None = None


class ActionError(KubewrightError):
    """An action cannot be performed; `status` is the HTTP status code of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: KubewrightError) -> int:
    """Return the HTTP status code of the response to an action that failed."""
    match error:
        case ActionError():
            return error.status
        case ApiError():
            return error.status.code if 400 <= error.status.code < 600 else 502
        case _:
            return 502


class PageActions:
    """Perform the actions of the page with one client."""

    def __init__(self, client: Client, state: PageState) -> None:
        self._client = client
        self._state = state

    async def perform(self, request: ActionRequest) -> str:
        """Perform an action; return a message such as `deployment.apps/web scaled to 3`."""
        match request.action:
            case "apply":
                return await self._apply_all(list(_documents(request.manifest)))
            case "delete":
                found = self._find(request.uid)
                await self._client.delete(
                    found.kind, found.name, found.namespace, uid=found.uid, propagation="Background"
                )
                return f"{_display_name(found.kind, found.name)} deleted"
            case "scale":
                found = self._find(request.uid)
                if request.replicas is None or request.replicas < 0:
                    raise ActionError("replicas must be 0 or more")
                await self._client.scale(found.kind, found.name, found.namespace, replicas=request.replicas)
                return f"{_display_name(found.kind, found.name)} scaled to {request.replicas}"
            case "pause" | "resume" | "reconcile":
                return await self._control(request.uid, request.action)
            case _:
                assert_never(request.action)

    def _find(self, uid: str) -> ObjectIdentity:
        found = self._state.history.current(uid)
        if found is None:
            raise ActionError(f"the object with uid {uid!r} no longer exists", 404)
        return found.object

    async def _control(self, uid: str, action: ControlAction) -> str:
        found = self._find(uid)
        called = _display_name(found.kind, found.name)
        if action != "resume" and not self._state.is_reconciled(found.kind):
            raise ActionError(
                f"{called} cannot be {'paused' if action == 'pause' else 'reconciled'}: "
                f"no operator on this page has a controller for {found.kind.kind}",
                409,
            )
        patch = control_patch(action, utc_now())
        # With the uid the server refuses to patch another object of the same name.
        patch["metadata"]["uid"] = found.uid
        answered = await self._client.patch(found.kind, patch, name=found.name, namespace=found.namespace)
        metadata: JsonObject = answered["metadata"]
        annotations: JsonObject = metadata.get("annotations") or {}
        if action == "reconcile" and annotations.get(PAUSED) == "true":
            return f"{called} is paused: it is reconciled when it is resumed"
        if action == "pause" and metadata.get("deletionTimestamp"):
            return f"{called} paused, but it is being deleted: its finalizers still run"
        return f"{called} {_CONTROL_RESULTS[action]}"

    async def _apply_all(self, documents: list[JsonObject]) -> str:
        """Apply documents in order; raise ActionError with what was applied, what failed and what was not applied."""
        done: list[str] = []
        for document in documents:
            try:
                done.append(await self._apply(document))
            except KubewrightError as error:
                if len(documents) == 1:
                    raise
                called = f"{document['kind']} {document['metadata']['name']}"
                parts = [*done, f"{called} failed: {error}"]
                if left := documents[len(done) + 1 :]:
                    names = ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in left)
                    parts.append(f"not applied: {names}")
                raise ActionError("; ".join(parts), status_of(error)) from None
        return ", ".join(done)

    async def _apply(self, document: JsonObject) -> str:
        kind = await self._kind(document)
        metadata = cast("JsonObject", document["metadata"])
        name = metadata["name"]
        if kind.namespaced and not metadata.get("namespace"):
            metadata["namespace"] = self._client.config.namespace
        if metadata.get("uid"):
            return await self._edit(kind, name, metadata.get("namespace") or "", document)
        if (path := next(_placeholders(document), "")) != "":
            raise ActionError(
                f"{path} is the placeholder of a value that is not shown: replace it with the value"
            )
        try:
            before = await self._client.get(kind, name, metadata.get("namespace") or "")
        except NotFound:
            before = None
        after = await self._client.apply(document, kind=kind, force=False)
        if before is None or before["metadata"]["uid"] != after["metadata"]["uid"]:
            return f"{_display_name(kind, name)} created"
        changed = before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]
        return f"{_display_name(kind, name)} {'configured' if changed else 'unchanged'}"

    async def _edit(self, kind: Kind, name: str, namespace: str, edited: JsonObject) -> str:
        live = await self._client.get(kind, name, namespace)
        metadata = cast("JsonObject", edited["metadata"])
        if live["metadata"]["uid"] != metadata["uid"]:
            raise ActionError(
                f"{_display_name(kind, name)} was deleted and created again: open the new object", 409
            )
        shown = self._state.redacted(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **live})
        is_live = metadata.get("resourceVersion") == live["metadata"]["resourceVersion"]
        opened = shown if is_live else self._version(metadata)
        if opened is None:
            # A comparison with the live object would take back what others changed since the edited version.
            raise ActionError(
                f"{_display_name(kind, name)} was opened at a version that is no longer known: "
                "open it again and repeat your changes",
                409,
            )
        patch = merge_diff(_without_server_set(opened), _without_server_set(edited))
        if not _is_same_below(patch, opened, shown):
            raise ActionError(
                f"{_display_name(kind, name)} has changed since you opened it: open it again and repeat your changes",
                409,
            )
        if not patch:
            return f"{_display_name(kind, name)} unchanged"
        if (path := next(_placeholders(patch), "")) != "":
            raise ActionError(
                f"{path} is the placeholder of a value that is not shown: replace it with the value"
            )
        version = live["metadata"]["resourceVersion"]
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        try:
            await self._client.patch(kind, patch, name=name, namespace=namespace)
        except Conflict as error:
            raise ActionError(str(error), 409) from None
        return f"{_display_name(kind, name)} edited"

    def _version(self, metadata: JsonObject) -> JsonObject | None:
        """Return the version that the user edited; None if it is no longer in the history."""
        for version in self._state.history.versions(metadata["uid"]):
            if version.resource_version == metadata.get("resourceVersion"):
                return parse_object(version.content)
        return None

    async def _kind(self, document: JsonObject) -> Kind:
        api_version, name = document["apiVersion"], document["kind"]
        return await self._client.resolve(GroupVersionKind.parse(api_version, name))


def _documents(manifest: str) -> Iterator[JsonObject]:
    """Yield the objects of a manifest; raise ActionError if one is not an object of Kubernetes."""
    count = 0
    try:
        for document in read_yaml(manifest):
            if document.value is None:
                continue
            if document.repeated:
                raise ActionError(f"the manifest has the key {document.repeated[0]} twice")
            count += 1
            yield _checked(document.value)
    except DocumentError as error:
        # The text may begin with kubectl's line number, which can be lower by one.
        text = _LINE.sub("", str(error), count=1) if error.line else str(error)
        place = f"line {error.line}: " if error.line else ""
        raise ActionError(f"the manifest is not valid YAML: {place}{text}") from None
    if not count:
        raise ActionError("the manifest is empty")


def _checked(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise ActionError("the manifest is not an object: it needs apiVersion, kind and metadata")
    document = cast("JsonObject", value)
    metadata = document.get("metadata")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise ActionError(f"the manifest has no {field}")
    name = cast("JsonObject", metadata).get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise ActionError(f"the {document['kind']} in the manifest has no metadata.name")
    return document


def _without_server_set(document: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in document["metadata"].items() if name not in _SERVER_SET}
    return {**document, "metadata": metadata}


def _is_same_below(patch: JsonObject, opened: JsonObject, live: JsonObject) -> bool:
    """Return True if the fields that a patch changes have the same values in both objects."""
    for name, value in patch.items():
        old, now = opened.get(name), live.get(name)
        if isinstance(value, dict) and isinstance(old, dict) and isinstance(now, dict):
            inner = cast("JsonObject", value), cast("JsonObject", old), cast("JsonObject", now)
            if not _is_same_below(*inner):
                return False
        elif old != now:
            return False
    return True


def _placeholders(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of placeholders for values that are not shown."""
    if is_placeholder(value):
        yield path
    elif isinstance(value, dict):
        for name, inner in cast("JsonObject", value).items():
            yield from _placeholders(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from _placeholders(inner, f"{path}[{number}]")


def _display_name(kind: Kind, name: str) -> str:
    return f"{kind.singular}.{kind.group}/{name}" if kind.group else f"{kind.singular}/{name}"
