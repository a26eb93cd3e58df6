"""Leader election on a Lease: at most one replica acts at any time, decided by the local clock alone.

A replica that renews the lease at local time T may act until T + `renew_deadline`, counted from before the request
was sent. Every other replica waits the whole `leaseDurationSeconds` from when it last saw the record change, which
is later than T. As long as `renew_deadline` is shorter than what was written into the record, the first has stopped
before the second begins. Times are never compared between machines, and the times in the record are never read.

`Leadership` is the fence: every write, every reconcile and every `run_sync` function checks it before it begins, and it
counts those that have not ended. `Elector` is the protocol, a coroutine on any event loop. `ElectionThread` runs an
elector in a thread with its own connection, so that a blocked main loop neither loses the lease by accident nor keeps
it while it is stuck. If the lease runs out while something that needs it is still running, the thread ends the
process: nothing less stops a blocked loop or a thread.
"""

import asyncio
import logging
import math
import os
import random
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from kubewright.api import (
    AlreadyExists,
    Conflict,
    Kind,
    KubewrightError,
    MicroTime,
    NotFound,
)
from kubewright.client import Client, ClusterConfig, requests

LEASE = Kind(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", builtin=True)

JITTER = 1.2
LONGEST_LEASE = 2**31 - 1
"""The maximum of leaseDurationSeconds."""
EXIT_MARGIN = 1.0
"""Seconds before the lease expires at which the process is ended, or half of what is left if that is less."""
CLOCK_STEP = 1.0
"""Longest wait between two checks of the clock: while a machine is suspended, its clock advances but timers do not."""

MonotonicClock = Callable[[], float]

_log = logging.getLogger("kubewright.election")


class LeaseLost(KubewrightError):
    """The lease was lost, so another replica may be the leader: all work must stop at once."""


class NotLeading(KubewrightError):
    """This replica's lease expired before a write, a reconcile or a function started: it was not started."""


def _suspend_aware_clock() -> MonotonicClock:
    """Return a monotonic clock that also advances while the machine is suspended.

    On Linux and macOS `time.monotonic` does not: after a night of suspension, a lease would seem to be seconds old.
    """
    if sys.platform == "linux":
        number = time.CLOCK_BOOTTIME
    elif sys.platform == "darwin":
        number = time.CLOCK_MONOTONIC  # includes suspension there, unlike on Linux
    else:
        return time.monotonic
    try:
        time.clock_gettime(number)
    except OSError:  # a sandbox that emulates the kernel may lack it
        return time.monotonic
    return lambda: time.clock_gettime(number)


elapsed: MonotonicClock = _suspend_aware_clock()
"""Seconds since an arbitrary point, including those for which the machine was suspended."""


def default_identity() -> str:
    """Return a name for this replica that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a lease lasts, in seconds.

    After `main_loop_silence` without a response from the main loop, the lease is no longer renewed.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    main_loop_silence: float = 30.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * JITTER:
            raise ValueError(
                "leader election: the lease duration must be longer than the renew deadline, "
                f"and that longer than {JITTER} retry periods"
            )
        if not self.retry_period > 0:
            raise ValueError(f"leader election: retry_period={self.retry_period}: expected more than 0 s")
        if self.duration > LONGEST_LEASE:
            raise ValueError(f"leader election: duration={self.duration}: expected at most {LONGEST_LEASE} s")

    @property
    def seconds(self) -> int:
        """Return the duration as it is written into a Lease: rounded up, so that others never wait for less."""
        return math.ceil(self.duration)

    @property
    def attempt(self) -> float:
        """Return how long one attempt to reach the server may take."""
        return max(1.0, self.renew_deadline / 2)


class ElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the lease and of this replica.

    A manager names the lease after its operator and keeps it in the namespace it runs in. `identity` must differ
    between processes, also between a process and the one that replaces it.
    """

    name: str = ""
    namespace: str = ""
    identity: str = msgspec.field(default_factory=default_identity)
    times: LeaseTimes = msgspec.field(default_factory=LeaseTimes)


class LeaseRecord(msgspec.Struct, frozen=True):
    """The contents of a Lease; `version` is the resourceVersion at which it was read."""

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int
    version: str = ""


class LeaseStore(Protocol):
    """Storage of the lease record; a write fails with Conflict if the record changed since it was read."""

    async def read(self) -> LeaseRecord | None:
        """Return the record, or None if there is none."""
        ...

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Replace the record at its version; create it if the version is empty."""
        ...


class ClusterLease:
    """The record as a Lease in a cluster."""

    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace

    async def read(self) -> LeaseRecord | None:
        """Return the record, or None if there is none."""
        try:
            response = await self._client.raw(requests.get(LEASE, self._name, self._namespace))
        except NotFound:
            return None
        return lease_record(msgspec.json.decode(response.body))

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Replace the record at its version; create it if the version is empty."""
        lease = lease_wire(record, self._name, self._namespace)
        request = requests.replace(lease, LEASE) if record.version else requests.create(lease, LEASE)
        return lease_record(msgspec.json.decode((await self._client.raw(request)).body))


class Leadership:
    """Until when this replica may act, and how much of its work still runs; read by several threads.

    Work begins with `activity`: it is counted first and then rejected if the lease has run out or the replica is
    stopping. So once that is the case and the count is zero, nothing that needs the lease runs, and nothing can
    begin any more. A leadership that has ended is never regained: the process ends with it.
    """

    def __init__(self, clock: MonotonicClock = elapsed) -> None:
        self.clock = clock
        self.holder: str = ""
        """The holder of the lease in the last record that was read."""
        self._valid_until = -math.inf
        self._expires_at = -math.inf
        self._closed = False
        self._ended = False
        self._active = 0
        self._when_inactive: Callable[[], object] | None = None
        # The lock is taken directly where nothing is waited for: a Condition adds a Python call to each step.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    @classmethod
    def unlimited(cls) -> "Leadership":
        """Return the leadership of an operator that runs without a lease."""
        always = cls(lambda: 0.0)
        always._valid_until = always._expires_at = math.inf
        return always

    @property
    def valid(self) -> bool:
        """Return True if this replica may act now."""
        return self.remaining > 0

    @property
    def remaining(self) -> float:
        """Return for how many seconds this replica may still act; negative if it may not."""
        return self._valid_until - self.clock()

    @property
    def active(self) -> int:
        """Return how many reconciles and threads that need the lease have not ended."""
        return self._active

    def check(self) -> None:
        """Raise NotLeading if the lease has run out, however long the event loop was busy in between."""
        if not self.valid:
            raise NotLeading("this replica's lease expired before the write was sent: nothing was written")

    def check_work(self) -> None:
        """Raise NotLeading if the lease has run out; called before work begins, also after a slow response."""
        if self._valid_until - self.clock() <= 0:
            raise NotLeading("this replica's lease expired: no more work starts")

    def activity(self) -> AbstractContextManager[None]:
        """Count the body of a `with` as work that needs the lease; raise NotLeading if it must not begin."""
        return self  # it has no state but the count

    def __enter__(self) -> None:
        with self._lock:
            self._active += 1
        try:
            if self._closed:
                raise NotLeading("this replica is stopping: no more work starts")
            self.check_work()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        finished = None
        with self._lock:
            self._active -= 1
            if not self._active:
                finished, self._when_inactive = self._when_inactive, None
                self._changed.notify_all()
        if finished is not None:
            finished()

    def close(self, when_inactive: Callable[[], object]) -> None:
        """Start no more work, and call `when_inactive` once, in any thread, when nothing that needs the lease runs."""
        with self._changed:
            self._closed = True
            if self._active:
                self._when_inactive = when_inactive
                return
        when_inactive()

    def renewed(self, requested_at: float, times: LeaseTimes) -> None:
        """Record that the lease was written by a request that started at this time on our clock.

        Other replicas saw the renewal no earlier than that, so they wait at least until `requested_at` plus what
        the record says. Ignored after `end`.
        """
        with self._changed:
            if not self._ended:
                self._valid_until = requested_at + times.renew_deadline
                self._expires_at = requested_at + times.seconds

    def end(self) -> None:
        """Reject writes and work from now on; no renewal changes that."""
        with self._changed:
            self._ended = True
            self._valid_until = -math.inf

    def exit_time(self, times: LeaseTimes) -> float:
        """Return the time, on our clock, by which everything that needs the lease must have ended if it is lost now.

        That is shortly before another replica may start. If another replica took the lease early, the same time is
        allowed from now on as after a failed renewal.
        """
        gap = times.seconds - times.renew_deadline
        return min(self._expires_at, self.clock() + gap) - min(EXIT_MARGIN, gap / 2)

    def wait_inactive(self, until: float) -> bool:
        """Block until nothing that needs the lease runs; return False if something does at that time."""
        with self._changed:
            while self._active:
                left = until - self.clock()
                if left <= 0:
                    return False
                self._changed.wait(min(left, CLOCK_STEP))
            return True


class Elector:
    """Acquire the lease, then renew it until that fails."""

    def __init__(self, store: LeaseStore, options: ElectionOptions, leadership: Leadership) -> None:
        self._store = store
        self._options = options
        self._times = options.times
        self._leadership = leadership
        self._observed: LeaseRecord | None = None
        self._observed_at = 0.0
        self._problem = ""

    async def acquire(self) -> None:
        """Wait until this replica holds the lease."""
        while True:
            if await self._attempt(self._times.attempt):
                return
            await asyncio.sleep(self._times.retry_period * (1 + JITTER * random.random()))

    async def renew(self, may_renew: Callable[[], bool] = lambda: True) -> None:
        """Keep the lease; return when it is lost, or when it ran out because it may not be renewed."""
        leadership = self._leadership
        while (left := leadership.remaining) > 0:
            await asyncio.sleep(min(self._times.retry_period, left))
            left = leadership.remaining
            if left > 0 and may_renew():
                # An attempt must not outlast the lease: the loss has to be reported in time.
                held = await self._attempt(min(self._times.attempt, left))
                if not held and self._held_by_another():
                    break
        leadership.end()

    async def release(self) -> None:
        """Release the lease, so that another replica does not have to wait until it expires."""
        self._leadership.end()
        record = await self._store.read()
        if record is not None and record.holder == self._options.identity:
            now = MicroTime.now().to_wire()
            await self._store.write(
                msgspec.structs.replace(record, holder="", duration=1, acquired=now, renewed=now)
            )

    async def _attempt(self, timeout: float) -> bool:
        """Try once to take or renew the lease; return True if this replica holds it.

        False means that another replica holds it or wrote it first (Conflict), or that the request failed or timed out.
        """
        started = self._leadership.clock()
        try:
            async with asyncio.timeout(timeout):
                held = await self._take(started)
        except (Conflict, AlreadyExists):
            return False
        except (KubewrightError, TimeoutError, msgspec.DecodeError) as error:
            # Any other error is retried, such as failing credentials or a proxy's HTML: the lease outlasts one attempt.
            self._report(str(error) or "timed out")
            return False
        self._problem = ""
        return held

    def _report(self, problem: str) -> None:
        """Log a failure once, until an attempt succeeds."""
        if problem != self._problem:
            self._problem = problem
            _log.warning("The lease %s could not be read or renewed: %s", self._options.name, problem)

    async def _take(self, started: float) -> bool:
        options = self._options
        record = await self._store.read()
        now = self._leadership.clock()
        if record is None:
            # Deleting the record does not stop its holder, which may act until it would have expired.
            if self._observed is not None and self._runs(self._observed, now):
                return False
            moment = MicroTime.now().to_wire()
            self._observe(
                await self._store.write(
                    LeaseRecord(options.identity, self._times.seconds, moment, moment, 0)
                ),
                now,
            )
        else:
            if self._observed is None or record != self._observed:
                self._observe(record, now)
            ours = record.holder == options.identity
            # Only changes seen here count: the times in the record come from another machine's clock.
            if self._runs(record, now):
                return False
            moment = MicroTime.now().to_wire()
            taken = msgspec.structs.replace(
                record,
                holder=options.identity,
                duration=self._times.seconds,
                acquired=record.acquired if ours else moment,
                renewed=moment,
                transitions=record.transitions + (0 if ours else 1),
            )
            self._observe(await self._store.write(taken), now)
        self._leadership.renewed(started, self._times)
        return True

    def _runs(self, record: LeaseRecord, now: float) -> bool:
        """Return True if another replica's lease, observed when it last changed, may not have expired."""
        others = record.holder not in ("", self._options.identity)
        # A record without a duration was written by something else: wait as long as for our own.
        return others and now < self._observed_at + (record.duration or self._times.seconds)

    def _observe(self, record: LeaseRecord, now: float) -> None:
        self._observed, self._observed_at = record, now
        self._leadership.holder = record.holder

    def _held_by_another(self) -> bool:
        return self._observed is not None and self._observed.holder not in ("", self._options.identity)


class ElectionThread:
    """Run an elector in its own thread; call `wait_leading`, then `wait_lost`, and `stop` at the end."""

    def __init__(
        self,
        config: ClusterConfig,
        options: ElectionOptions,
        *,
        end_process: Callable[[], None] | None = None,
    ) -> None:
        self.leadership: Leadership = Leadership()
        self._config = config
        self._options = options
        self._end_process = end_process or _end_process
        self._main = asyncio.get_running_loop()
        self._leading = asyncio.Event()
        self._lost = asyncio.Event()
        self._stopping = threading.Event()
        self._release = False
        self._responded_at = self.leadership.clock()
        self._thread = threading.Thread(target=self._run, name="kubewright-election", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Start trying to acquire the lease."""
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Return True if this replica led, or tried to acquire the lease, and no longer does."""
        return self._lost.is_set()

    async def wait_leading(self) -> None:
        """Wait until this replica leads."""
        await self._leading.wait()

    async def wait_lost(self) -> None:
        """Wait until this replica no longer leads, then raise LeaseLost."""
        await self._lost.wait()
        raise LeaseLost(
            f"leader election lost: lease {self._options.namespace}/{self._options.name}"
        ) from self._failure

    async def stop(self) -> None:
        """Start no more work, and release the lease when nothing that needs it runs.

        Usually that is at once. A thread that cannot be cancelled keeps the lease: it is renewed while the thread runs
        and the main loop responds. `stop` does not wait for that.
        """
        self._stopping.set()
        self.leadership.close(self._end_elector)
        if self._thread.ident is not None and not self.leadership.active:
            await asyncio.to_thread(self._thread.join, self._options.times.renew_deadline)

    def _end_elector(self) -> None:
        """Make the elector release the lease and end; called when nothing needs the lease any more."""
        self._release = True
        if self._loop is not None and self._task is not None:
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                pass  # its loop ended by itself

    def _run(self) -> None:
        try:
            asyncio.run(self._elect())
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self._failure = error
            _log.exception("Leader election failed")
        self.leadership.end()
        if not self._stopping.is_set():
            self._call_main(self._lost.set)
        if not self.leadership.wait_inactive(self.leadership.exit_time(self._options.times)):
            _log.critical(
                "Lost the lease, and %d reconciles or threads that need it still run: ending the process",
                self.leadership.active,
            )
            self._end_process()

    async def _elect(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopping.is_set():
            return  # stopped before there was a task to cancel
        options = self._options
        async with Client(self._config, timeout=options.times.attempt) as client:
            elector = Elector(ClusterLease(client, options.name, options.namespace), options, self.leadership)
            try:
                await elector.acquire()
                _log.info("Acquired the lease %s/%s as %s", options.namespace, options.name, options.identity)
                self._responded_at = self.leadership.clock()
                self._call_main(self._leading.set)
                await elector.renew(self._main_loop_responds)
                _log.error("Lost the lease %s/%s", options.namespace, options.name)
            finally:
                if self._release:
                    async with asyncio.timeout(options.times.attempt):
                        await elector.release()

    def _main_loop_responds(self) -> bool:
        self._call_main(self._note_response)
        silence = self.leadership.clock() - self._responded_at
        if silence < self._options.times.main_loop_silence:
            return True
        _log.error("The main loop has not responded for %.0f s: the lease is not renewed", silence)
        return False

    def _note_response(self) -> None:
        self._responded_at = self.leadership.clock()

    def _call_main(self, callback: Callable[[], object]) -> None:
        try:
            self._main.call_soon_threadsafe(callback)
        except RuntimeError:
            pass  # the main loop is closed


def lease_wire(record: LeaseRecord, name: str, namespace: str) -> dict[str, Any]:
    """Return the Lease of a record, with its resourceVersion if it has one."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if record.version:
        metadata["resourceVersion"] = record.version
    return {
        "metadata": metadata,
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration,
            "acquireTime": record.acquired,
            "renewTime": record.renewed,
            "leaseTransitions": record.transitions,
        },
    }


def lease_record(lease: dict[str, Any]) -> LeaseRecord:
    """Return the contents of a Lease."""
    spec: dict[str, Any] = lease.get("spec") or {}
    return LeaseRecord(
        holder=spec.get("holderIdentity") or "",
        duration=spec.get("leaseDurationSeconds") or 0,
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
        version=lease["metadata"].get("resourceVersion", ""),
    )


def _end_process() -> None:
    os._exit(1)
