"""Reads of a reconcile: from the cache where it surely holds the answer, else from the server."""

import builtins
from collections.abc import Sequence
from typing import Any, cast

from kubewright.api import (
    InvalidRequest,
    Kind,
    LabelMatcher,
    NotFound,
    ObjectKey,
    RawObject,
    Status,
    StatusDetails,
    kind_of,
    parse_labels,
    raw_object,
)
from kubewright.cache import Index
from kubewright.client import Client, requests
from kubewright.controller.change import decode_as
from kubewright.controller.context import Reader
from kubewright.controller.permissions import Permissions
from kubewright.controller.running.shelves import AnyShelf


class Holdings:
    """What one controller has at hand; what that does not surely hold is asked of the server."""

    def __init__(
        self,
        client: Client,
        permissions: Permissions,
        shelves: Sequence[AnyShelf],
        namespaces: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.permissions = permissions
        self._shelves = shelves
        self._namespaces = tuple(dict.fromkeys(namespaces))

    async def get_raw(self, kind: Kind, key: ObjectKey) -> RawObject | None:
        """Return one object as the server has it, or None where there is none."""
        shelf = self.covering(kind, key)
        if shelf is None or not shelf.whole:
            return await self.ask(kind, key)
        return shelf.get_raw(key)

    async def ask(self, kind: Kind, key: ObjectKey) -> RawObject | None:
        """Ask the server for one object; None where there is none."""
        self.permissions.require(kind, "get")
        try:
            answer = await self.client.raw(requests.get(kind, key.name, key.namespace))
        except NotFound as missing:
            if missing.kind_missing:
                raise
            return None
        return raw_object(answer.body)

    async def ask_for_all(self, kind: Any, namespace: str, labels: str) -> list[Any]:
        """Ask the server for the objects of a namespace; if none is named, of all that the operator looks at."""
        described = kind_of(kind)
        self.permissions.require(described, "list")
        all_looked_at = self._namespaces if described.namespaced else ()
        # Its roles may be of these namespaces alone, and what lies in others is not its business.
        chosen = (namespace,) if namespace or not all_looked_at else all_looked_at
        return [
            found for one in chosen for found in await self.client.list(kind, namespace=one, labels=labels)
        ]

    def is_gone(self, kind: Kind, key: ObjectKey, uid: str) -> bool:
        """Return True if the kind is watched and no informer holds this object."""
        watched = [one for one in self._shelves if (one.kind.group, one.kind.kind) == (kind.group, kind.kind)]
        held = (one.get_raw(key) for one in watched)
        return bool(watched) and not any(found is not None and found.meta.uid == uid for found in held)

    def covering(self, kind: Kind, key: ObjectKey) -> AnyShelf | None:
        """Return the shelf that surely holds an object of this key, if there is one; best a whole one."""
        found: AnyShelf | None = None
        for shelf in self._shelves:
            if shelf.kind.gvk == kind.gvk and shelf.covers(key):
                if shelf.whole:
                    return shelf
                found = found or shelf
        return found

    def listing(self, form: Any, namespace: str) -> AnyShelf | None:
        """Return the shelf that surely holds all objects of a namespace, or of all that are watched, in this form."""
        return next((one for one in self._shelves if one.form == form and one.lists(namespace)), None)


class LiveReader(Reader):
    """Read from the server."""

    def __init__(self, holdings: Holdings, namespace: str) -> None:
        self._holdings = holdings
        self._namespace = namespace

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object; raise NotFound if it does not exist."""
        found = await self.find(kind, name, namespace)
        if found is None:
            described = kind_of(kind)
            raise not_found(described, self.key(described, name, namespace))
        return found

    async def find(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, or None if it does not exist."""
        raw = await self._holdings.ask(kind_of(kind), self.key(kind_of(kind), name, namespace))
        return None if raw is None else decode_as(kind, raw.raw)

    async def list(
        self,
        kind: Any,
        value: str | None = None,
        /,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str = "",
    ) -> builtins.list[Any]:
        """Return the objects of a kind, or those that an index holds under a value."""
        index, form = _index_and_form(kind)
        chosen = self.namespace_to_list(kind_of(form), namespace, all_namespaces)
        listed = await self._holdings.ask_for_all(form, chosen, labels)
        if index is None:
            return listed
        return [found for found in listed if value in tuple(index.values(found))]

    def key(self, kind: Kind, name: str, namespace: str | None) -> ObjectKey:
        """Return the key to read: by default in the reconciled object's namespace."""
        if not kind.namespaced:
            return ObjectKey("", name)
        return ObjectKey(self._namespace if namespace is None else namespace, name)

    def namespace_to_list(self, kind: Kind, namespace: str | None, all_namespaces: bool) -> str:
        """Return the namespace to list, empty for all of them; raise InvalidRequest if none is implied."""
        if namespace and all_namespaces:
            raise InvalidRequest(f"list {kind.resource}: pass namespace= or all_namespaces=True, not both")
        if all_namespaces or not kind.namespaced:
            return ""
        chosen = self._namespace if namespace is None else namespace
        if not chosen:
            raise InvalidRequest(
                f"list {kind.resource}: the reconciled object is cluster-scoped: "
                'pass namespace="..." or all_namespaces=True'
            )
        return chosen


class CachedReader(LiveReader):
    """Read from the cache where it is certain to hold the answer, else from the server."""

    async def find(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, or None if it does not exist."""
        described = kind_of(kind)
        key = self.key(described, name, namespace)
        shelf = self._holdings.covering(described, key)
        if shelf is None:
            return await super().find(kind, name, namespace)
        if shelf.form == kind:
            return shelf.get(key)
        raw = shelf.get_raw(key)
        return None if raw is None else decode_as(kind, raw.raw)

    async def list(
        self,
        kind: Any,
        value: str | None = None,
        /,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        labels: str = "",
    ) -> builtins.list[Any]:
        """Return the objects of a kind, or those that an index holds under a value."""
        index, form = _index_and_form(kind)
        chosen = self.namespace_to_list(kind_of(form), namespace, all_namespaces)
        shelf = self._holdings.listing(form, chosen)
        if shelf is None:
            return await super().list(
                kind, value, namespace=namespace, all_namespaces=all_namespaces, labels=labels
            )
        if index is None:
            return shelf.list(chosen, labels)
        found = shelf.by_index(index, value or "")
        if not chosen and not labels:
            return found
        matcher = parse_labels(labels)
        return [one for one in found if _is_listed(one, chosen, matcher)]


def _index_and_form(given: Any) -> tuple[Index[Any] | None, Any]:
    if isinstance(given, Index):
        index = cast("Index[Any]", given)
        return index, index.kind
    return None, given


def not_found(kind: Kind, key: ObjectKey) -> NotFound:
    """Return the error that the API server answers for an object that does not exist."""
    details = StatusDetails(name=key.name, group=kind.group, kind=kind.resource)
    message = f'{kind.resource} "{key.name}" not found'
    status = Status(status="Failure", message=message, reason="NotFound", details=details, code=404)
    return NotFound(status, verb="get", object=f"{kind.resource} {key}")


def _is_listed(found: Any, namespace: str, labels: LabelMatcher) -> bool:
    if isinstance(found, dict):
        meta: dict[str, Any] = cast("dict[str, Any]", found)["metadata"]
        carried: dict[str, str] = meta.get("labels") or {}
        return (not namespace or meta.get("namespace") == namespace) and labels.matches(carried)
    return (not namespace or found.metadata.namespace == namespace) and labels.matches(found.metadata.labels)
