"""The garbage collector: deletes objects without owners, and carries out foreground deletion and orphaning.

It watches the metadata of every deletable kind and keeps a graph of owners and dependents by uid. An owner that is
missing from the graph is read from the server before its dependents are deleted, so an outdated cache never deletes
an object whose owner exists.
"""

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    Conflict,
    GroupVersionKind,
    Kind,
    KubewrightError,
    NotFound,
    OwnerReference,
    PartialMeta,
    to_wire,
)
from kubewright.cache import Cache, Informer, Selection, StoreChange
from kubewright.client import Client
from kubewright.workqueue import QueueShutDown, WorkQueue

_NEEDED = frozenset({"list", "watch", "delete"})
# The same objects are served in two groups; following one of them is enough.
_ALIASES = frozenset({("events.k8s.io", "events"), ("extensions", "ingresses")})
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
WORKERS = 8
_log = logging.getLogger("kubewright.devcluster")


async def deletable_kinds(client: Client) -> list[Kind]:
    """Return the kinds whose objects can be listed, watched and deleted, in one version each."""
    found: dict[tuple[str, str], Kind] = {}
    for resource in await client.api_resources():
        kind = resource.kind
        if set(resource.verbs) >= _NEEDED and (kind.group, kind.plural) not in _ALIASES:
            found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


@dataclass(slots=True)
class Item:
    """An object in the graph of owners."""

    kind: Kind
    meta: PartialMeta

    @property
    def deleting(self) -> bool:
        """Return True if the object is terminating."""
        return self.meta.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Return True if the object waits for its dependents (foreground deletion)."""
        return self.deleting and FOREGROUND in self.meta.finalizers


class Graph:
    """The graph of owners and dependents, by uid."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, kind: Kind, meta: PartialMeta) -> None:
        """Add or update an object."""
        self.remove(meta.uid)
        self.items[meta.uid] = Item(kind, meta)
        for owner in meta.owner_references:
            self._dependents[owner.uid].add(meta.uid)

    def remove(self, uid: str) -> None:
        """Remove a deleted object."""
        item = self.items.pop(uid, None)
        for owner in item.meta.owner_references if item is not None else ():
            self._dependents[owner.uid].discard(uid)
            if not self._dependents[owner.uid]:
                del self._dependents[owner.uid]

    def dependents(self, uid: str) -> list[Item]:
        """Return the dependents of an object."""
        return [self.items[child] for child in self._dependents.get(uid, ()) if child in self.items]


class GarbageCollector:
    """Watch every deletable kind and delete dependents whose owners are gone."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cache = Cache(client)
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue(name="garbage")
        self._informers: dict[tuple[str, str], Informer[Any]] = {}
        self._kinds_changed = asyncio.Event()
        self.synced: asyncio.Event = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="garbage cache")
            group.create_task(self._follow_kinds(), name="garbage kinds")
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"garbage worker {number}")

    async def _follow_kinds(self) -> None:
        definitions: Informer[Any] = self._cache.informer(Selection(CUSTOM_RESOURCE_DEFINITION), dict)
        definitions.subscribe(lambda change: self._kinds_changed.set())
        while True:
            self._kinds_changed.clear()
            try:
                await self._watch_all(await deletable_kinds(self._client))
            except KubewrightError as error:
                _log.warning("Garbage collector could not discover the served kinds, retrying: %s", error)
            try:
                async with asyncio.timeout(30):
                    await self._kinds_changed.wait()
            except TimeoutError:
                continue

    async def _watch_all(self, kinds: list[Kind]) -> None:
        present = {(kind.group, kind.plural): kind for kind in kinds}
        for key in self._informers.keys() - present.keys():
            self._cache.release(self._informers.pop(key))
        for key in present.keys() - self._informers.keys():
            selection = Selection(present[key], metadata_only=True)
            informer = self._informers[key] = self._cache.informer(selection, dict)
            informer.subscribe(lambda change, kind=present[key]: self._observe(kind, change))
        if not self.synced.is_set():
            for informer in list(self._informers.values()):
                await informer.wait_synced()
            self.synced.set()

    def _observe(self, kind: Kind, change: StoreChange) -> None:
        if change.new is None:
            if change.old is not None:
                self._deleted(change.old.meta)
            return
        if change.old is not None and change.old.meta.uid != change.new.meta.uid:
            self._deleted(change.old.meta)
        meta = change.new.meta
        self._graph.put(kind, meta)
        if meta.owner_references or meta.deletion_timestamp is not None:
            self._queue.add(meta.uid)

    def _deleted(self, meta: PartialMeta) -> None:
        for dependent in self._graph.dependents(meta.uid):
            self._queue.add(dependent.meta.uid)
        # An owner in foreground deletion may be able to proceed.
        for owner in meta.owner_references:
            self._queue.add(owner.uid)
        self._graph.remove(meta.uid)

    async def _work(self) -> None:
        await self.synced.wait()
        while True:
            try:
                uid = (await self._queue.get()).key
            except QueueShutDown:
                return
            try:
                await self._collect(uid)
                self._queue.forget(uid)
            except (Conflict, NotFound):
                self._queue.add_rate_limited(uid)
            except KubewrightError as error:
                _log.warning("Garbage collection failed, retrying: %s", error)
                self._queue.add_rate_limited(uid)
            finally:
                self._queue.done(uid)

    async def _collect(self, uid: str) -> None:
        item = self._graph.items.get(uid)
        if item is None:
            return
        if item.deleting and ORPHAN in item.meta.finalizers:
            await self._orphan(item)
        elif item.waits_for_dependents:
            await self._wait_for_dependents(item)
        elif item.meta.owner_references and not item.deleting:
            await self._check_owners(item)

    async def _orphan(self, item: Item) -> None:
        for dependent in self._graph.dependents(item.meta.uid):
            await self._drop_owners(dependent, {item.meta.uid})
        await self._drop_finalizer(item, ORPHAN)

    async def _wait_for_dependents(self, item: Item) -> None:
        blocking = [child for child in self._graph.dependents(item.meta.uid) if _blocks(child, item.meta.uid)]
        if not blocking:
            await self._drop_finalizer(item, FOREGROUND)
            return
        for child in blocking:
            if not child.deleting:
                self._queue.add(child.meta.uid)

    async def _check_owners(self, item: Item) -> None:
        solid: list[OwnerReference] = []
        dangling: set[str] = set()
        waiting: set[str] = set()
        for owner in item.meta.owner_references:
            found = self._graph.items.get(owner.uid)
            if found is None:
                if await self._is_absent(item, owner):
                    dangling.add(owner.uid)
                else:
                    solid.append(owner)
            elif found.waits_for_dependents:
                waiting.add(owner.uid)
            else:
                solid.append(owner)
        if solid:
            if dangling or waiting:
                await self._drop_owners(item, dangling | waiting)
            return
        has_dependents = bool(self._graph.dependents(item.meta.uid))
        # Delete exactly this version: the owner references may have changed in the meantime. A Conflict leads
        # to another check with a newer version.
        await self._client.delete(
            item.kind,
            item.meta.name,
            item.meta.namespace,
            uid=item.meta.uid,
            resource_version=item.meta.resource_version,
            propagation="Foreground" if waiting and has_dependents else "Background",
        )

    async def _is_absent(self, item: Item, owner: OwnerReference) -> bool:
        """Return True if the server has no such owner: the cache may not have it yet, or may not watch its kind."""
        try:
            kind = await self._client.resolve(GroupVersionKind.parse(owner.api_version, owner.kind))
        except NotFound:
            # The kind is not served, so the owner cannot be checked: keep the object.
            return False
        namespace = item.meta.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            return False
        try:
            found = await self._client.get(kind, owner.name, namespace)
        except NotFound:
            return True
        return found["metadata"]["uid"] != owner.uid

    async def _drop_owners(self, item: Item, uids: set[str]) -> None:
        kept = [owner for owner in item.meta.owner_references if owner.uid not in uids]
        patch = {
            "metadata": {
                "uid": item.meta.uid,
                "ownerReferences": [to_wire(owner) for owner in kept] or None,
                "resourceVersion": item.meta.resource_version,
            }
        }
        await self._client.patch(item.kind, patch, name=item.meta.name, namespace=item.meta.namespace)

    async def _drop_finalizer(self, item: Item, finalizer: str) -> None:
        kept = [text for text in item.meta.finalizers if text != finalizer]
        patch = {"metadata": {"finalizers": kept or None, "resourceVersion": item.meta.resource_version}}
        try:
            await self._client.patch(item.kind, patch, name=item.meta.name, namespace=item.meta.namespace)
        except NotFound:
            return


def _blocks(child: Item, owner: str) -> bool:
    return any(ref.uid == owner and ref.block_owner_deletion for ref in child.meta.owner_references)
