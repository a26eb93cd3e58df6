"""Reads of one controller: from its informers if they are certain to hold the object, else from the server.

A cached read passes through three objects. `ContextReader` resolves the namespace or reference, `CacheReader` chooses the
informer that covers the key, and the informer decodes the object from its store. An informer *covers* a key if it is
certain to have the whole object of that key, should it exist. A watch that is limited by labels or fields, or to
metadata, covers nothing, so those reads are sent to the server.

An `InformerSet` has the informers of one declared kind, one for each watched namespace; with namespaces by label they come
and go. In a shard they have only the objects of that shard: they cover the objects that they have or, with shards by
namespace, the namespaces of the shard. Other reads, and lists that reach beyond the shard, are sent to the server.
"""

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakSet

import msgspec

from kubewright.api import (
    GroupVersionKind,
    InvalidRequest,
    Kind,
    NotFound,
    Object,
    ObjectKey,
    RawObject,
    Status,
    StatusDetails,
    decode_as,
    kind_of,
    parse,
    raw_object,
)
from kubewright.cache import Cache, Index, Informer, Selection, ShardFilter, StoreChange, Undecodable
from kubewright.client import Client, requests
from kubewright.controller.context import Reader
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import UndeclaredAccess
from kubewright.controller.permissions import Permissions
from kubewright.controller.references import FieldReference
from kubewright.controller.running.namespaces import FollowedNamespaces
from kubewright.controller.watches import Selector
from kubewright.journal import CachedList, CachedRead, current

T = TypeVar("T")
Selected = list[tuple[Informer[T], Sequence[RawObject]]]
"""Encoded objects, with the informer that decodes them."""


class InformerSet(Generic[T]):
    """The informers of one declared kind and selector, one for each watched namespace.

    With `followed`, the namespaces are selected by label: call `open`, `begin` and `leave` as they come and go.
    """

    def __init__(
        self,
        cache: Cache,
        kind: type[T] | Kind,
        selector: Selector,
        namespaces: Sequence[str],
        *,
        metadata_only: bool = False,
        optional: bool = False,
        shard: ShardFilter | None = None,
        followed: FollowedNamespaces | None = None,
    ) -> None:
        self.kind: Kind = kind_of(kind)
        self.optional: bool = optional
        """True if the cluster need not serve the kind."""
        self.form: type[T] | Kind = kind
        """The type that objects are decoded to: a class, or the kind for JSON objects."""
        self.whole: bool = not metadata_only and selector.transform is None
        """True if objects are held unchanged, without a transform, so that a write may be based on them."""
        self._indexes: WeakSet[Index[T]] = WeakSet()
        self._cache = cache
        self._subscribers: list[Callable[[StoreChange], None]] = []
        self._undecodable_listeners: list[Callable[[Undecodable], None]] = []
        self._unsubscribe: dict[str, list[Callable[[], None]]] = {}
        self._cls: Any = Object if metadata_only else dict if isinstance(kind, Kind) else kind
        self._followed = followed if self.kind.namespaced and not selector.namespace else None
        self.follows: bool = self._followed is not None
        """True if the informers are those of namespaces with certain labels."""
        self._selection = Selection(
            self.kind,
            "",
            selector.labels,
            selector.fields,
            metadata_only,
            selector.transform,
            # A shard has whole namespaces, so it is enough to open no others.
            shard if self._followed is None else None,
        )
        self._opened: dict[str, Informer[T]] = {}
        """Informers of namespaces that are not used yet, because not all informers of the namespace are synced."""
        self._informers: dict[str, Informer[T]] = {}
        """By namespace; the key of an informer of all namespaces is empty."""
        if self._followed is None:
            for namespace in _namespaces(self.kind, selector, namespaces):
                self._informers[namespace] = self._informer(namespace)

    @property
    def informers(self) -> Collection[Informer[T]]:
        """Return the informers in use."""
        return self._informers.values()

    def informer_of(self, namespace: str) -> Informer[T] | None:
        """Return the informer that holds the objects of a namespace, or None."""
        return self._informers.get(namespace) or self._informers.get("")

    def is_opened(self, namespace: str) -> bool:
        """Return True if `open` was called for a namespace, and `begin` not yet."""
        return namespace in self._opened

    def open(self, namespace: str) -> Informer[T]:
        """Start the informer of a namespace, without using it yet."""
        informer = self._opened[namespace] = self._informer(namespace)
        return informer

    def begin(self, namespace: str) -> None:
        """Read from the informer of a namespace from now on; `notify` follows."""
        informer = self._informers[namespace] = self._opened.pop(namespace)
        for index in self._indexes:
            informer.add_index(index)

    def notify(self, namespace: str) -> None:
        """Subscribe to the informer of a namespace: subscribers are notified of each of its objects."""
        informer = self._informers[namespace]
        self._unsubscribe[namespace] = [
            *(informer.subscribe(subscriber) for subscriber in self._subscribers),
            *(informer.on_undecodable(listener) for listener in self._undecodable_listeners),
        ]

    def leave(self, namespace: str) -> list[StoreChange]:
        """Release the informer of a namespace; return the deletions of its objects.

        Subscribers are not notified of them: see `notify_of`.
        """
        for unsubscribe in self._unsubscribe.pop(namespace, ()):
            unsubscribe()
        informer = self._informers.pop(namespace, None)
        used = informer is not None
        informer = informer or self._opened.pop(namespace, None)
        if informer is None:
            return []
        objects = informer.feed.objects.items() if used else ()
        forgotten = [StoreChange(key, raw, None) for key, raw in objects]
        self._cache.release(informer)
        return forgotten

    def notify_of(self, changes: Iterable[StoreChange]) -> None:
        """Notify the subscribers of changes that no informer has reported."""
        for change in changes:
            for subscriber in self._subscribers:
                subscriber(change)

    def covering(self, key: ObjectKey) -> Informer[T] | None:
        """Return the informer that covers this key, or None."""
        informer = self.informer_of(key.namespace)
        return informer if informer is not None and informer.covers(key) and informer.feed.complete else None

    def covers_namespace(self, namespace: str) -> bool:
        """Return True if all objects of a namespace are held here; an empty name means all watched namespaces."""
        if namespace:
            return self.covering(ObjectKey(namespace, "")) is not None
        if self._followed is not None and set(self._informers) != set(self._followed.names):
            return False
        if self._selection.is_narrowed or self._selection.shard is not None:
            return False
        return all(informer.feed.complete for informer in self.informers)

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is held, or None if it is not held."""
        informer = self.informer_of(key.namespace)
        return None if informer is None else informer.get_raw(key)

    def all_keys(self) -> Iterator[ObjectKey]:
        """Yield the keys of all objects."""
        for informer in self.informers:
            yield from informer.keys()

    def select(self, namespace: str = "", labels: str = "") -> "Selected[T]":
        """Return the encoded objects, of one namespace or all, with these labels or any."""
        return [(informer, informer.select(namespace, labels)) for informer in self._chosen(namespace)]

    def select_by_index(
        self, index: Index[T], value: str, namespace: str = "", labels: str = ""
    ) -> "Selected[T]":
        """Return the encoded objects under a value; an index is maintained from its first use on."""
        self.add_index(index)
        return [
            (informer, informer.select_by_index(index, value, namespace, labels))
            for informer in self._chosen(namespace)
        ]

    def keys_by_index(self, index: Index[T], value: str) -> "list[ObjectKey]":
        """Return the keys under a value; an index is maintained from its first use on."""
        self.add_index(index)
        return [key for informer in self.informers for key in informer.keys_by_index(index, value)]

    def add_index(self, index: Index[T]) -> None:
        """Maintain an index from now on."""
        if index not in self._indexes:
            self._indexes.add(index)
            for informer in self.informers:
                informer.add_index(index)

    def subscribe(self, subscriber: Callable[[StoreChange], None]) -> None:
        """Call the function for each object that is held, and for each change that follows."""
        self._subscribers.append(subscriber)
        for namespace, informer in self._informers.items():
            self._unsubscribe.setdefault(namespace, []).append(informer.subscribe(subscriber))

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> None:
        """Call the function once for each state of an object that does not fit its class."""
        self._undecodable_listeners.append(listener)
        for namespace, informer in self._informers.items():
            self._unsubscribe.setdefault(namespace, []).append(informer.on_undecodable(listener))

    def close(self) -> None:
        """Notify no more subscribers, and release the informers."""
        for namespace in (*self._informers, *self._opened):
            self.leave(namespace)

    async def wait_synced(self) -> None:
        """Wait until all informers are filled; raise CacheSyncTimeout if that takes too long."""
        for informer in tuple(self.informers):
            await informer.wait_synced(optional=self.optional)

    def _informer(self, namespace: str) -> Informer[T]:
        selection = msgspec.structs.replace(self._selection, namespace=namespace)
        return self._cache.informer(selection, self._cls, optional=self.optional)

    def _chosen(self, namespace: str) -> Collection[Informer[T]]:
        """Return the informers with objects of a namespace, or all of them."""
        if not namespace:
            return self.informers
        informer = self.informer_of(namespace)
        return () if informer is None else (informer,)


def _namespaces(kind: Kind, selector: Selector, namespaces: Sequence[str]) -> Sequence[str]:
    if not kind.namespaced:
        return ("",)
    if selector.namespace:
        return (selector.namespace,)
    # A namespace that is named twice must not be watched, nor listed, twice.
    return tuple(dict.fromkeys(namespaces)) or ("",)


AnyInformerSet = InformerSet[Any]


class CacheReader:
    """Read objects of the kinds that one controller declares: from its informers, else from the server."""

    def __init__(
        self,
        client: Client,
        permissions: Permissions,
        informer_sets: Sequence[AnyInformerSet],
        namespaces: Sequence[str] = (),
        followed: FollowedNamespaces | None = None,
    ) -> None:
        self.permissions = permissions
        self._client = client
        self._informer_sets = informer_sets
        self._sets_of: dict[GroupVersionKind, list[AnyInformerSet]] = {}
        # Whole objects first: a read prefers them to those that a transform has changed.
        for one in sorted(informer_sets, key=lambda one: not one.whole):
            self._sets_of.setdefault(one.kind.gvk, []).append(one)
        self._namespaces = tuple(dict.fromkeys(namespaces)) or ("",)
        self._followed = followed

    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Return one object, newly decoded, or None if it does not exist."""
        described = kind_of(kind)
        held = self._covering(described, key)
        if held is None:
            return await self.find_live(kind, key)
        form, informer = held
        raw = informer.get_raw(key)
        _note_read(described, key, raw)
        if form == kind:
            return informer.get(key)
        return None if raw is None else decode_as(kind, raw.raw)

    async def find_live(self, kind: Any, key: ObjectKey) -> Any:
        """Read one object from the server; return None if it does not exist."""
        raw = await self.read(kind_of(kind), key)
        return None if raw is None else decode_as(kind, raw.raw)

    async def list(self, kind: Any, value: str | None, namespace: str, labels: str) -> "list[Any]":
        """Return the objects of a kind, or those with a value in an index; no namespace means all watched ones."""
        index, form = _index_and_form(kind)
        held = next(
            (one for one in self._informer_sets if one.form == form and one.covers_namespace(namespace)), None
        )
        if held is None:
            return await self.list_live(kind, value, namespace, labels)
        selected = (
            held.select(namespace, labels)
            if index is None
            else held.select_by_index(index, value or "", namespace, labels)
        )
        if (entry := current()) is not None:
            states = [raw for _, raws in selected for raw in raws]
            entry.add(CachedList(held.kind, namespace, labels, None if index is None else value, states))
        return [found for informer, raws in selected for found in informer.decode_all(raws)]

    async def list_live(self, kind: Any, value: str | None, namespace: str, labels: str) -> "list[Any]":
        """List from the server like `list`."""
        index, form = _index_and_form(kind)
        described = kind_of(form)
        self.permissions.require(described, "list")
        # The operator's roles may be limited to the namespaces that it watches.
        chosen = (namespace,) if namespace or not described.namespaced else self._watched_namespaces()
        try:
            listed = [
                found
                for one in chosen
                for found in await self._client.list(form, namespace=one, labels=labels)
            ]
        except NotFound:
            if not self._is_optional(described):
                raise
            return []
        if index is None:
            return listed
        return [found for found in listed if value in tuple(index.values(found))]

    async def get_raw(self, kind: Kind, key: ObjectKey) -> RawObject | None:
        """Return one object, unchanged by transforms, or None if it does not exist; a write may be based on it."""
        held = self._covering(kind, key, whole=True)
        if held is None:
            return await self.read(kind, key)
        raw = held[1].get_raw(key)
        _note_read(kind, key, raw)
        return raw

    async def read(self, kind: Kind, key: ObjectKey) -> RawObject | None:
        """Read one object from the server; return None if it does not exist."""
        self.permissions.require(kind, "get")
        try:
            response = await self._client.raw(requests.get(kind, key.name, key.namespace))
        except NotFound as missing:
            if missing.kind_missing and not self._is_optional(kind):
                raise
            return None
        return raw_object(response.body)

    def is_absent(self, kind: Kind) -> bool:
        """Return True if the kind is optional and the server does not serve it."""
        return any(
            informer.feed.absent
            for one in self._informer_sets
            if one.optional and one.kind.gvk == kind.gvk
            for informer in one.informers
        )

    def is_gone(self, kind: Kind, key: ObjectKey, uid: str) -> bool:
        """Return True if the kind is watched and no informer holds this object."""
        watched = [
            one for one in self._informer_sets if (one.kind.group, one.kind.kind) == (kind.group, kind.kind)
        ]
        held = (one.get_raw(key) for one in watched)
        return bool(watched) and not any(found is not None and found.meta.uid == uid for found in held)

    def _is_optional(self, kind: Kind) -> bool:
        return any(one.optional and one.kind.gvk == kind.gvk for one in self._informer_sets)

    def _covering(
        self, kind: Kind, key: ObjectKey, *, whole: bool = False
    ) -> tuple[type[Any] | Kind, Informer[Any]] | None:
        """Return the informer that covers this key, and the form of its objects; prefer one that holds them whole."""
        for one in self._sets_of.get(kind.gvk, ()):
            informer = one.informer_of(key.namespace)
            # An optional kind may not have been read yet: a server that is unavailable does not delay the start.
            if (
                informer is not None
                and (one.whole or not whole)
                and informer.covers(key)
                and informer.feed.complete
            ):
                return one.form, informer
        return None

    def _watched_namespaces(self) -> Sequence[str]:
        """Return the namespaces that the operator watches; an empty name means all."""
        return self._namespaces if self._followed is None else sorted(self._followed.names)


class ContextReader(Reader):
    """Read for one reconcile: names are in the object's namespace by default, references are those of the object.

    With `live`, objects are read from the server instead of the cache (`ctx.live`).
    """

    def __init__(
        self, reader: CacheReader, controller: Controller[Any], state: RawObject, *, live: bool
    ) -> None:
        self._controller = controller
        self._state = state
        self._namespace = state.meta.namespace
        self._find = reader.find_live if live else reader.find
        self._list = reader.list_live if live else reader.list
        self._is_absent = reader.is_absent

    async def get(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object; raise NotFound if it does not exist."""
        form, key = self._named(kind, name, namespace)
        if key is None:
            raise self._names_none(kind)
        found = await self._find(form, key)
        if found is None:
            reason = "the cluster does not serve this optional kind" if self._is_absent(kind_of(form)) else ""
            raise _not_found(kind_of(form), key, reason)
        return found

    async def find(self, kind: Any, name: str | None = None, namespace: str | None = None) -> Any:
        """Return one object, or None if it does not exist."""
        form, key = self._named(kind, name, namespace)
        return None if key is None else await self._find(form, key)

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
        """Return the objects of a kind: all, those with a value in an index, or those that a reference refers to."""
        if isinstance(kind, FieldReference):
            field = cast("FieldReference[Any]", kind)
            found = [await self._find(field.kind, key) for key in self._references(field)]
            return [one for one in found if one is not None]
        chosen = namespace_to_list(kind, namespace, all_namespaces, self._namespace)
        return await self._list(kind, value, chosen, labels)

    def _named(self, kind: Any, name: str | None, namespace: str | None) -> tuple[Any, ObjectKey | None]:
        """Return the form and the key to read; the key is None if the field of a reference is empty."""
        if not isinstance(kind, FieldReference):
            if name is None:
                raise InvalidRequest(f"get {kind_of(kind).resource}: pass the name of the object")
            return kind, key_to_read(kind_of(kind), name, namespace, self._namespace)
        field = cast("FieldReference[Any]", kind)
        keys = self._references(field)
        if self._controller.references[field].many:
            raise InvalidRequest(f"{field} may name several objects: read them with ctx.list(...)")
        return field.kind, keys[0] if keys else None

    def _references(self, field: FieldReference[Any]) -> "list[ObjectKey]":
        bound = self._controller.references.get(field)
        if bound is None:
            raise UndeclaredAccess(
                f"controller {self._controller.name!r} does not declare {field}: add it to its watches="
            )
        return bound.keys(parse(self._state.raw))

    def _names_none(self, field: FieldReference[Any]) -> NotFound:
        kind, owner = kind_of(field.kind), kind_of(self._controller.kind)
        message = f"{owner.kind} {self._state.meta.key} names no {kind.kind}: {field.path} is empty"
        # A NotFound without a name would mean that the kind is missing.
        return _not_found_because(kind, field.path, kind.resource, message)


def _note_read(kind: Kind, key: ObjectKey, state: RawObject | None) -> None:
    if (entry := current()) is not None:
        entry.add(CachedRead(kind, key, state))


def key_to_read(kind: Kind, name: str, namespace: str | None, default: str) -> ObjectKey:
    """Return the key to read, by default in the reconciled object's namespace."""
    if not kind.namespaced:
        return ObjectKey("", name)
    return ObjectKey(default if namespace is None else namespace, name)


def namespace_to_list(given: Any, namespace: str | None, all_namespaces: bool, default: str) -> str:
    """Return the namespace to list, empty for all of them; raise InvalidRequest if none is implied."""
    kind = kind_of(_index_and_form(given)[1])
    if namespace and all_namespaces:
        raise InvalidRequest(f"list {kind.resource}: pass namespace= or all_namespaces=True, not both")
    if all_namespaces or not kind.namespaced:
        return ""
    chosen = default if namespace is None else namespace
    if not chosen:
        raise InvalidRequest(
            f"list {kind.resource}: the reconciled object is cluster-scoped: "
            'pass namespace="..." or all_namespaces=True'
        )
    return chosen


def _not_found(kind: Kind, key: ObjectKey, reason: str = "") -> NotFound:
    """Return the NotFound error that the API server would return, with a reason added if there is one."""
    message = f'{kind.resource} "{key.name}" not found' + (f": {reason}" if reason else "")
    return _not_found_because(kind, key.name, f"{kind.resource} {key}", message)


def _not_found_because(kind: Kind, name: str, subject: str, message: str) -> NotFound:
    details = StatusDetails(name=name, group=kind.group, kind=kind.resource)
    status = Status(status="Failure", message=message, reason="NotFound", details=details, code=404)
    return NotFound(status, verb="get", object=subject)


def _index_and_form(given: Any) -> tuple[Index[Any] | None, Any]:
    if isinstance(given, Index):
        index = cast("Index[Any]", given)
        return index, index.kind
    return None, given
