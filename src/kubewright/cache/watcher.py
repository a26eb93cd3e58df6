"""One selection followed for ever: listed, watched, resumed, listed again when history is lost."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypedDict

import msgspec

from kubewright.api import ConnectionLost, DecodeError, KubewrightError, RawObject, Status, WatchEvent
from kubewright.backoff import Backoff
from kubewright.cache.patience import OutOfPatience, Patience
from kubewright.cache.selection import Selection
from kubewright.cache.source import Source
from kubewright.metrics import Registry

PAGE_SIZE = 500
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
INITIAL_EVENTS_PATIENCE = 10.0
"""Seconds without any event after which a server surely does not know WatchList."""
SHORT_WATCH = 1.0
SILENT_WATCH = 30.0
RESET_AFTER = 120.0

RETRY = Backoff(base=0.8, maximum=30.0, jitter=1.0)
RETRY_MISSING = Backoff(base=0.8, maximum=10.0, jitter=0.25)
"""For a kind that is not served or not allowed: a person who mends that should not wait for long."""

_EXPIRED = 410
_REFUSED = frozenset({401, 403, 404})
_NOT_UNDERSTOOD = frozenset({400, 405, 406, 415, 422})


class Restarted(msgspec.Struct, frozen=True, gc=False):
    """All objects follow as Applied; those that do not, before the next Synced, are gone."""


class Applied(msgspec.Struct, frozen=True, gc=False):
    """An object is there, in this state."""

    object: RawObject


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object is gone, or has left the selection; this was its last state."""

    object: RawObject


class Progressed(msgspec.Struct, frozen=True, gc=False):
    """Everything up to this version has been told."""

    resource_version: str


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The list that began with Restarted is whole; it is the state at this version."""

    resource_version: str


class Failed(msgspec.Struct, frozen=True, gc=False):
    """Reading failed and is tried again; `refused` tells that a person must mend something first.

    `ordinary` is a watch that was cut once: so a server ends the watches of a kind whose CRD has changed.
    """

    error: KubewrightError
    retry_in: float
    refused: bool
    ordinary: bool = False


Event = Restarted | Applied | Deleted | Progressed | Synced | Failed
Events = Sequence[Event]


class Streaming(msgspec.Struct, frozen=True):
    """Take the present state as the first events of a watch, then go on watching (WatchList)."""


class Listing(msgspec.Struct, frozen=True):
    """Take the present state from a list, in pages unless they expired under us."""

    limit: int = PAGE_SIZE


class Watching(msgspec.Struct, frozen=True):
    """Follow changes since a version."""

    resource_version: str


State = Streaming | Listing | Watching


class WatchFailed(KubewrightError):
    """A watch ended with an error event, or brought what no watch should."""

    def __init__(self, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        self.status = status


class WatchCutShort(WatchFailed):
    """A watch ended as soon as it was open, without a word."""


class InitialEventsMissing(KubewrightError):
    """The server opened a watch and ignored that it was asked for the present state."""


def watch_forever(
    source: Source, selection: Selection, *, streaming: bool = True, metrics: Registry | None = None
) -> AsyncGenerator[Events, None]:
    """Yield what happens to the selected objects, as many events at once as have arrived; never ends by itself.

    With `streaming` the present state comes from a WatchList where the server has it, else from a list in pages.

    Streaming ─ bookmark ─▶ Watching ◀─ whole ─ Listing
        │ not understood ────────────────────────▶ │
        ◀─ expired, refused, silent ─ Watching     ◀─ pages expired: without pages
    Each failure rests in between, longer each time.
    """
    return _Watcher(source, selection, streaming, metrics or Registry()).events()


class _Narrowed(TypedDict):
    namespace: str
    labels: str
    fields: str
    metadata_only: bool


class _Watcher:
    def __init__(self, source: Source, selection: Selection, streaming: bool, metrics: Registry) -> None:
        self._source = source
        self._selection = selection
        self._streams = streaming
        self._state: State = self._afresh()
        self._failures = 0
        self._failed_at = float("-inf")
        self._heard = False
        self._silences = 0
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
            started = _now()
            self._heard = False
            try:
                async with aclosing(self._enter(self._state)) as arrivals:
                    async for events in arrivals:
                        yield events
            except KubewrightError as error:
                failed = self._recover(error, _now() - started)
                if failed is not None:
                    yield (failed,)
                    await asyncio.sleep(failed.retry_in)

    def _enter(self, state: State) -> AsyncGenerator[Events, None]:
        match state:
            case Streaming():
                return self._stream()
            case Listing(limit):
                return self._list(limit)
            case Watching(version):
                return self._watch(version)

    async def _stream(self) -> AsyncGenerator[Events, None]:
        yield (Restarted(),)
        self._watches.inc()
        async with aclosing(self._open_watch(initial_events=True)) as arrivals:
            try:
                with Patience(INITIAL_EVENTS_PATIENCE) as patience:
                    async for events in arrivals:
                        patience.end_wait()
                        yield self._take_initial(events)
                        if isinstance(self._state, Watching):
                            break
                        patience.begin_wait()
                    else:
                        raise WatchFailed("the watch ended before its initial events did")
            except OutOfPatience:
                raise InitialEventsMissing("no event came, nor the end of the initial ones") from None
            async for events in arrivals:
                yield self._follow(events)

    async def _list(self, limit: int) -> AsyncGenerator[Events, None]:
        yield (Restarted(),)
        self._lists.inc()
        version = ""
        pages = self._source.list_raw(self._selection.kind, limit=limit, **self._narrowed())
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                yield [Applied(item) for item in page.items]
        self._state = Watching(version)
        yield (Synced(version),)

    async def _watch(self, version: str) -> AsyncGenerator[Events, None]:
        self._watches.inc()
        started = _now()
        async with aclosing(self._open_watch(version)) as arrivals:
            async for events in arrivals:
                yield self._follow(events)
        if _now() - started < SHORT_WATCH and self._state == Watching(version):
            self._short_watches.inc()
            raise WatchCutShort(f"the watch of {self._selection} ended at once, without any event")

    def _open_watch(
        self, version: str = "", *, initial_events: bool = False
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        return self._source.watch_raw(
            self._selection.kind,
            resource_version=version,
            initial_events=initial_events,
            **self._narrowed(),
        )

    def _narrowed(self) -> _Narrowed:
        chosen = self._selection
        return _Narrowed(
            namespace=chosen.namespace,
            labels=chosen.labels,
            fields=chosen.fields,
            metadata_only=chosen.metadata_only,
        )

    def _take_initial(self, events: Sequence[WatchEvent]) -> Events:
        """Translate events of the present state; those behind the bookmark that ends it are changes already."""
        for number, event in enumerate(events):
            if event.type == "BOOKMARK":
                before = [_translate(one) for one in events[:number]]
                return [*before, self._end_initial_events(event), *self._follow(events[number + 1 :])]
        return [_translate(event) for event in events]

    def _end_initial_events(self, bookmark: WatchEvent) -> Synced:
        meta = bookmark.object.meta
        if meta.annotations.get(INITIAL_EVENTS_END) != "true":
            raise InitialEventsMissing("an ordinary bookmark came before the initial events had ended")
        self._state = Watching(meta.resource_version)
        self._heard = True
        return Synced(meta.resource_version)

    def _follow(self, events: Sequence[WatchEvent]) -> Events:
        told = [_translate(event) for event in events]
        if told:
            self._heard = True
            self._silences = 0
            # Only now: where one of them could not be translated, all come again.
            self._state = Watching(events[-1].object.meta.resource_version)
        return told

    def _recover(self, error: KubewrightError, lasted: float) -> Failed | None:
        """Choose the state to go on with; None means at once."""
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
        elif code in _REFUSED or code == _EXPIRED or _unreadable(error) or self._silent(lasted):
            self._state, self._silences = self._afresh(), 0
        if lasted >= SHORT_WATCH and self._was_served(error):
            # What fails now is another failure than the one before, and may be over as soon.
            self._failures = 0
        rest = self._rest(error, code)
        ordinary = isinstance(error, WatchCutShort) and self._failures == 1
        return Failed(error, rest, code in _REFUSED, ordinary)

    def _was_served(self, error: KubewrightError) -> bool:
        """Return whether the server answered before it failed; one without news is heard of only when it is lost."""
        return self._heard or (isinstance(error, ConnectionLost) and error.sent)

    def _afresh(self) -> State:
        return Streaming() if self._streams else Listing()

    def _silent(self, lasted: float) -> bool:
        """Return whether to start afresh: a version from the server's future is answered by silence."""
        if isinstance(self._state, Watching) and lasted >= SILENT_WATCH:
            self._silences += 1
        return self._silences > 1

    def _rest(self, error: KubewrightError, code: int) -> float:
        now = _now()
        if now - self._failed_at > RESET_AFTER:
            self._failures = 0
        backoff = RETRY_MISSING if code in _REFUSED else RETRY
        delay = backoff.delay(self._failures)
        asked = getattr(error, "retry_after", None)
        if isinstance(asked, int | float):
            delay = max(delay, asked)
        self._failures += 1
        self._failed_at = now + delay
        return delay


def _translate(event: WatchEvent) -> Applied | Deleted | Progressed:
    match event.type:
        case "ADDED" | "MODIFIED":
            return Applied(event.object)
        case "DELETED":
            # Its bytes are those of all that came with it.
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
    """Return whether the stream brought what is no event: going on from before it would bring it again."""
    return isinstance(error, DecodeError) or isinstance(error.__cause__, DecodeError)


def _now() -> float:
    return asyncio.get_running_loop().time()
