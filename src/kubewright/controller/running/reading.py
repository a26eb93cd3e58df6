"""Reads of one controller: from its informers if they are certain to hold the object, else from the server.

A cached read passes through three objects. `ContextReader` resolves the namespace or reference, `CacheReader` chooses the informer that
covers the key, and the informer decodes the object from its store. An informer *covers* a key if an object of that key,
should it exist, is certain to be in it and whole: a watch that is narrowed by labels, fields or to metadata covers
nothing, so those reads are sent to the server.

An `InformerSet` holds the informers of one declared kind, one for each namespace that the operator watches.
"""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import WeakSet

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
from kubewright.cache import Cache, Index, Informer, Selection, StoreChange, Undecodable
from kubewright.client import Client, requests
from kubewright.controller.context import Reader
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import UndeclaredAccess
from kubewright.controller.permissions import Permissions
from kubewright.controller.references import FieldReference
from kubewright.controller.watches import Selector
from kubewright.journal import CachedList, CachedRead, current

T = TypeVar("T")
Selected = list[tuple[Informer[T], Sequence[RawObject]]]
"""Encoded objects, with the informer that decodes them."""


class InformerSet(Generic[T]):
    """The informers of one declared kind and selector, one for each watched namespace."""

    def __init__(
        self,
        cache: Cache,
        kind: type[T] | Kind,
        selector: Selector,
        namespaces: Sequence[str],
        *,
        metadata_only: bool = False,
        optional: bool = False,
    ) -> None:
        self.kind: Kind = kind_of(kind)
        self.optional: bool = optional
        """True if the cluster need not serve the kind."""
        self.form: type[T] | Kind = kind
        """What objects are decoded to: a class, or the kind for JSON objects."""
        self.whole: bool = not metadata_only and selector.transform is None
        """True if objects are held as the server has them, so that a write may build on them."""
        self._indexes: WeakSet[Index[T]] = WeakSet()
        cls: Any = Object if metadata_only else dict if isinstance(kind, Kind) else kind
        self.informers: tuple[Informer[T], ...] = tuple(
            cache.informer(
                Selection(
                    self.kind, namespace, selector.labels, selector.fields, metadata_only, selector.transform
                ),
                cls,
                optional=optional,
            )
            for namespace in _namespaces(self.kind, selector, namespaces)
        )

    def covering(self, key: ObjectKey) -> Informer[T] | None:
        """Return the informer that holds the object of this key if there is one, or None if that is not certain."""
        for informer in self.informers:
            if informer.covers(key) and informer.feed.complete:
                return informer
        return None

    def covers_namespace(self, namespace: str) -> bool:
        """Return True if every object of a namespace (of all watched ones if it is empty) is held here."""
        chosen = [informer.selection for informer in self.informers]
        if any(one.labels or one.fields or one.metadata_only for one in chosen):
            return False
        if not all(informer.feed.complete for informer in self.informers):
            return False
        return not namespace or self.covering(ObjectKey(namespace, "")) is not None

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is held, or None if it is not held."""
        for informer in self.informers:
            found = informer.get_raw(key)
            if found is not None:
                return found
        return None

    def all_keys(self) -> Iterator[ObjectKey]:
        """Yield the keys of all objects."""
        for informer in self.informers:
            yield from informer.keys()

    def select(self, namespace: str = "", labels: str = "") -> "Selected[T]":
        """Return the encoded objects, of one namespace or all, with these labels or any."""
        return [(informer, informer.select(namespace, labels)) for informer in self.informers]

    def select_by_index(
        self, index: Index[T], value: str, namespace: str = "", labels: str = ""
    ) -> "Selected[T]":
        """Return the encoded objects under a value; an index is maintained from its first use on."""
        self.add_index(index)
        return [
            (informer, informer.select_by_index(index, value, namespace, labels))
            for informer in self.informers
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
        for informer in self.informers:
            informer.subscribe(subscriber)

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> None:
        """Call the function once for each state of an object that does not fit its class."""
        for informer in self.informers:
            informer.on_undecodable(listener)

    async def wait_synced(self) -> None:
        """Wait until all informers are filled; raise CacheSyncTimeout if that takes too long."""
        for informer in self.informers:
            await informer.wait_synced(optional=self.optional)


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
    ) -> None:
        self.permissions = permissions
        self._client = client
        self._informer_sets = informer_sets
        self._informers: dict[GroupVersionKind, list[tuple[AnyInformerSet, Informer[Any]]]] = {}
        # Whole objects first: a read prefers them to those that a transform has changed.
        for one in sorted(informer_sets, key=lambda one: not one.whole):
            self._informers.setdefault(one.kind.gvk, []).extend((one, informer) for informer in one.informers)
        self._namespaces = tuple(dict.fromkeys(namespaces))

    async def find(self, kind: Any, key: ObjectKey) -> Any:
        """Return one object decoded afresh, or None if it does not exist."""
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
        """Return the objects of a kind, or those that an index holds under a value; no namespace means all watched."""
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
        watched = self._namespaces if described.namespaced else ()
        # The operator's roles may be limited to the namespaces that it watches.
        chosen = (namespace,) if namespace or not watched else watched
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
        """Return one object as the server has it, or None if it does not exist; a write may build on it."""
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
        for one, informer in self._informers.get(kind.gvk, ()):
            if (one.whole or not whole) and informer.covers(key):
                return one.form, informer
        return None


class ContextReader(Reader):
    """Read on behalf of one reconcile: a name is meant in the object's namespace, a reference is that of the object.

    `live` reads from the server, past the cache: `ctx.live`.
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
        """Return the objects of a kind, those that an index holds under a value, or those that a reference names."""
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
        # A response without a name would state that the kind is missing.
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
    """Return the NotFound that the API server answers, with a reason of our own if there is one."""
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
