"""What triggers a reconcile, as data: watched kinds, owned children, events of external systems."""

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast, overload

import msgspec

from kubewright.api import (
    DeclarationError,
    Index,
    Kind,
    Object,
    ObjectKey,
    PartialMeta,
    RawObject,
    SelectorError,
    kind_of,
    names,
    parse_fields,
    parse_labels,
)
from kubewright.controller.predicates import Change, Predicate
from kubewright.guards import attempt

T = TypeVar("T")
E = TypeVar("E")

Lookup = Callable[[Index[Any], str], Iterable[ObjectKey]]
"""Finds the keys that an index holds under a value."""

HoldsUid = Callable[[str], bool]
"""Returns True if an owner of this uid is reconciled here, and not in another shard."""

ReportFailure = Callable[[RawObject, BaseException], None]
"""Reports the state of an object on which a function of the author failed."""


def passes(when: Predicate[Any] | None, change: Change[Any], report: ReportFailure) -> bool:
    """Return True if the predicate passes the change, or fails on it: one reconcile too many does no harm."""
    if when is None:
        return True

    def failed(error: BaseException) -> bool:
        state = change.after or change.before
        if state is not None:
            report(state, error)
        return True

    return attempt(when, change, failed)


def checked_keys(keys: Iterable[Any], source: str) -> set[ObjectKey]:
    """Return the keys that a function of the author returned; raise TypeError for values that are not ObjectKeys."""
    found = set(keys)
    for key in found:
        if not isinstance(key, ObjectKey):
            raise TypeError(f"{source} returned {key!r}: expected ObjectKey(namespace, name)")
    return found


def _no_keys(report: ReportFailure, state: RawObject, error: BaseException) -> set[ObjectKey]:
    report(state, error)
    return set()


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Narrow what is watched: fewer objects in memory, fewer events; reads of other objects go to the server.

    `transform` is called with each object's JSON object before it is stored and returns what to store; it must
    leave name, namespace, uid and resourceVersion in the metadata. Reads from the cache see no more than that.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    transform: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        parsers = (("labels", self.labels, parse_labels), ("fields", self.fields, parse_fields))
        for name, text, parse in parsers:
            try:
                parse(text)
            except SelectorError as error:
                raise SelectorError(f"Selector({name}={text!r}): {error}") from None


EVERYWHERE = Selector()


class Watch(msgspec.Struct, Generic[T], frozen=True, eq=False, kw_only=True):
    """Another kind whose changes trigger reconciles; created by `watch`."""

    kind: type[T] | Kind
    map: Callable[[T], Iterable[ObjectKey]] | None
    via: Index[Any] | None
    key: Callable[[T], str | Iterable[str]] | None
    when: Predicate[T] | None
    selector: Selector
    metadata_only: bool = False
    optional: bool = False

    @property
    def form(self) -> type[T] | Kind:
        """Return what the functions are given: the kind, or an `Object` of metadata alone."""
        return cast("type[T]", Object) if self.metadata_only else self.kind

    def requests(self, change: Change[T], lookup: Lookup, report: ReportFailure) -> set[ObjectKey]:
        """Return the keys to reconcile: filtered, then mapped from the states before and after.

        A state that cannot be decoded or mapped is reported, and the other one is mapped all the same.
        """
        keys: set[ObjectKey] = set()
        if not passes(self.when, change, report):
            return keys
        if change.before is not None:
            keys |= attempt(
                lambda change: self._keys(change.old, lookup),
                change,
                partial(_no_keys, report, change.before),
            )
        if change.after is not None:
            keys |= attempt(
                lambda change: self._keys(change.new, lookup), change, partial(_no_keys, report, change.after)
            )
        return keys

    def _keys(self, state: T | None, lookup: Lookup) -> set[ObjectKey]:
        if state is None:
            return set()
        if self.map is not None:
            return checked_keys(self.map(state), f"the map of watch({kind_of(self.kind).kind})")
        if self.via is None or self.key is None:
            return set()
        found = self.key(state)
        values = {found} if isinstance(found, str) else set(found)
        return {key for value in values for key in lookup(self.via, value)}


@overload
def watch(
    kind: type[T] | Kind,
    *,
    map: Callable[[T], Iterable[ObjectKey]] | None = None,
    via: Index[Any] | None = None,
    key: Callable[[T], str | Iterable[str]] | None = None,
    when: Predicate[T] | None = None,
    selector: Selector = EVERYWHERE,
    metadata_only: Literal[False] = False,
    optional: bool = False,
) -> Watch[T]: ...
@overload
def watch(
    kind: type[Any] | Kind,
    *,
    map: Callable[[Object], Iterable[ObjectKey]] | None = None,
    via: Index[Any] | None = None,
    key: Callable[[Object], str | Iterable[str]] | None = None,
    when: Predicate[Object] | None = None,
    selector: Selector = EVERYWHERE,
    metadata_only: Literal[True],
    optional: bool = False,
) -> Watch[Object]: ...
def watch(
    kind: type[Any] | Kind,
    *,
    map: Callable[[Any], Iterable[ObjectKey]] | None = None,  # noqa: A002 (the author's word)
    via: Index[Any] | None = None,
    key: Callable[[Any], str | Iterable[str]] | None = None,
    when: Predicate[Any] | None = None,
    selector: Selector = EVERYWHERE,
    metadata_only: bool = False,
    optional: bool = False,
) -> Watch[Any]:
    """Reconcile on changes of another kind: by `map=` to keys, or `via=` an index and a `key=` into it.

    `metadata_only=True` has the server send metadata alone: a fraction of the memory where the kind is big and
    only names, labels or owners matter. The functions are called with an `Object`; reads of the kind go to the server.

    `optional=True` is for a kind that the cluster may not serve. The operator works without it, and watches it once its
    CRD or APIService is there; until then `ctx.list` returns no objects and `ctx.get` raises NotFound.
    """
    name = kind_of(kind).kind
    if (map is None) == (via is None):
        raise DeclarationError(
            f"watch({name}): give either map= (a function from the object to keys) "
            "or via= (an index of the reconciled kind) with key="
        )
    if (via is None) != (key is None):
        raise DeclarationError(
            f"watch({name}): via= and key= go together: key= is the value looked up in the index"
        )
    return Watch(
        kind=kind,
        map=map,
        via=via,
        key=key,
        when=when,
        selector=selector,
        metadata_only=metadata_only,
        optional=optional,
    )


WRITE_VERBS = ("create", "patch")
"""What a controller may do to its children beyond reading them."""


class Owned(msgspec.Struct, Generic[T], frozen=True, eq=False, kw_only=True):
    """A kind of children: their changes trigger a reconcile of their owner; created by `owned`."""

    kind: type[T] | Kind
    finalizer: str = ""
    when: Predicate[T] | None = None
    every_owner: bool = False
    selector: Selector = EVERYWHERE
    metadata_only: bool = False
    verbs: tuple[str, ...] = WRITE_VERBS

    @property
    def form(self) -> type[T] | Kind:
        """Return what a filter is given: the kind, or an `Object` of metadata alone."""
        return cast("type[T]", Object) if self.metadata_only else self.kind

    def requests(
        self, change: Change[T], owner: Kind, report: ReportFailure, holds: HoldsUid = lambda uid: True
    ) -> set[ObjectKey]:
        """Return the keys of the owners before and after; versions of the owner's kind do not matter."""
        # Owners first: metadata is decoded already, what a predicate reads may not be.
        found = {key for meta in change.metas for key in self.owners(meta, owner, holds)}
        if found and (self._needs_release(change) or passes(self.when, change, report)):
            return found
        return set()

    def owners(self, meta: PartialMeta, owner: Kind, holds: HoldsUid = lambda uid: True) -> set[ObjectKey]:
        """Return the keys of the owners of this kind that the child names and whose uids are held here.

        An orphan that carries our finalizer has a key without a name, so that its finalizer can be removed.
        """
        namespace = meta.namespace if owner.namespaced else ""
        found = {
            ObjectKey(namespace, reference.name)
            for reference in meta.owner_references
            if reference.kind == owner.kind
            and reference.api_version.rpartition("/")[0] == owner.group
            and (self.every_owner or reference.controller)
            and holds(reference.uid)
        }
        if not found and self.is_orphan(meta):
            return {ObjectKey(namespace, "")}
        return found

    def is_orphan(self, meta: PartialMeta) -> bool:
        """Return True if the child carries our finalizer and no owner that could remove it.

        So `kubectl delete --cascade=orphan` leaves the child of an owner. One that another object controls is
        left alone: its controller may have declared the same finalizer.
        """
        return (
            bool(self.finalizer)
            and self.finalizer in meta.finalizers
            and not any(reference.controller or self.every_owner for reference in meta.owner_references)
        )

    def _needs_release(self, change: Change[T]) -> bool:
        """Return True if our finalizer must be removed: no predicate may hide that."""
        meta = None if change.after is None else change.after.meta
        if not self.finalizer or meta is None or self.finalizer not in meta.finalizers:
            return False
        return meta.deletion_timestamp is not None or self.is_orphan(meta)


@overload
def owned(
    kind: type[T] | Kind,
    *,
    finalizer: str = "",
    when: Predicate[T] | None = None,
    every_owner: bool = False,
    selector: Selector = EVERYWHERE,
    metadata_only: Literal[False] = False,
    verbs: Sequence[str] = WRITE_VERBS,
) -> Owned[T]: ...
@overload
def owned(
    kind: type[Any] | Kind,
    *,
    finalizer: str = "",
    when: Predicate[Object] | None = None,
    every_owner: bool = False,
    selector: Selector = EVERYWHERE,
    metadata_only: Literal[True],
    verbs: Sequence[str] = WRITE_VERBS,
) -> Owned[Object]: ...
def owned(
    kind: type[Any] | Kind,
    *,
    finalizer: str = "",
    when: Predicate[Any] | None = None,
    every_owner: bool = False,
    selector: Selector = EVERYWHERE,
    metadata_only: bool = False,
    verbs: Sequence[str] = WRITE_VERBS,
) -> Owned[Any]:
    """Own children of a kind; with `finalizer=` each stays until the controller has seen its deletion.

    `metadata_only=True` holds the children's metadata alone: each apply then reads the child from the server.
    `verbs=["create"]` is for children that are created once and never changed: the role does not allow to patch them.
    """
    name = kind_of(kind).kind
    if wrong := sorted(set(verbs) - set(WRITE_VERBS)):
        raise DeclarationError(f"owned({name}): unknown verb {wrong[0]!r}; use {', '.join(WRITE_VERBS)}")
    if finalizer:
        check_finalizer(finalizer, f"owned({name})")
        if "patch" not in verbs:
            raise DeclarationError(f"owned({name}): finalizer= needs the verb patch, to remove the finalizer")
    return Owned(
        kind=kind,
        finalizer=finalizer,
        when=when,
        every_owner=every_owner,
        selector=selector,
        metadata_only=metadata_only,
        verbs=tuple(verbs),
    )


class Source(msgspec.Struct, Generic[E], frozen=True, eq=False):
    """Events of an external system; created by `source`."""

    events: Callable[[], AsyncIterable[E]]
    map: Callable[[E], Iterable[ObjectKey]]


def source(
    events: AsyncIterable[E] | Callable[[], AsyncIterable[E]],
    *,
    map: Callable[[E], Iterable[ObjectKey]],  # noqa: A002 (the author's word)
) -> Source[E]:
    """Reconcile on events of an external system; pass a function if the stream can be opened again after a failure."""
    if isinstance(events, AsyncIterable):
        stream = cast("AsyncIterable[E]", events)
        return Source(lambda: stream, map)
    return Source(events, map)


def check_finalizer(name: str, where: str) -> None:
    """Raise DeclarationError for a finalizer that the API server would reject."""
    problems = names.qualified_name(name)
    if problems:
        raise DeclarationError(f'{where}: finalizer {name!r}: {problems[0]}; write it as "example.com/name"')
