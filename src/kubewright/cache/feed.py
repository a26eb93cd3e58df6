"""One selection of objects, cached as bytes and kept up to date by one watch; subscribers are notified of each change.

A kind that the server does not serve is *absent*: the watcher retries with backoff (pauses of at most 12.5 s), as it
does after any rejected request. This needs no permissions beyond those on the kind itself and detects APIServices as
well as CRDs; `cache/definitions.py` shortens the pause if CRDs may be watched. A required feed reports an absent kind
as a problem. For an optional one it is a normal state: the cache is empty, and reads find nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, nullcontext

import msgspec

from kubewright.api import (
    Forbidden,
    Kind,
    KubewrightError,
    NotFound,
    ObjectKey,
    RawObject,
    ServiceUnavailable,
)
from kubewright.cache.selection import Selection
from kubewright.cache.source import ListerWatcher
from kubewright.cache.store import Store, StoreChange
from kubewright.cache.trimming import Trimmer
from kubewright.cache.watcher import (
    Applied,
    Deleted,
    Event,
    Events,
    Failed,
    Progressed,
    Restarted,
    Resumed,
    Synced,
    watch_forever,
)
from kubewright.guards import must_propagate
from kubewright.metrics import Registry

Subscriber = Callable[[StoreChange], None]

STALE_AFTER = 60.0
"""Seconds after which a failing watch makes the operator unready: its view of the cluster is old."""
_CONFIRMED = 2
"""After this many rejections in a row, the cached objects count as deleted together with their kind."""
_YIELD_AFTER = 500
_GAUGES = ("kubewright_cache_objects", "kubewright_cache_undecodable_objects")
_LABELS = ("resource", "namespace", "labels", "fields", "content")

_log = logging.getLogger("kubewright.cache")


class CacheSyncTimeout(KubewrightError):
    """An informer did not get its objects in time; the message has the informer and the server's response."""


class Undecodable(msgspec.Struct, frozen=True):
    """An object, and why it could not be decoded, transformed or indexed."""

    key: ObjectKey
    object: RawObject
    error: BaseException


class UndecodableObjects:
    """Report each bad state of an object to the listeners once; forget it when the object changes."""

    def __init__(self) -> None:
        self._known: dict[ObjectKey, Undecodable] = {}
        self._listeners: list[Callable[[Undecodable], None]] = []

    def report(self, obj: RawObject, error: BaseException) -> None:
        """Notify the listeners, unless this state was reported before."""
        key = obj.meta.key
        known = self._known.get(key)
        if known is not None and _same_state(known.object, obj):
            return
        found = self._known[key] = Undecodable(key, obj, error)
        for listener in list(self._listeners):
            listener(found)

    def changed(self, key: ObjectKey, new: RawObject | None) -> None:
        """Drop what was reported about the object if this is another state of it."""
        known = self._known.get(key)
        if known is not None and (new is None or not _same_state(known.object, new)):
            del self._known[key]

    def listen(self, listener: Callable[[Undecodable], None]) -> Callable[[], None]:
        """Call this function for each bad state that is known or follows; return a function that unsubscribes."""
        self._listeners.append(listener)
        for found in list(self._known.values()):
            listener(found)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        return len(self._known)


def _same_state(one: RawObject, other: RawObject) -> bool:
    return (one.meta.uid, one.meta.resource_version) == (other.meta.uid, other.meta.resource_version)


class FeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that all feeds of a cache share."""

    metrics: Registry
    sync_timeout: float = 120.0
    field_managers: Collection[str] = ()
    streaming: bool = True
    filling: Callable[[], AbstractContextManager[None]] = nullcontext
    kind_missing: Callable[[Kind], None] = lambda kind: None
    """Called when the server responds that it does not serve a kind."""
    kind_served: Callable[[Kind], None] = lambda kind: None
    """Called when a kind that was missing is served."""


class Feed:
    """The objects of one selection as bytes; one watch serves all informers of it, whatever their classes."""

    def __init__(
        self, source: ListerWatcher, selection: Selection, options: FeedOptions, *, required: bool = True
    ) -> None:
        self.selection = selection
        self.required: bool = required
        """True if one of its users requires the kind."""
        self.undecodable: UndecodableObjects = UndecodableObjects()
        self._source = source
        self._options = options
        self._trimmer = Trimmer(selection, options.field_managers)
        self._store = Store(selection, self._trim)
        self.objects: Mapping[ObjectKey, RawObject] = self._store.objects
        """All objects as they are stored."""
        self._indexers: list[Subscriber] = []
        self._subscribers: list[Subscriber] = []
        self._synced = asyncio.Event()
        self._settled = asyncio.Event()
        self._answered = asyncio.Event()
        self._refusals = 0
        self._absent = False
        self._failure: Failed | None = None
        self._failing_since = 0.0
        self._logged = ""
        self.retry_event: asyncio.Event = asyncio.Event()
        """Ends the pause of the watcher after a failure."""
        self._gauges: list[Callable[[], bool]] = []
        for name, text, read in (
            ("kubewright_cache_objects", "Number of objects held", lambda: len(self._store.objects)),
            (
                "kubewright_cache_undecodable_objects",
                "Objects not fitting their class",
                lambda: len(self.undecodable),
            ),
        ):
            gauge = options.metrics.gauge(name, text, _LABELS)
            # Feeds of several shards have the same labels: their numbers are added.
            self._gauges.append(gauge.labels(**self._metric_labels()).add_function(read))

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
                retry_now=self.retry_event,
            )
            async with aclosing(events):
                async for arrived in events:
                    self.take(arrived)
                    if self._synced.is_set():
                        filling.close()
                    count += len(arrived)
                    if count >= _YIELD_AFTER:
                        # Yield to other tasks: a stream may always have data to read.
                        count = 0
                        await asyncio.sleep(0)

    def take(self, events: Events) -> None:
        """Apply what the watcher reported; called by `run`, or for a shard by the stream that it shares with others."""
        for event in events:
            self._handle(event)

    def retry_now(self) -> None:
        """End the pause after a failed attempt to read: the next one is expected to succeed."""
        self.retry_event.set()

    @property
    def synced(self) -> bool:
        """Return True if the whole selection has been read once."""
        return self._synced.is_set()

    @property
    def absent(self) -> bool:
        """Return True if the server does not serve the kind, and no user requires it."""
        return self._absent

    @property
    def complete(self) -> bool:
        """Return True if the cache has the whole selection, as of the last watch event: reads need no request."""
        return self._synced.is_set() or self._absent

    async def wait_synced(self, timeout: float | None = None, *, optional: bool = False) -> None:
        """Wait until the whole selection has been read once; raise CacheSyncTimeout if that takes too long.

        With `optional` it is enough if the server responded that it does not serve the kind, or not now.
        """
        limit = self._options.sync_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                await (self._settled if optional else self._synced).wait()
        except TimeoutError:
            reason = f": {self._failure.error}" if self._failure else ""
            raise CacheSyncTimeout(f"{self.selection} did not sync within {limit:g} s{reason}") from None

    async def wait_answered(self) -> None:
        """Wait until the whole selection has been read once, or the server has refused that."""
        await self._answered.wait()

    @property
    def is_forbidden(self) -> bool:
        """Return True if the last attempt to read was rejected for missing permissions."""
        return self._failure is not None and isinstance(self._failure.error, Forbidden)

    @property
    def problems(self) -> Sequence[str]:
        """Return why the objects cannot be read: a missing kind, a missing rule, or a failure that lasts."""
        failure = self._failure
        if failure is None or (not self.required and not _is_misconfigured(failure)):
            return []
        if failure.refused:
            return [f"{self.selection}: {failure.error}"]
        failed_for = asyncio.get_running_loop().time() - self._failing_since
        return [f"{self.selection}: the watch has failed for {failed_for:.0f} s: {failure.error}"] * (
            failed_for >= STALE_AFTER
        )

    def add_indexer(self, indexer: Subscriber) -> Callable[[], None]:
        """Call this function for each change before any subscriber, so that subscribers find indexes up to date.

        The returned function removes it.
        """
        self._indexers.append(indexer)
        return lambda: self._indexers.remove(indexer)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call this function for each cached object, as an initial change, and for each change that follows.

        The returned function ends the subscription.
        """
        self._subscribers.append(subscriber)
        for key, raw in list(self._store.objects.items()):
            self._call(subscriber, StoreChange(key, None, raw, initial=True))
        return lambda: self._subscribers.remove(subscriber)

    def record_write(self, raw: RawObject) -> None:
        """Store the response to our own write, so that it can be read at once."""
        # Trimming changes the record; the caller still uses this one, and may pass it to other feeds.
        self._notify(self._store.record_write(raw.copied()))

    def record_delete(self, key: ObjectKey, uid: str, resource_version: str) -> None:
        """Remove an object after our own delete; its last version may be unknown."""
        self._notify(self._store.record_delete(key, uid, resource_version))

    def close(self) -> None:
        """Remove this feed from the metrics."""
        for name, remove in zip(_GAUGES, self._gauges, strict=True):
            if not remove():
                self._options.metrics.gauge(name, "", _LABELS).remove(**self._metric_labels())

    def _handle(self, event: Event) -> None:
        match event:
            case Applied():
                self._notify(self._store.apply(event.object))
            case Deleted(obj):
                self._notify(self._store.delete(obj))
            case Progressed(version):
                self._store.advance(version)
            case Resumed():
                pass
            case Restarted():
                self._store.begin_list()
                return
            case Synced(version):
                self._notify(self._store.end_list(version))
                self._absent = False
                self._synced.set()
                self._settled.set()
                self._answered.set()
            case Failed():
                self._failed(event)
                return
        if self._failure is not None:
            self._recovered()

    def _trim(self, obj: RawObject) -> RawObject:
        try:
            return self._trimmer.trim(obj)
        except BaseException as error:
            if must_propagate(error):
                raise
            # The author's transform failed: store the whole object rather than none.
            self.undecodable.report(obj, error)
            return obj

    def _notify(self, changes: Sequence[StoreChange]) -> None:
        for change in changes:
            if len(self.undecodable):
                self.undecodable.changed(change.key, change.new)
            for indexer in self._indexers:
                self._call(indexer, change)
            for subscriber in self._subscribers:
                self._call(subscriber, change)

    def _call(self, subscriber: Subscriber, change: StoreChange) -> None:
        try:
            subscriber(change)
        except BaseException as error:
            if must_propagate(error):
                raise
            _log.error(
                "A subscriber failed on a change of %s %s",
                self.selection.kind.resource,
                change.key,
                exc_info=error,
            )

    def _failed(self, failed: Failed) -> None:
        missing = isinstance(failed.error, NotFound) and failed.error.kind_missing
        expected = not self.required and self._note_absence(failed.error)
        if not expected and not failed.ordinary and self._logged != str(failed.error):
            if missing and not self.selection.kind.builtin:
                _log.warning("Waiting for the CRD of %s: %s", self.selection, _remedy(self.selection.kind))
            else:
                _log.warning(
                    "Cannot read %s, trying again in %.1f s: %s",
                    self.selection,
                    failed.retry_in,
                    failed.error,
                )
            self._logged = str(failed.error)
        if missing:
            self._options.kind_missing(self.selection.kind)
        if self._failure is None:
            self._failing_since = asyncio.get_running_loop().time()
        self._failure = failed
        if failed.refused:
            self._answered.set()

    def _note_absence(self, error: KubewrightError) -> bool:
        """Return True if the server does not serve the kind; drop the cached objects once that is certain."""
        if isinstance(error, ServiceUnavailable):
            self._settled.set()
        if not isinstance(error, NotFound) or not error.kind_missing:
            return False
        self._refusals += 1
        if not self._absent and (self._refusals >= _CONFIRMED or not self._synced.is_set()):
            _log.info("%s: the cluster does not serve this optional kind, waiting for it", self.selection)
            self._absent = True
            self._synced.clear()
            self._settled.set()
            self._notify(self._store.clear())
        return True

    def _recovered(self) -> None:
        self._refusals = 0
        if self._logged:
            failed_for = asyncio.get_running_loop().time() - self._failing_since
            _log.info("Reading %s again after %.1f s", self.selection, failed_for)
        self._options.kind_served(self.selection.kind)
        self._failure, self._logged = None, ""

    def _metric_labels(self) -> dict[str, str]:
        chosen = self.selection
        return {
            "resource": chosen.kind.resource,
            "namespace": chosen.namespace,
            "labels": chosen.labels,
            "fields": chosen.fields,
            "content": "metadata" if chosen.metadata_only else "transformed" if chosen.transform else "whole",
        }


def _remedy(kind: Kind) -> str:
    """Return how the CRD of a missing kind is installed."""
    if kind.external:
        return "install the project that provides it, or apply its CRDs with `kubewright apply -f`"
    return "install the CRDs of this operator with `kubewright install` or `kubewright run --install`"


def _is_misconfigured(failure: Failed) -> bool:
    """Return True if permissions are missing: that is an error also for an optional kind."""
    return failure.refused and not isinstance(failure.error, NotFound)
