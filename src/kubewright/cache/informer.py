"""One selection of objects kept up to date, read as typed objects, told to subscribers as changes."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_origin

from kubewright.api import (
    Index,
    KubewrightError,
    ObjectKey,
    RawObject,
    decode,
    parse,
    parse_labels,
    raw_object,
)
from kubewright.cache.indexes import IndexTable
from kubewright.cache.selection import Selection
from kubewright.cache.source import Source
from kubewright.cache.store import Change, Store
from kubewright.cache.trimming import Trimmer
from kubewright.cache.undecodable import Undecodable, UndecodableObjects
from kubewright.cache.watcher import (
    Applied,
    Deleted,
    Event,
    Failed,
    Progressed,
    Restarted,
    Synced,
    watch_forever,
)
from kubewright.metrics import Registry

T = TypeVar("T")

Subscriber = Callable[[Change], None]

_BREATH = 500
_LABELS = ("resource", "namespace", "labels", "fields", "content")

logger: logging.Logger = logging.getLogger("kubewright.cache")


class CacheSyncTimeout(KubewrightError):
    """An informer did not get its objects in time; the message says which and what the server answered."""


@dataclass(frozen=True, kw_only=True)
class InformerOptions:
    """Hold what all informers of a cache share."""

    metrics: Registry
    sync_timeout: float = 120.0
    field_managers: Collection[str] = ()
    streaming: bool = True
    filling: Callable[[], AbstractContextManager[None]] = nullcontext


class Informer(Generic[T]):
    """Hold a selection's objects as bytes and decode a fresh one for each reader."""

    def __init__(self, source: Source, selection: Selection, cls: type[T], options: InformerOptions) -> None:
        self.selection = selection
        self._source = source
        self._cls = cls
        self._typed = (get_origin(cls) or cls) is not dict
        self._options = options
        self._store = Store(selection)
        self._trimmer = Trimmer(selection, options.field_managers)
        self._indexes: dict[Index[T], IndexTable] = {}
        self._subscribers: list[Subscriber] = []
        self._undecodable = UndecodableObjects()
        self._synced = asyncio.Event()
        self._failure: Failed | None = None
        for name, text, read in (
            ("kubewright_cache_objects", "Number of objects held", lambda: len(self._store.objects)),
            (
                "kubewright_cache_undecodable_objects",
                "Objects not fitting their class",
                self._count_undecodable,
            ),
        ):
            gauge = options.metrics.gauge(name, text, _LABELS)
            gauge.labels(**self._metric_labels()).set_function(read)

    async def run(self) -> None:
        """Follow the selection until cancelled."""
        count = 0
        with ExitStack() as filling:
            filling.enter_context(self._options.filling())
            events = watch_forever(
                self._source,
                self.selection,
                streaming=self._options.streaming,
                metrics=self._options.metrics,
            )
            async with aclosing(events):
                async for arrived in events:
                    for event in arrived:
                        self._handle(event)
                    if self._synced.is_set():
                        filling.close()
                    count += len(arrived)
                    if count >= _BREATH:
                        # A stream that is always ahead of us would keep every other task waiting.
                        count = 0
                        await asyncio.sleep(0)

    @property
    def synced(self) -> bool:
        """Return whether the whole selection has been seen once."""
        return self._synced.is_set()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the whole selection has been seen once; raise CacheSyncTimeout when that takes too long."""
        limit = self._options.sync_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                await self._synced.wait()
        except TimeoutError:
            reason = f": {self._failure.error}" if self._failure else ""
            raise CacheSyncTimeout(f"{self.selection} did not sync within {limit:g} s{reason}") from None

    @property
    def problems(self) -> Sequence[str]:
        """Return what somebody must mend before the objects can be read: a missing kind, a missing rule."""
        if self._failure is None or not self._failure.refused:
            return []
        return [f"{self.selection}: {self._failure.error}"]

    def covers(self, key: ObjectKey) -> bool:
        """Return whether an object of this key, if there is one, is surely and wholly here."""
        return self.selection.covers(key)

    def get(self, key: ObjectKey) -> T | None:
        """Return the object, decoded afresh; raise DecodeError when it does not fit its class."""
        raw = self._store.objects.get(key)
        if raw is None:
            return None
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self._undecodable.report(raw, error)
            raise

    def get_raw(self, key: ObjectKey) -> RawObject | None:
        """Return the object as it is kept."""
        return self._store.objects.get(key)

    def keys(self) -> Sequence[ObjectKey]:
        """Return the keys of all objects."""
        return list(self._store.objects)

    def list(self, namespace: str = "", labels: str = "") -> Sequence[T]:
        """Return the objects that can be decoded, of one namespace or all, with these labels or any."""
        selector = parse_labels(labels) if labels else None
        return self._decoded(
            raw
            for key, raw in self._store.objects.items()
            if (not namespace or key.namespace == namespace)
            and (selector is None or selector.matches(raw.meta.labels))
        )

    def add_index(self, index: Index[T]) -> None:
        """Keep this index from now on."""
        if index in self._indexes:
            return
        table = self._indexes[index] = IndexTable()
        for key, raw in self._store.objects.items():
            table.put(key, self._index_values(index, raw, self._decode_or_report(raw)))

    def keys_by_index(self, index: Index[T], value: str) -> Sequence[ObjectKey]:
        """Return the keys of the objects under this value."""
        return self._indexes[index].find(value)

    def by_index(self, index: Index[T], value: str) -> Sequence[T]:
        """Return the objects under this value."""
        return self._decoded(self._store.objects[key] for key in self._indexes[index].find(value))

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell this function of what is there, as initial changes, and of all that follows.

        The returned function ends the subscription.
        """
        self._subscribers.append(subscriber)
        for key, raw in list(self._store.objects.items()):
            self._call(subscriber, Change(key, None, raw, initial=True))
        return lambda: self._subscribers.remove(subscriber)

    def on_undecodable(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Tell this function once of each state of an object that does not fit its class."""
        return self._undecodable.listen(listener)

    def record_write(self, raw: RawObject) -> None:
        """Take in the answer to a write of ours, so that it is read from here at once."""
        # Trimming consumes a record; this one is the caller's, and other informers may be given it too.
        # What is selected is judged by the whole object: a selector may name what is not kept.
        self._tell(self._store.record_write(raw, self._trim(raw_object(raw.raw))))

    def record_delete(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Take in that a delete of ours has ended the object; its last version may be unknown."""
        self._tell(self._store.record_delete(key, uid, resource_version))

    def close(self) -> None:
        """Take this informer out of the metrics."""
        for name in ("kubewright_cache_objects", "kubewright_cache_undecodable_objects"):
            self._options.metrics.gauge(name, "", _LABELS).remove(**self._metric_labels())

    def _handle(self, event: Event) -> None:
        match event:
            case Applied(obj):
                self._tell(self._store.apply(self._trim(obj)))
            case Deleted(obj):
                self._tell(self._store.delete(obj))
            case Progressed(version):
                self._store.advance(version)
            case Restarted():
                self._store.begin_list()
                return
            case Synced(version):
                self._tell(self._store.end_list(version))
                self._synced.set()
            case Failed():
                self._failed(event)
                return
        if self._failure is not None:
            self._recovered()

    def _trim(self, obj: RawObject) -> RawObject:
        try:
            return self._trimmer.trim(obj)
        except Exception as error:
            # The author's transform failed: better the whole object than none.
            self._undecodable.report(obj, error)
            return obj

    def _tell(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if len(self._undecodable):
                self._undecodable.changed(change.key, change.new)
            if self._indexes:
                self._reindex(change)
            for subscriber in self._subscribers:
                self._call(subscriber, change)

    def _call(self, subscriber: Subscriber, change: Change) -> None:
        try:
            subscriber(change)
        except Exception:
            logger.exception(
                "A subscriber failed on a change of %s %s", self.selection.kind.resource, change.key
            )

    def _reindex(self, change: Change) -> None:
        if change.new is None:
            for table in self._indexes.values():
                table.remove(change.key)
            return
        obj = self._decode_or_report(change.new)
        for index, table in self._indexes.items():
            table.put(change.key, self._index_values(index, change.new, obj))

    def _index_values(self, index: Index[T], raw: RawObject, obj: T | None) -> tuple[str, ...]:
        if obj is None:
            return ()
        try:
            return tuple(dict.fromkeys(index.values(obj)))
        except Exception as error:
            self._undecodable.report(raw, error)
            return ()

    def _decode(self, raw: RawObject) -> T:
        if not self._typed:
            # The items of a list leave out what all of them have in common.
            kind = self.selection.kind
            return cast(T, {"apiVersion": kind.api_version, "kind": kind.kind, **parse(raw.raw)})
        return cast(T, decode(cast("type[Any]", self._cls), raw.raw))

    def _decode_or_report(self, raw: RawObject) -> T | None:
        try:
            return self._decode(raw)
        except KubewrightError as error:
            self._undecodable.report(raw, error)
            return None

    def _decoded(self, raws: Iterable[RawObject]) -> Sequence[T]:
        decoded = (self._decode_or_report(raw) for raw in raws)
        return [obj for obj in decoded if obj is not None]

    def _failed(self, failed: Failed) -> None:
        if self._failure is None or str(self._failure.error) != str(failed.error):
            logger.warning(
                "Cannot read %s, trying again in %.1f s: %s", self.selection, failed.retry_in, failed.error
            )
        self._failure = failed

    def _recovered(self) -> None:
        logger.info("Reading %s again", self.selection)
        self._failure = None

    def _count_undecodable(self) -> float:
        return len(self._undecodable)

    def _metric_labels(self) -> dict[str, str]:
        chosen = self.selection
        return {
            "resource": chosen.kind.resource,
            "namespace": chosen.namespace,
            "labels": chosen.labels,
            "fields": chosen.fields,
            "content": "metadata" if chosen.metadata_only else "transformed" if chosen.transform else "whole",
        }
