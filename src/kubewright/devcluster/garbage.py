"""The garbage collector: what loses its last owner goes, in the order its owners asked for."""

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
from kubewright.cache import Cache, Change, Informer, Selection
from kubewright.client import Client
from kubewright.devcluster.kinds import deletable_kinds
from kubewright.workqueue import QueueShutDown, WorkQueue

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
WORKERS = 8
_log = logging.getLogger("kubewright.devcluster")


@dataclass(slots=True)
class Item:
    """One object as the graph of owners knows it."""

    kind: Kind
    meta: PartialMeta

    @property
    def deleting(self) -> bool:
        """Tell whether it is on its way out."""
        return self.meta.deletion_timestamp is not None

    @property
    def waits_for_dependents(self) -> bool:
        """Tell whether it goes only after what it owns."""
        return self.deleting and FOREGROUND in self.meta.finalizers


class Graph:
    """Who owns whom, by uid."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, kind: Kind, meta: PartialMeta) -> None:
        """Take an object in, or what it has become."""
        self.remove(meta.uid)
        self.items[meta.uid] = Item(kind, meta)
        for owner in meta.owner_references:
            self._dependents[owner.uid].add(meta.uid)

    def remove(self, uid: str) -> None:
        """Forget an object that is gone."""
        item = self.items.pop(uid, None)
        for owner in item.meta.owner_references if item is not None else ():
            self._dependents[owner.uid].discard(uid)
            if not self._dependents[owner.uid]:
                del self._dependents[owner.uid]

    def dependents(self, uid: str) -> list[Item]:
        """Give what an object owns."""
        return [self.items[child] for child in self._dependents.get(uid, ()) if child in self.items]


class GarbageCollector:
    """Follow every kind of the server and delete what its owners left behind."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cache = Cache(client)
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue(name="garbage")
        self._informers: dict[tuple[str, str], Informer[Any]] = {}
        self._kinds_changed = asyncio.Event()
        self.synced: asyncio.Event = asyncio.Event()

    async def run(self) -> None:
        """Collect until cancelled."""
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
                _log.warning("the garbage collector cannot learn what kinds there are: %s", error)
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

    def _observe(self, kind: Kind, change: Change) -> None:
        if change.new is None:
            if change.old is not None:
                self._gone(change.old.meta)
            return
        if change.old is not None and change.old.meta.uid != change.new.meta.uid:
            self._gone(change.old.meta)
        meta = change.new.meta
        self._graph.put(kind, meta)
        if meta.owner_references or meta.deletion_timestamp is not None:
            self._queue.add(meta.uid)

    def _gone(self, meta: PartialMeta) -> None:
        for dependent in self._graph.dependents(meta.uid):
            self._queue.add(dependent.meta.uid)
        # An owner that waits for its dependents may go now.
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
                _log.warning("the garbage collector retries: %s", error)
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
                if await self._absent(item, owner):
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
        # The version too: the object may have lost its owner references, or got another owner, in the meantime.
        # Then this is a Conflict, and the object is checked again by a newer view.
        await self._client.delete(
            item.kind,
            item.meta.name,
            item.meta.namespace,
            uid=item.meta.uid,
            resource_version=item.meta.resource_version,
            propagation="Foreground" if waiting and has_dependents else "Background",
        )

    async def _absent(self, item: Item, owner: OwnerReference) -> bool:
        """Ask the server itself: an owner may be too young for the caches, or of a kind nobody may list."""
        try:
            kind = await self._client.resolve(GroupVersionKind.parse(owner.api_version, owner.kind))
        except NotFound:
            # The kind itself is unknown: better keep the object than guess.
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
