"""The stream of one open page: server-sent events, in batches.

A connection begins with `hello` and the whole state, in parts. Changes follow, in at most about ten batches per second.
Writing waits for the browser; changes that arrive in the meantime are collected in the page's `Subscription`.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from kubewright.http.server import BodyWriter
from kubewright.ui.state import PageState, SourceDescription, Subscription, format_time

BATCH_SECONDS = 0.1
OPERATORS_SECONDS = 0.5
HISTORY_SECONDS = 1.0
KEEPALIVE_SECONDS = 15.0
PART = 500
"""Maximum number of objects or reconciles in one event."""
MAX_RECONCILES = 5000
"""Maximum number of reconciles that a new page is sent."""

_encoder = msgspec.json.Encoder()
_BOOLEANS = {True: b"true", False: b"false"}


class HistoryRange(msgspec.Struct, frozen=True, rename="camel"):
    """The period for which the state of all objects is available."""

    from_: str = msgspec.field(name="from")
    to: str


class PageDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Title and abilities of the page."""

    title: str
    source: SourceDescription
    writable: bool
    live: bool
    samples: bool


class Hello(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first event of a stream."""

    title: str
    source: SourceDescription
    writable: bool
    live: bool
    history: HistoryRange
    now: str
    samples: bool


class PageStream:
    """Write the events of one connection until the browser disconnects or the server stops."""

    def __init__(
        self,
        state: PageState,
        describe: Callable[[], PageDescription],
        *,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        self._state = state
        self._describe = describe
        self._batch_seconds = batch_seconds
        self._described: PageDescription | None = None
        self._operators_at = 0.0
        self._history_at = 0.0

    async def run(self, writer: BodyWriter) -> None:
        """Send the whole state, then changes."""
        state = self._state
        pending = state.subscribe()
        try:
            await writer.write(b"retry: 1000\n\n")
            while not pending.closed:
                if not await pending.wait(KEEPALIVE_SECONDS):
                    # Writing detects a browser that disconnected without closing the connection.
                    await writer.write(b": still here\n\n")
                    continue
                if state.loading:
                    if self._described is None:
                        await self._hello(writer)
                elif pending.reset:
                    pending.reset = False
                    await self._send_all(writer)
                else:
                    await self._send_changes(writer, pending)
                await self._send_states(writer, pending)
                await asyncio.sleep(self._batch_seconds)
        finally:
            state.unsubscribe(pending)

    async def _send_all(self, writer: BodyWriter) -> None:
        state = self._state
        await self._hello(writer)
        for number, part in enumerate(parts := _parts(state.summaries())):
            await writer.write(_objects(part, [], reset=number == 0, more=number + 1 < len(parts)))
        kept = state.reconciles.all()
        dropped = state.dropped + state.reconciles.dropped + max(0, len(kept) - MAX_RECONCILES)
        for number, part in enumerate(parts := _parts([each.encoded for each in kept[-MAX_RECONCILES:]])):
            more = number + 1 < len(parts)
            await writer.write(_reconciles(part, dropped, reset=number == 0, more=more))

    async def _send_changes(self, writer: BodyWriter, pending: Subscription) -> None:
        state = self._state
        if self._describe() != self._described:
            await self._hello(writer)
        changed, removed, reconciles = pending.changed, pending.removed, pending.reconciles
        pending.changed, pending.removed, pending.reconciles = {}, {}, {}
        found = state.summaries(changed)
        gone = [
            _encoder.encode({"uid": uid, "at": format_time(at)})
            for uid, at in removed.items()
            if uid not in state.history
        ]
        if found or gone:
            for number, part in enumerate(_parts(found)):
                await writer.write(_objects(part, gone if number == 0 else []))
        kept = [each.encoded for key in reconciles if (each := state.reconciles.get(*key)) is not None]
        if kept:
            for part in _parts(kept):
                await writer.write(_reconciles(part, state.dropped + state.reconciles.dropped))

    async def _send_states(self, writer: BodyWriter, pending: Subscription) -> None:
        state, now = self._state, asyncio.get_running_loop().time()
        if pending.problems:
            pending.problems = False
            await writer.write(_event("problems", {"problems": state.problems}))
        if pending.operators:
            if now - self._operators_at >= OPERATORS_SECONDS:
                pending.operators = False
                self._operators_at = now
                await writer.write(_event("operators", {"operators": state.operators}))
            else:
                pending.notify()
        if now - self._history_at >= HISTORY_SECONDS:
            self._history_at = now
            await writer.write(_event("history", history_range(state, live=self._describe().live)))

    async def _hello(self, writer: BodyWriter) -> None:
        described = self._described = self._describe()
        state = self._state
        hello = Hello(
            title=described.title,
            source=described.source,
            writable=described.writable,
            live=described.live,
            history=history_range(state, live=described.live),
            now=format_time(state.clock()),
            samples=described.samples,
        )
        await writer.write(_event("hello", hello))


def history_range(state: PageState, *, live: bool) -> HistoryRange:
    """Return the period for which the state of all objects is available; it ends now (`live`) or at the last change."""
    end = state.clock() if live else state.history.end
    return HistoryRange(format_time(state.history.start), format_time(end))


def _parts(encoded: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Split a list into parts; an empty list gives one empty part, so that the page is sent an event for it."""
    return [encoded[start : start + PART] for start in range(0, max(1, len(encoded)), PART)]


def _objects(
    changed: Sequence[bytes], removed: Sequence[bytes], *, reset: bool = False, more: bool = False
) -> bytes:
    return b'event: objects\ndata: {"reset":%b,"more":%b,"changed":[%b],"removed":[%b]}\n\n' % (
        _BOOLEANS[reset],
        _BOOLEANS[more],
        b",".join(changed),
        b",".join(removed),
    )


def _reconciles(added: Sequence[bytes], dropped: int, *, reset: bool = False, more: bool = False) -> bytes:
    return b'event: reconciles\ndata: {"reset":%b,"more":%b,"added":[%b],"dropped":%d}\n\n' % (
        _BOOLEANS[reset],
        _BOOLEANS[more],
        b",".join(added),
        dropped,
    )


def _event(name: str, data: object) -> bytes:
    # The encoder writes no line breaks and escapes those in strings, so one `data:` line is enough.
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encoder.encode(data))
