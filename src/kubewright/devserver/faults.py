"""Fault injection for tests: slow or failing responses, lost connections, watches that end, stale reads.

Faults cannot be injected over the network, only by the process that runs the server:

    with server.faults.add(match=Match(verbs=("patch",), resource="pods"), fail=429, retry_after=1, times=3):
        ...

`RequestFaults` needs nothing but requests and their responses, so that a proxy can inject them before any API server.
`Faults` adds those of the embedded server's storage: stale reads, and events that overtake responses.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from kubewright.devserver.objects import encode
from kubewright.devserver.objects.status import StatusError, group_resource
from kubewright.devserver.request.context import RequestContext
from kubewright.devserver.request.negotiation import PROTOBUF, negotiate_plain
from kubewright.devserver.request.responses import refuse
from kubewright.devserver.storage import ObjectStore
from kubewright.devserver.wire import load_types, write_event
from kubewright.http.server import JSON, BodyWriter, HangUp, PendingResponse, ServerResponse, Stream

Failure = int | Literal["reset"]
"""An HTTP status, or a connection that is reset instead of a response."""
Moment = Literal["before", "after"]

LAG_SECONDS = 3.0
"""How long an API server waits for its cache to catch up."""
_LAG_POLL = 0.05
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_EVENT_TURNS = 5
"""Turns of the event loop in which a watch sends what has changed."""
_EXPIRED = "The resourceVersion for the provided watch is too old."
_INITIAL_END = b"k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a fault applies to; fields that are not set match everything, non-resource paths included."""

    verbs: tuple[str, ...] = ()
    resource: str = ""
    """As messages name it: `configmaps`, `deployments.apps`."""
    subresource: str | None = None
    namespace: str = ""
    name: str = ""
    user: str = ""
    agent: str = ""
    """How the User-Agent starts."""

    def __call__(self, context: RequestContext) -> bool:
        """Return True if a request matches."""
        info = context.info
        return (
            (not self.verbs or info.verb in self.verbs)
            and (not self.resource or self.resource == group_resource(info.group, info.resource))
            and (self.subresource is None or self.subresource == info.subresource)
            and (not self.namespace or self.namespace == info.namespace)
            and (not self.name or self.name == info.name)
            and (not self.user or self.user == context.user.name)
            and context.request.headers.get("user-agent", "").startswith(self.agent)
        )


Matcher = Callable[[RequestContext], bool]
EVERYTHING = Match()


@dataclass(eq=False, slots=True)
class Fault:
    """One injected fault; used as a context manager, it is removed at the end."""

    faults: "RequestFaults"
    match: Matcher
    delay: float
    fail: Failure | None
    when: Moment
    retry_after: int | None
    message: str
    times: int | None
    hits: int = 0
    """How many requests it has applied to."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the fault."""
        self.faults.remove(self)

    def strikes(self, context: RequestContext) -> bool:
        """Return True if the fault applies to a request, and count it."""
        if (self.times is not None and self.hits >= self.times) or not self.match(context):
            return False
        self.hits += 1
        return True

    async def respond(
        self, context: RequestContext, proceed: Callable[[], PendingResponse]
    ) -> ServerResponse:
        """Respond to a request that the fault applies to."""
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.when == "after" or self.fail is None:
            found = proceed()
            response = await found if isinstance(found, Coroutine) else found
            if self.fail is None:
                return response
        if self.fail == "reset":
            raise HangUp("a test injected this fault")
        return self._failure(context)

    def _failure(self, context: RequestContext) -> ServerResponse:
        error = self._status()
        if context.info.verb == "watch" and error.code == 410:
            protobuf = negotiate_plain(context.request.headers.get("accept", "")) == PROTOBUF
            media = f"{PROTOBUF};stream=watch" if protobuf else JSON
            return Stream(lambda writer: _send_error(writer, error, protobuf=protobuf), media)
        return refuse(context.request, error, [])

    def _status(self) -> StatusError:
        code = self.fail if isinstance(self.fail, int) else 500
        if code == 429:
            message = self.message or "the server is busy: an injected fault"
            return StatusError.too_many_requests(message, 1 if self.retry_after is None else self.retry_after)
        if code == 410:
            return StatusError.expired(self.message or _EXPIRED)
        if code == 503:
            error = StatusError.unavailable(
                self.message or "the server is currently unable to handle the request"
            )
        elif code == 500:
            error = StatusError.internal(self.message or "a test injected this fault")
        else:
            error = StatusError(code, "", self.message or "a test injected this fault")
        if self.retry_after is not None:
            error.details = {**(error.details or {}), "retryAfterSeconds": self.retry_after}
        return error


@dataclass(eq=False, slots=True)
class _OpenStream:
    """An open watch, and how `cut_watches` ends it."""

    context: RequestContext
    scope: asyncio.Timeout
    cut: bool = False
    """True from the request to end until it has ended."""
    reset: bool = False
    error: StatusError | None = None


@dataclass(eq=False, slots=True)
class RequestFaults:
    """Injected faults of requests and watches, before any API server."""

    _faults: list[Fault] = field(default_factory=list[Fault], init=False)
    _streams: dict[_OpenStream, None] = field(default_factory=dict[_OpenStream, None], init=False)

    def add(
        self,
        *,
        match: Matcher = EVERYTHING,
        delay: float = 0.0,
        fail: Failure | None = None,
        when: Moment = "before",
        retry_after: int | None = None,
        message: str = "",
        times: int | None = None,
    ) -> Fault:
        """Delay requests, fail them or both, `times` times or until the fault is removed.

        A failure `after` the request lets it finish first: the write is committed, but the client sees an error.
        """
        fault = Fault(self, match, delay, fail, when, retry_after, message, times)
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove a fault; removing it twice is allowed."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def cut_watches(
        self, match: Matcher = EVERYTHING, *, how: Literal["end", "reset", "expire"] = "end"
    ) -> int:
        """End the open watches: cleanly, by a reset, or with the error that their revision is too old."""
        chosen = [stream for stream in self._streams if not stream.cut and match(stream.context)]
        now = asyncio.get_running_loop().time()
        for stream in chosen:
            stream.cut = True
            stream.reset = how == "reset"
            stream.error = StatusError.expired(_EXPIRED) if how == "expire" else None
            stream.scope.reschedule(now)
        return len(chosen)

    def around(self, context: RequestContext, proceed: Callable[[], PendingResponse]) -> PendingResponse:
        """Respond to a request, with the first fault that applies."""
        fault = self._applying(context)
        return self._tracked(context, proceed() if fault is None else fault.respond(context, proceed))

    def _applying(self, context: RequestContext) -> Fault | None:
        # Outside of tests with faults there are none to ask.
        return next((item for item in self._faults if item.strikes(context)), None) if self._faults else None

    def _tracked(self, context: RequestContext, response: PendingResponse) -> PendingResponse:
        """Return a response whose stream, if it is one, `cut_watches` can end."""
        if isinstance(response, Stream):
            self._follow(context, response)
        elif context.info.verb == "watch" and isinstance(response, Coroutine):
            return self._followed(context, response)
        return response

    async def _followed(
        self, context: RequestContext, response: Coroutine[Any, Any, ServerResponse]
    ) -> ServerResponse:
        found = await response
        if isinstance(found, Stream):
            self._follow(context, found)
        return found

    def _follow(self, context: RequestContext, stream: Stream) -> None:
        """Register a stream, so that `cut_watches` can end it."""
        run = stream.run

        async def guarded(writer: BodyWriter) -> None:
            entry = _OpenStream(context, asyncio.timeout(None))
            self._streams[entry] = None
            try:
                async with entry.scope:
                    await run(writer)
            except TimeoutError:
                if not entry.scope.expired():
                    raise
                if entry.reset:
                    raise HangUp("a test injected this fault") from None
                if entry.error is not None:
                    protobuf = stream.content_type.startswith(PROTOBUF)
                    await _send_error(writer, entry.error, protobuf=protobuf)
            finally:
                self._streams.pop(entry, None)

        stream.run = guarded


@dataclass(eq=False, slots=True)
class Lag:
    """An API server that has seen everything up to a revision."""

    store: ObjectStore
    match: Matcher
    revision: int

    def catch_up(self, by: int | None = None) -> None:
        """Let it see so many further revisions, by default all."""
        newest = self.store.revision
        self.revision = newest if by is None else min(newest, self.revision + by)
        self.store.wake()

    async def respond(
        self, context: RequestContext, proceed: Callable[[], PendingResponse]
    ) -> ServerResponse:
        """Respond to a watch that begins with the newest state; refuse it if the state does not arrive in time."""
        newest, loop = self.store.revision, asyncio.get_running_loop()
        deadline = loop.time() + LAG_SECONDS
        while self.revision < newest:
            if loop.time() >= deadline:
                error = StatusError.too_large_revision(newest, self.revision)
                return refuse(context.request, error, [])
            await asyncio.sleep(_LAG_POLL)
        found = proceed()
        return await found if isinstance(found, Coroutine) else found


def _from_cache(context: RequestContext) -> bool:
    """Return True if an API server responds from its cache, however old that is."""
    return context.info.verb == "watch" or context.request.one("resourceVersion") == "0"


@dataclass(eq=False, slots=True)
class Faults(RequestFaults):
    """The injected faults of one embedded server."""

    store: ObjectStore
    _frozen: list[tuple[Matcher, int]] = field(default_factory=list[tuple[Matcher, int]])
    _lags: "list[Lag]" = field(default_factory=list[Lag])
    _overtaking: list[tuple[Matcher, random.Random]] = field(
        default_factory=list[tuple[Matcher, random.Random]]
    )

    def clear(self) -> None:
        """Remove all faults."""
        # Not super(): it does not work in classes with slots that dataclass replaces.
        RequestFaults.clear(self)
        self._frozen.clear()
        self._overtaking.clear()
        for lag in self._lags:
            lag.catch_up()
        self._lags.clear()
        self.store.wake()

    @contextmanager
    def freeze(self, match: Matcher) -> Generator[None]:
        """Show the matched clients the current state while the context is open, as a stale API server does."""
        entry = (match, self.store.revision)
        self._frozen.append(entry)
        try:
            yield
        finally:
            if entry in self._frozen:
                self._frozen.remove(entry)
            self.store.wake()

    @contextmanager
    def lag(self, match: Matcher) -> Generator["Lag"]:
        """Respond to the matched requests as an API server whose caches are behind, until the context is left.

        As on a cluster with several API servers: watches, and reads that accept any version, are served from
        the cache. Reads of the newest version are fresh, and a watch that starts with the newest state
        first waits until the cache has it.
        """
        found = Lag(self.store, match, self.store.revision)
        self._lags.append(found)
        try:
            yield found
        finally:
            if found in self._lags:
                self._lags.remove(found)
            found.catch_up()

    @contextmanager
    def events_overtake(self, seed: int, match: Matcher = EVERYTHING) -> Generator[None]:
        """Let the watch events of some of the matched writes arrive before their responses.

        kube-apiserver sends both at about the same time, so that each order occurs; otherwise this server responds
        first. About half of the writes are chosen, by the seed, until the context is left.
        """
        entry = (match, random.Random(seed))
        self._overtaking.append(entry)
        try:
            yield
        finally:
            if entry in self._overtaking:
                self._overtaking.remove(entry)

    def _is_overtaken(self, context: RequestContext) -> bool:
        if context.info.verb not in _WRITES:
            return False
        return any(match(context) and chance.random() < 0.5 for match, chance in self._overtaking)

    def catch_up(self) -> None:
        """Let every lagging server see the present state, as after a restart of all API servers."""
        for lag in self._lags:
            lag.catch_up()

    def max_visible_revision(self, context: RequestContext) -> int | None:
        """Return the last revision that a client may see, or None without a limit."""
        if not self._frozen and not self._lags:
            return None
        found = [revision for match, revision in self._frozen if match(context)]
        found += [
            min(lag.revision, self.store.revision)
            for lag in self._lags
            if lag.match(context) and _from_cache(context)
        ]
        return min(found) if found else None

    def around(self, context: RequestContext, proceed: Callable[[], PendingResponse]) -> PendingResponse:
        """Respond to a request, with the first fault that applies."""
        fault = self._applying(context)
        lag = next((item for item in self._lags if item.match(context)), None) if self._lags else None
        if lag is not None and context.request.flag("sendInitialEvents"):
            response = lag.respond(
                context, proceed if fault is None else lambda: fault.respond(context, proceed)
            )
        else:
            response = proceed() if fault is None else fault.respond(context, proceed)
        if isinstance(response, Coroutine) and self._overtaking and self._is_overtaken(context):
            return _after_events(response)
        return self._tracked(context, response)


def without_bookmarks(lines: bytes) -> bytes:
    """Return whole lines of a watch in JSON without its bookmarks, except the one that ends the initial state."""
    return b"".join(
        line
        for line in lines.splitlines(keepends=True)
        if not line.startswith(b'{"type":"BOOKMARK"') or _INITIAL_END in line
    )


async def _send_error(writer: BodyWriter, error: StatusError, *, protobuf: bool) -> None:
    if protobuf:
        await writer.write(write_event("ERROR", load_types().encode_protobuf(error.wire())))
    else:
        await writer.write(b'{"type":"ERROR","object":%b}\n' % encode(error.wire()))


async def _after_events(response: Coroutine[Any, Any, ServerResponse]) -> ServerResponse:
    found = await response
    for _ in range(_EVENT_TURNS):
        await asyncio.sleep(0)
    return found
