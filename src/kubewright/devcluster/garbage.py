"""The garbage collector: deletes objects without owners, and carries out foreground deletion and orphaning.

It watches the metadata of every deletable kind and keeps a graph of owners and dependents by uid. An owner that is
missing from the graph, or that the graph knows under another name, is read from the server before its dependents are
deleted, so an outdated cache never deletes an object whose owner exists. An owner of a kind that is not served cannot
be checked: its dependents wait until the served kinds change.
"""

import asyncio
import logging
import socket
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
from kubewright.api.meta import Propagation
from kubewright.cache import Cache, Informer, Selection, StoreChange
from kubewright.client import Client
from kubewright.events import EventRecorder, Reference
from kubewright.metrics import Registry
from kubewright.workqueue import QueueShutDown, WorkQueue

_NEEDED = frozenset({"list", "watch", "delete"})
# The same objects are served in two groups; following one of them is enough.
_ALIASES = frozenset({("events.k8s.io", "events"), ("extensions", "ingresses")})
_IGNORED = ("", "events")
"""Events are not collected: they expire, and watching them would be expensive."""
NAME = "garbage-collector-controller"
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
class GraphNode:
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

    def is_named_by(self, owner: OwnerReference, namespace: str) -> bool:
        """Return True if an owner reference of an object in this namespace names this object correctly."""
        named = (owner.api_version, owner.kind, owner.name)
        return named == (self.kind.api_version, self.kind.kind, self.meta.name) and self.meta.namespace in (
            "",
            namespace,
        )


class _UnknownKind(Exception):
    """The kind of an owner is not served, so the owner cannot be checked."""


class _InvalidScope(Exception):
    """A cluster-scoped object refers to a namespaced owner, which cannot exist."""


class Graph:
    """The graph of owners and dependents, by uid."""

    def __init__(self) -> None:
        self.items: dict[str, GraphNode] = {}
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, kind: Kind, meta: PartialMeta) -> None:
        """Add or update an object."""
        self.remove(meta.uid)
        self.items[meta.uid] = GraphNode(kind, meta)
        for owner in meta.owner_references:
            self._dependents[owner.uid].add(meta.uid)

    def remove(self, uid: str) -> None:
        """Remove a deleted object."""
        item = self.items.pop(uid, None)
        for owner in item.meta.owner_references if item is not None else ():
            self._dependents[owner.uid].discard(uid)
            if not self._dependents[owner.uid]:
                del self._dependents[owner.uid]

    def dependents(self, uid: str) -> list[GraphNode]:
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
        self._unknown_kinds: set[str] = set()
        """The uids of objects that wait for the kind of an owner to be served."""
        self._recorder = EventRecorder(client, controller=NAME, host=socket.gethostname(), metrics=Registry())
        self.synced: asyncio.Event = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="garbage cache")
            group.create_task(self._recorder.run(), name="garbage Events")
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
        present.pop(_IGNORED, None)
        if present.keys() - self._informers.keys():
            for uid in self._unknown_kinds:
                self._queue.add(uid)
            self._unknown_kinds.clear()
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
        before = self._graph.items.get(meta.uid)
        self._graph.put(kind, meta)
        item = self._graph.items[meta.uid]
        if before is None:
            self._check_references_to(item)
        else:
            self._queue_unblocked_owners(before, item)
        self._check_references_of(item, before)
        if meta.owner_references or item.deleting:
            self._queue.add(meta.uid)
        if item.waits_for_dependents and (before is None or not before.waits_for_dependents):
            for dependent in self._graph.dependents(meta.uid):
                self._queue.add(dependent.meta.uid)

    def _queue_unblocked_owners(self, before: GraphNode, item: GraphNode) -> None:
        """Check owners again that this object no longer blocks: they may wait for it."""
        blocked = {owner.uid for owner in item.meta.owner_references if owner.block_owner_deletion}
        for owner in before.meta.owner_references:
            if owner.block_owner_deletion and owner.uid not in blocked:
                self._queue.add(owner.uid)

    def _check_references_to(self, owner: GraphNode) -> None:
        """Check objects that were seen before their owner and may name it wrongly."""
        for dependent in self._graph.dependents(owner.meta.uid):
            ref = _reference_to(owner, dependent)
            if not owner.is_named_by(ref, dependent.meta.namespace):
                self._queue.add(dependent.meta.uid)
                self._report_wrong_namespace(dependent, owner)

    def _check_references_of(self, item: GraphNode, before: GraphNode | None) -> None:
        known = {ref.uid for ref in before.meta.owner_references} if before is not None else set[str]()
        for ref in item.meta.owner_references:
            owner = self._graph.items.get(ref.uid)
            if ref.uid not in known and owner is not None and owner is not item:
                self._report_wrong_namespace(item, owner)

    def _report_wrong_namespace(self, item: GraphNode, owner: GraphNode) -> None:
        if owner.meta.namespace in ("", item.meta.namespace):
            return
        ref = _reference_to(owner, item)
        namespace = item.meta.namespace
        identity = f"[{ref.api_version}/{ref.kind}, namespace: {namespace}, name: {ref.name}, uid: {ref.uid}]"
        regarding = Reference(item.kind.api_version, item.kind.kind, namespace, item.meta.name, item.meta.uid)
        note = f'ownerRef {identity} does not exist in namespace "{namespace}"'
        self._recorder.record(regarding, "Warning", "OwnerRefInvalidNamespace", note)

    def _deleted(self, meta: PartialMeta) -> None:
        for dependent in self._graph.dependents(meta.uid):
            self._queue.add(dependent.meta.uid)
        # An owner in foreground deletion may be able to proceed.
        for owner in meta.owner_references:
            self._queue.add(owner.uid)
        self._graph.remove(meta.uid)
        self._unknown_kinds.discard(meta.uid)

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
            except _UnknownKind:
                self._unknown_kinds.add(uid)
                self._queue.forget(uid)
            except _InvalidScope:
                # A retry would not help; a change of the object enqueues it again.
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

    async def _orphan(self, item: GraphNode) -> None:
        for dependent in self._graph.dependents(item.meta.uid):
            await self._drop_owners(dependent, {item.meta.uid})
        await self._drop_finalizer(item, ORPHAN)

    async def _wait_for_dependents(self, item: GraphNode) -> None:
        blocking = [child for child in self._graph.dependents(item.meta.uid) if _blocks(child, item.meta.uid)]
        if not blocking:
            await self._drop_finalizer(item, FOREGROUND)
            return
        for child in blocking:
            if not child.deleting:
                self._queue.add(child.meta.uid)

    async def _check_owners(self, item: GraphNode) -> None:
        solid, dangling, waiting = False, set[str](), set[str]()
        for owner in item.meta.owner_references:
            found = self._graph.items.get(owner.uid)
            certain = found is not None and found.is_named_by(owner, item.meta.namespace)
            if not certain and await self._is_absent(item, owner):
                dangling.add(owner.uid)
            elif found is not None and found.waits_for_dependents:
                waiting.add(owner.uid)
            else:
                solid = True
        if solid:
            if dangling or waiting:
                await self._drop_owners(item, dangling | waiting)
            return
        dependents = self._graph.dependents(item.meta.uid)
        foreground = bool(waiting and dependents)
        version = item.meta.resource_version
        if foreground and any(dependent.waits_for_dependents for dependent in dependents):
            # An owner and a dependent both wait: possibly a circle, in which each would wait for the next one.
            version = await self._unblock_owners(item)
        # Delete exactly this version: the owner references may have changed in the meantime. A Conflict leads
        # to another check with a newer version.
        await self._client.delete(
            item.kind,
            item.meta.name,
            item.meta.namespace,
            uid=item.meta.uid,
            resource_version=version,
            propagation="Foreground" if foreground else _propagation(item),
        )

    async def _is_absent(self, item: GraphNode, owner: OwnerReference) -> bool:
        """Return True if the server has no such owner: the cache may not have it yet, or may not watch its kind."""
        try:
            kind = await self._client.resolve(GroupVersionKind.parse(owner.api_version, owner.kind))
        except NotFound:
            raise _UnknownKind from None
        if kind.namespaced and not item.meta.namespace:
            raise _InvalidScope
        try:
            found = await self._client.get(kind, owner.name, item.meta.namespace if kind.namespaced else "")
        except NotFound:
            return True
        return found["metadata"]["uid"] != owner.uid

    async def _unblock_owners(self, item: GraphNode) -> str:
        """Clear blockOwnerDeletion in all owner references, and return the new resource version."""
        references = [to_wire(owner) for owner in item.meta.owner_references]
        for reference in references:
            reference["blockOwnerDeletion"] = False
        patch = {
            "metadata": {
                "uid": item.meta.uid,
                "ownerReferences": references,
                "resourceVersion": item.meta.resource_version,
            }
        }
        patched = await self._client.patch(
            item.kind, patch, name=item.meta.name, namespace=item.meta.namespace
        )
        return patched["metadata"]["resourceVersion"]

    async def _drop_owners(self, item: GraphNode, uids: set[str]) -> None:
        kept = [owner for owner in item.meta.owner_references if owner.uid not in uids]
        patch = {
            "metadata": {
                "uid": item.meta.uid,
                "ownerReferences": [to_wire(owner) for owner in kept] or None,
                "resourceVersion": item.meta.resource_version,
            }
        }
        await self._client.patch(item.kind, patch, name=item.meta.name, namespace=item.meta.namespace)

    async def _drop_finalizer(self, item: GraphNode, finalizer: str) -> None:
        kept = [text for text in item.meta.finalizers if text != finalizer]
        patch = {"metadata": {"finalizers": kept or None, "resourceVersion": item.meta.resource_version}}
        try:
            await self._client.patch(item.kind, patch, name=item.meta.name, namespace=item.meta.namespace)
        except NotFound:
            return


def _reference_to(owner: GraphNode, dependent: GraphNode) -> OwnerReference:
    return next(ref for ref in dependent.meta.owner_references if ref.uid == owner.meta.uid)


def _propagation(item: GraphNode) -> Propagation:
    """Return how to delete an object without owners: as its finalizers say, by default in the background."""
    if ORPHAN in item.meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.meta.finalizers else "Background"


def _blocks(child: GraphNode, owner: str) -> bool:
    return any(ref.uid == owner and ref.block_owner_deletion for ref in child.meta.owner_references)
