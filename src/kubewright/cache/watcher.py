"""Follow one selection forever: list, watch, resume, and list again if history is lost.

The watcher is in one of three states. `Streaming` and `Listing` read the current state: `Streaming` from the first
events of a watch (WatchList), `Listing` from a list in pages. `Watching` follows the changes since a version. After a
failure the watcher pauses, longer each time, and enters the same state again, or starts again with a list if the
version cannot be resumed.

Invariants:

- Everything that happens to the selection after `Synced` is reported, or a new list reports the difference.
- A version that is not part of the server's current history is detected. A cluster that was restored from a backup
  sends nothing on a watch from a later revision, so after a lost connection, and after a watch that ended without an
  event or bookmark, the current revision is read first. If it is below the last one seen, the watcher lists again.
- The watch is open again within 10 s of the server's return: pauses are at most 8 s, and failures of one kind
  do not lengthen the pauses after another kind.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from enum import Enum, auto
from typing import TypedDict

import msgspec

from kubewright.api import DecodeError, KubewrightError, RawObject, Status, WatchEvent
from kubewright.backoff import Backoff
from kubewright.cache.selection import Selection
from kubewright.cache.shard_selection import ShardSelection
from kubewright.cache.source import ListerWatcher
from kubewright.cache.stalls import Stalled, StallTimeout
from kubewright.cache.store import compare_versions
from kubewright.metrics import Registry

PAGE_SIZE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
INITIAL_EVENTS_TIMEOUT = 10.0
"""Seconds without any event after which the server is assumed not to support WatchList."""
SHORT_WATCH = 1.0

RETRY = Backoff(base=0.8, maximum=5.0, jitter=0.5)
RETRY_REFUSED = Backoff(base=0.8, maximum=10.0, jitter=0.25)
"""For a kind that is not served or not allowed: the watch should open soon after an administrator fixed that."""
MAX_RETRY_AFTER = 6.0
"""Seconds; a longer Retry-After of the server would leave the cache stale unnoticed."""

_EXPIRED = 410
_REFUSED = frozenset({401, 403, 404})
_NOT_UNDERSTOOD = frozenset({400, 405, 406, 415, 422})


class Restarted(msgspec.Struct, frozen=True, gc=False):
    """All objects follow as Applied; an object that is not among them before the next Synced was deleted."""


class Applied(msgspec.Struct, frozen=True, gc=False):
    """An object exists, in this state."""

    object: RawObject


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted or left the selection; this was its last state."""

    object: RawObject


class Resumed(msgspec.Struct, frozen=True, gc=False):
    """After a failure the server has accepted a watch from the last version: nothing was missed."""


class Progressed(msgspec.Struct, frozen=True, gc=False):
    """Everything up to this version has been reported."""

    resource_version: str


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The list that began with Restarted is complete; it is the state at this version."""

    resource_version: str


class Failed(msgspec.Struct, frozen=True):
    """Reading failed and is retried; `refused` means that an administrator must fix something first.

    `ordinary` failures need no attention: a watch that was cut once, as servers do when a CRD changes, and a
    version that has become too old to resume.
    """

    error: KubewrightError
    retry_in: float
    refused: bool
    ordinary: bool = False


Event = Restarted | Applied | Deleted | Resumed | Progressed | Synced | Failed
Events = Sequence[Event]


class Streaming(msgspec.Struct, frozen=True):
    """Read the current state from the first events of a watch, then go on watching (WatchList)."""


class Listing(msgspec.Struct, frozen=True):
    """Read the current state from a list, in pages unless their continue token expired."""

    limit: int = PAGE_SIZE


class Watching(msgspec.Struct, frozen=True):
    """Follow changes since a version."""

    resource_version: str


WatchState = Streaming | Listing | Watching


class WatchFailed(KubewrightError):
    """A watch ended with an error event, or sent an invalid event."""

    def __init__(self, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        self.status = status


class WatchCutShort(WatchFailed):
    """A watch ended as soon as it was open, without an event."""


class HistoryReplaced(KubewrightError):
    """The server's current revision is below one that was seen: its data was restored from a backup."""


class InitialEventsMissing(KubewrightError):
    """The server opened a watch and ignored sendInitialEvents."""


class _FailureKind(Enum):
    """The kind of a failure; failures of each kind are counted separately."""

    UNREACHABLE = auto()
    OVERLOADED = auto()
    REFUSED = auto()
    EXPIRED = auto()
    ENDED = auto()


def watch_forever(
    source: ListerWatcher,
    selection: Selection,
    *,
    streaming: bool = True,
    metrics: Registry | None = None,
    retry_now: asyncio.Event | None = None,
    shards: ShardSelection | None = None,
) -> AsyncGenerator[Events, None]:
    """Yield what happens to the selected objects, as many events at once as have arrived; never ends by itself.

    With `streaming` the current state comes from a WatchList if the server supports it, otherwise from a list in pages.
    Setting `retry_now` ends the pause after a failure. With `shards` the server is asked to send only their objects; it may
    send others too.

    Streaming ─ bookmark ─▶ Watching ◀─ complete ─ Listing
        │ not supported ────────────────────────────▶ │
        ◀─ expired, refused, history replaced ─ Watching     ◀─ pages expired: without pages
    The watcher pauses after each failure, longer each time.
    """
    retry_now = retry_now or asyncio.Event()
    return _Watcher(source, selection, streaming, metrics or Registry(), retry_now, shards).events()


class _Narrowed(TypedDict):
    namespace: str
    labels: str
    fields: str
    metadata_only: bool
    shard_selector: str


class _Watcher:
    def __init__(
        self,
        source: ListerWatcher,
        selection: Selection,
        streaming: bool,
        metrics: Registry,
        retry_now: asyncio.Event,
        shards: ShardSelection | None,
    ) -> None:
        self._source = source
        self._shards = shards
        self._retry_now = retry_now
        self._selection = selection
        self._streams = streaming
        self._state: WatchState = self._initial_state()
        self._failures = 0
        self._failure_kind: _FailureKind = _FailureKind.UNREACHABLE
        self._is_failing = False
        self._accepted_at: float | None = None
        self._received = False
        self._in_doubt = False
        """Whether the version to resume from may be missing in the server's current history."""
        label = {"name": selection.kind.resource}
        self._lists = metrics.counter(
            "reflector_lists_total", "Total number of API lists done by the reflectors", ("name",)
        ).labels(**label)
        self._watches = metrics.counter(
            "reflector_watches_total", "Total number of API watches done by the reflectors", ("name",)
        ).labels(**label)
        self._short_watches = metrics.counter(
            "reflector_short_watches_total",
            "Total number of short API watches done by the reflectors",
            ("name",),
        ).labels(**label)

    async def events(self) -> AsyncGenerator[Events, None]:
        while True:
            self._accepted_at, self._received = None, False
            try:
                async with aclosing(self._enter(self._state)) as arrivals:
                    async for events in arrivals:
                        yield events
            except KubewrightError as error:
                failed = self._recover(error)
                if failed is not None:
                    yield (failed,)
                    await self._wait(failed.retry_in)

    async def _wait(self, seconds: float) -> None:
        """Wait before the next attempt, until there is a reason to expect that it succeeds."""
        try:
            async with asyncio.timeout(seconds):
                await self._retry_now.wait()
        except TimeoutError:
            return
        self._retry_now.clear()
        self._failures = 0

    def _enter(self, state: WatchState) -> AsyncGenerator[Events, None]:
        match state:
            case Streaming():
                return self._stream()
            case Listing(limit):
                return self._list(limit)
            case Watching(version):
                return self._watch(version)

    async def _stream(self) -> AsyncGenerator[Events, None]:
        narrowed = await self._narrowed()
        yield (Restarted(),)
        self._watches.inc()
        async with aclosing(self._open_watch(narrowed, initial_events=True)) as arrivals:
            try:
                with StallTimeout(INITIAL_EVENTS_TIMEOUT) as timeout:
                    async for events in arrivals:
                        timeout.end_wait()
                        self._accept()
                        yield self._take_initial(events)
                        if isinstance(self._state, Watching):
                            break
                        timeout.begin_wait()
                    else:
                        raise WatchFailed("the watch ended before its initial events did")
            except Stalled:
                raise InitialEventsMissing("no event came, nor the end of the initial ones") from None
            async for events in arrivals:
                yield self._follow(events)

    async def _list(self, limit: int) -> AsyncGenerator[Events, None]:
        narrowed = await self._narrowed()
        yield (Restarted(),)
        self._lists.inc()
        version = ""
        pages = self._source.list_raw(self._selection.kind, limit=limit, **narrowed)
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                yield [Applied(item) for item in page.items]
        yield (self._end_list(version),)

    async def _watch(self, version: str) -> AsyncGenerator[Events, None]:
        if self._in_doubt:
            await self._check_history(version)
        narrowed = await self._narrowed()
        self._watches.inc()
        async with aclosing(self._open_watch(narrowed, version)) as arrivals:
            async for events in arrivals:
                self._accept()
                if self._is_failing:
                    self._is_failing = False
                    yield (Resumed(),)
                yield self._follow(events)
        if self._received:
            return
        self._in_doubt = True
        if not self._lasted():
            self._short_watches.inc()
            raise WatchCutShort(f"the watch of {self._selection} ended at once, without any event")

    async def _check_history(self, version: str) -> None:
        """Raise HistoryReplaced if the server's current revision is below the version.

        A list without a resourceVersion is read from a quorum, so a replica that lags behind cannot answer it.
        """
        chosen = self._selection
        pages = self._source.list_raw(
            chosen.kind, limit=1, namespace=chosen.namespace, metadata_only=chosen.metadata_only
        )
        async with aclosing(pages):
            async for page in pages:
                self._check_revision(page.resource_version, version)
                break
        self._in_doubt = False

    def _open_watch(
        self, narrowed: _Narrowed, version: str = "", *, initial_events: bool = False
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        return self._source.watch_raw(
            self._selection.kind,
            resource_version=version,
            initial_events=initial_events,
            **narrowed,
        )

    async def _narrowed(self) -> _Narrowed:
        chosen = self._selection
        return _Narrowed(
            namespace=chosen.namespace,
            labels=chosen.labels,
            fields=chosen.fields,
            metadata_only=chosen.metadata_only,
            shard_selector="" if self._shards is None else await self._shards.selector(),
        )

    def _take_initial(self, events: Sequence[WatchEvent]) -> Events:
        """Translate the initial events; those after the bookmark that ends them are changes."""
        for number, event in enumerate(events):
            if event.type == "BOOKMARK":
                before = [_translate(one) for one in events[:number]]
                return [*before, self._end_initial_events(event), *self._follow(events[number + 1 :])]
        return [_translate(event) for event in events]

    def _end_initial_events(self, bookmark: WatchEvent) -> Synced:
        meta = bookmark.object.meta
        if meta.annotations.get(INITIAL_EVENTS_END) != "true":
            raise InitialEventsMissing("an ordinary bookmark came before the initial events had ended")
        return self._end_list(meta.resource_version)

    def _end_list(self, version: str) -> Synced:
        self._state = Watching(version)
        self._in_doubt = self._is_failing = False
        if self._failure_kind in (_FailureKind.UNREACHABLE, _FailureKind.OVERLOADED):
            # After a failure of another kind the next watch may fail in the same way: keep counting.
            self._failures = 0
        return Synced(version)

    def _follow(self, events: Sequence[WatchEvent]) -> Events:
        translated = [_translate(event) for event in events]
        if translated:
            self._check_bookmark(translated[-1])
            self._received = True
            self._failures = 0
            # Set last: if one of them cannot be translated, the server must send all of them again.
            self._state = Watching(events[-1].object.meta.resource_version)
        return translated

    def _check_bookmark(self, event: Event) -> None:
        """Raise HistoryReplaced if a bookmark is older than the last version: only a restored server sends that."""
        if isinstance(event, Progressed) and isinstance(self._state, Watching):
            self._check_revision(event.resource_version, self._state.resource_version)

    def _check_revision(self, current: str, seen: str) -> None:
        if compare_versions(current, seen) < 0:
            raise HistoryReplaced(
                f"{self._selection}: the server is at revision {current} and we have seen {seen}: "
                "its data was restored from a backup, everything is read again"
            )

    def _accept(self) -> None:
        """Note that the server has accepted a watch."""
        if self._accepted_at is None:
            self._accepted_at = _now()

    def _lasted(self) -> bool:
        """Return True if the server served the watch for a while."""
        return self._accepted_at is not None and _now() - self._accepted_at >= SHORT_WATCH

    def _recover(self, error: KubewrightError) -> Failed | None:
        """Choose the next state; return None to enter it without a pause."""
        code = _code(error)
        state = self._state
        if isinstance(state, Streaming) and (
            code in _NOT_UNDERSTOOD or isinstance(error, InitialEventsMissing)
        ):
            self._streams = False
            self._state = Listing()
            return None
        if isinstance(state, Listing) and code == _EXPIRED:
            self._state = Listing(limit=0)
        elif code in _REFUSED or code == _EXPIRED or _unreadable(error) or isinstance(error, HistoryReplaced):
            self._state = self._initial_state()
        kind = _failure_kind(error, code)
        if kind is not self._failure_kind or self._lasted():
            # This is not the previous failure again, so the backoff starts over.
            self._failure_kind, self._failures = kind, 0
        self._in_doubt = self._in_doubt or kind is _FailureKind.UNREACHABLE
        self._is_failing = True
        pause = self._pause(error, kind)
        ordinary = self._failures == 1 and (kind is _FailureKind.ENDED or code == _EXPIRED)
        return Failed(error, pause, code in _REFUSED, ordinary)

    def _initial_state(self) -> WatchState:
        return Streaming() if self._streams else Listing()

    def _pause(self, error: KubewrightError, kind: _FailureKind) -> float:
        delay = (RETRY_REFUSED if kind is _FailureKind.REFUSED else RETRY).delay(self._failures)
        retry_after = getattr(error, "retry_after", None)
        if isinstance(retry_after, int | float):
            delay = max(delay, min(retry_after, MAX_RETRY_AFTER) * random.uniform(1.0, 1.25))
        self._failures += 1
        return delay


def _failure_kind(error: KubewrightError, code: int) -> _FailureKind:
    if code in _REFUSED:
        return _FailureKind.REFUSED
    if code == _EXPIRED or isinstance(error, HistoryReplaced):
        return _FailureKind.EXPIRED
    if isinstance(error, WatchCutShort):
        return _FailureKind.ENDED
    return _FailureKind.OVERLOADED if code else _FailureKind.UNREACHABLE


def _translate(event: WatchEvent) -> Applied | Deleted | Progressed:
    match event.type:
        case "ADDED" | "MODIFIED":
            return Applied(event.object)
        case "DELETED":
            # Copy it: its bytes are a view of the buffer of all events that arrived with it.
            return Deleted(event.object.owned())
        case "BOOKMARK":
            return Progressed(event.object.meta.resource_version)
        case "ERROR":
            status = event.status
            message = status.message or status.reason if status else ""
            raise WatchFailed(f"the watch failed: {message or 'without a reason'}", status)


def _code(error: KubewrightError) -> int:
    status = getattr(error, "status", None)
    if not isinstance(status, Status):
        return 0
    return _EXPIRED if status.reason in ("Expired", "Gone") else status.code


def _unreadable(error: KubewrightError) -> bool:
    """Return True if the stream had an undecodable event: resuming would receive it again."""
    return isinstance(error, DecodeError) or isinstance(error.__cause__, DecodeError)


def _now() -> float:
    return asyncio.get_running_loop().time()
