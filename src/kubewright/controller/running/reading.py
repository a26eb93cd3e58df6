"""Reads of a reconcile: from the cache where it surely holds the answer, else from the server."""

import builtins
from collections.abc import Sequence
from typing import Any, cast

from kubewright.api import Kind, NotFound, ObjectKey, RawObject, kind_of, raw_object
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
        except NotFound:
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

    def covering(self, kind: Kind, key: ObjectKey) -> AnyShelf | None:
        """Return the shelf that surely holds an object of this key, if there is one; best a whole one."""
        found: AnyShelf | None = None
        for shelf in self._shelves:
            if shelf.kind == kind and shelf.covers(key):
                if shelf.whole:
                    return shelf
                found = found or shelf
        return found

    def listing(self, form: Any, namespace: str) -> AnyShelf | None:
        """Return the shelf that surely holds all objects of a namespace, or of all that are watched, in this form."""
        return next((one for one in self._shelves if one.form == form and one.lists(namespace)), None)


class LiveReader(Reader):
    """Ask the server."""

    def __init__(self, holdings: Holdings, namespace: str) -> None:
        self._holdings = holdings
        self._namespace = namespace

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, or None where there is none."""
        raw = await self._holdings.ask(kind_of(kind), self.key(kind_of(kind), name, namespace))
        return None if raw is None else decode_as(kind, raw.raw)

    async def list(
        self, kind: Any, value: str | None = None, /, *, namespace: str = "", labels: str = ""
    ) -> builtins.list[Any]:
        """Return the objects of a kind, or those an index holds under a value."""
        if isinstance(kind, Index):
            index = cast("Index[Any]", kind)
            listed = await self.list(index.kind, namespace=namespace, labels=labels)
            return [found for found in listed if value in tuple(index.values(found))]
        return await self._holdings.ask_for_all(kind, namespace, labels)

    def key(self, kind: Kind, name: str, namespace: str | None) -> ObjectKey:
        """Return the key that is meant: by default in the reconciled object's namespace."""
        if not kind.namespaced:
            return ObjectKey("", name)
        return ObjectKey(self._namespace if namespace is None else namespace, name)


class CachedReader(Reader):
    """Read what the controller has at hand; the rest from the server."""

    def __init__(self, holdings: Holdings, namespace: str) -> None:
        self._holdings = holdings
        self._live = LiveReader(holdings, namespace)

    async def get(self, kind: Any, name: str, namespace: str | None = None) -> Any:
        """Return one object, or None where there is none."""
        described = kind_of(kind)
        key = self._live.key(described, name, namespace)
        shelf = self._holdings.covering(described, key)
        if shelf is None:
            return await self._live.get(kind, name, namespace)
        if shelf.form == kind:
            return shelf.get(key)
        raw = shelf.get_raw(key)
        return None if raw is None else decode_as(kind, raw.raw)

    async def list(
        self, kind: Any, value: str | None = None, /, *, namespace: str = "", labels: str = ""
    ) -> builtins.list[Any]:
        """Return the objects of a kind, or those an index holds under a value."""
        index = cast("Index[Any]", kind) if isinstance(kind, Index) else None
        shelf = self._holdings.listing(index.kind if index is not None else kind, namespace)
        if shelf is None:
            if index is not None and value is not None:
                return await self._live.list(index, value, namespace=namespace, labels=labels)
            return await self._live.list(kind, namespace=namespace, labels=labels)
        if index is None:
            return shelf.list(namespace, labels)
        keys = set(shelf.keys_by_index(index, value or ""))
        if not namespace and not labels:
            return shelf.by_index(index, value or "")
        return [found for found in shelf.list(namespace, labels) if _key_of(found) in keys]


def _key_of(found: Any) -> ObjectKey:
    if isinstance(found, dict):
        meta = cast("dict[str, Any]", found)["metadata"]
        return ObjectKey(meta.get("namespace", ""), meta["name"])
    return found.key
