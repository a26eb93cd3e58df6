"""Leader election on a Lease: who may write, known from the local clock alone.

`Elector` is the rule, a coroutine on any event loop. `ElectionThread` runs one in a thread with its own
connection, so that a blocked main loop neither loses the lease by accident nor keeps it while it is stuck.
"""

import asyncio
import logging
import os
import random
import socket
import threading
import uuid
from collections.abc import Callable
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
_log = logging.getLogger("kubewright.election")


class LeaseLost(KubewrightError):
    """Another replica may lead by now: everything must stop at once."""


class NotLeading(KubewrightError):
    """A write that was refused because this replica's lease ran out."""


def default_identity() -> str:
    """Return a name for this replica that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaseTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How long a lease lasts, in seconds.

    After `main_loop_silence` without an answer from the main loop the lease is no longer renewed.
    """

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    main_loop_silence: float = 30.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period * JITTER:
            raise ValueError(
                "leader election: the lease must last longer than the renew deadline, "
                f"and that longer than {JITTER} retry periods"
            )

    @property
    def attempt(self) -> float:
        """Return how long one attempt to reach the server may take."""
        return max(1.0, self.renew_deadline / 2)


class ElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Name the lease and this replica; a manager calls the lease like its operator, and keeps it where that runs."""

    name: str = ""
    namespace: str = ""
    identity: str = msgspec.field(default_factory=default_identity)
    times: LeaseTimes = msgspec.field(default_factory=LeaseTimes)


class LeaseRecord(msgspec.Struct, frozen=True):
    """What a Lease says; `version` is the resourceVersion it was read at."""

    holder: str
    duration: int
    acquired: str
    renewed: str
    transitions: int
    version: str = ""


class LeaseStore(Protocol):
    """Where the record lies; a write fails with Conflict when the record changed since it was read."""

    async def read(self) -> LeaseRecord | None:
        """Return the record; None where there is none."""
        ...

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Put the record in the place of the version it names, or create it where it names none."""
        ...


class ClusterLease:
    """The record as a Lease in a cluster."""

    def __init__(self, client: Client, name: str, namespace: str) -> None:
        self._client = client
        self._name = name
        self._namespace = namespace

    async def read(self) -> LeaseRecord | None:
        """Return the record; None where there is none."""
        try:
            answer = await self._client.raw(requests.get(LEASE, self._name, self._namespace))
        except NotFound:
            return None
        return _record_of(msgspec.json.decode(answer.body))

    async def write(self, record: LeaseRecord) -> LeaseRecord:
        """Put the record in the place of the version it names, or create it where it names none."""
        lease: dict[str, Any] = {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.duration,
                "acquireTime": record.acquired,
                "renewTime": record.renewed,
                "leaseTransitions": record.transitions,
            },
        }
        if record.version:
            lease["metadata"]["resourceVersion"] = record.version
            request = requests.replace(lease, LEASE)
        else:
            request = requests.create(lease, LEASE)
        return _record_of(msgspec.json.decode((await self._client.raw(request)).body))


class Leadership:
    """Until when this replica may write, in the loop's monotonic time; read by every write."""

    def __init__(self) -> None:
        self.valid_until: float = float("-inf")

    @property
    def valid(self) -> bool:
        """Tell whether this replica may write now."""
        return asyncio.get_running_loop().time() < self.valid_until

    def check(self) -> None:
        """Refuse a write once the lease ran out, however busy the loop was in between."""
        if not self.valid:
            raise NotLeading("this replica's lease ran out before the write was sent: nothing was written")


class Elector:
    """Acquire the lease, then renew it until that fails."""

    def __init__(self, store: LeaseStore, options: ElectionOptions, leadership: Leadership) -> None:
        self._store = store
        self._options = options
        self._times = options.times
        self._leadership = leadership
        self._observed: LeaseRecord | None = None
        self._observed_at = 0.0
        self._trouble = ""

    async def acquire(self) -> None:
        """Wait until this replica holds the lease."""
        while True:
            if await self._attempt(self._times.attempt):
                return
            await asyncio.sleep(self._times.retry_period * (1 + JITTER * random.random()))

    async def renew(self, may_renew: Callable[[], bool] = lambda: True) -> None:
        """Keep the lease; returns when it is lost, or when it ran out because it may not be renewed."""
        loop = asyncio.get_running_loop()
        while (left := self._leadership.valid_until - loop.time()) > 0:
            await asyncio.sleep(min(self._times.retry_period, left))
            left = self._leadership.valid_until - loop.time()
            if left > 0 and may_renew():
                # An attempt may not outlast the lease: whoever waits for its end must be told in time.
                held = await self._attempt(min(self._times.attempt, left))
                if not held and self._held_by_another():
                    break
        self._leadership.valid_until = float("-inf")

    async def release(self) -> None:
        """Give the lease up, so that another replica need not wait for its end."""
        self._leadership.valid_until = float("-inf")
        record = await self._store.read()
        if record is not None and record.holder == self._options.identity:
            now = MicroTime.now().to_wire()
            await self._store.write(
                msgspec.structs.replace(record, holder="", duration=1, acquired=now, renewed=now)
            )

    async def _attempt(self, timeout: float) -> bool:
        """Try once to take or renew the lease; failures to reach the server count as no."""
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout):
                held = await self._take(started)
        except (Conflict, AlreadyExists):
            return False
        except (KubewrightError, TimeoutError, msgspec.DecodeError) as error:
            # Whatever it is, credentials that fail or an answer of a stranger: the lease lasts longer than one attempt.
            self._complain(str(error) or "timed out")
            return False
        self._trouble = ""
        return held

    def _complain(self, trouble: str) -> None:
        """Say once what is wrong, however long it lasts."""
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("The lease %s could not be read or renewed: %s", self._options.name, trouble)

    async def _take(self, started: float) -> bool:
        options = self._options
        record = await self._store.read()
        now = asyncio.get_running_loop().time()
        if record is None:
            # Who deletes the record does not stop its holder, who may write until it has run out.
            if self._observed is not None and self._runs(self._observed, now):
                return False
            moment = MicroTime.now().to_wire()
            self._observe(
                await self._store.write(LeaseRecord(options.identity, self._seconds, moment, moment, 0)), now
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
                duration=self._seconds,
                acquired=record.acquired if ours else moment,
                renewed=moment,
                transitions=record.transitions + (0 if ours else 1),
            )
            self._observe(await self._store.write(taken), now)
        # Counted from before the request: others see the renewal no earlier than that.
        self._leadership.valid_until = started + self._times.renew_deadline
        return True

    def _runs(self, record: LeaseRecord, now: float) -> bool:
        """Tell whether another replica's lease, last seen to change when it was observed, may not have run out."""
        others = record.holder not in ("", self._options.identity)
        return others and now < self._observed_at + record.duration

    @property
    def _seconds(self) -> int:
        return max(1, round(self._times.duration))

    def _observe(self, record: LeaseRecord, now: float) -> None:
        self._observed, self._observed_at = record, now

    def _held_by_another(self) -> bool:
        return self._observed is not None and self._observed.holder not in ("", self._options.identity)


class ElectionThread:
    """Run an elector beside the main loop; `wait_leading`, then `wait_lost`, at the end `stop`."""

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
        self._ended = threading.Event()
        self._release = False
        self._answered_at = self._main.time()
        self._thread = threading.Thread(target=self._run, name="kubewright-election", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Begin to seek the lease."""
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Tell whether this replica led, or sought to, and no longer does."""
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

    async def stop(self, *, release: bool) -> None:
        """End the thread; release the lease only when nothing of this replica can still write."""
        self._release = release
        self._ended.set()
        if self._loop is not None and self._task is not None:
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                pass  # its loop ended by itself
        if self._thread.ident is not None:  # it was started: a failure before that has its own story
            await asyncio.to_thread(self._thread.join, self._options.times.renew_deadline)

    def _run(self) -> None:
        try:
            # A loop like the main one: what it calls until when the lease lasts is compared with the main loop's time,
            # and the clocks of two kinds of loop may differ (uvloop's goes on while a Mac sleeps).
            with asyncio.Runner(loop_factory=type(self._main)) as runner:
                runner.run(self._elect())
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self._failure = error
            _log.exception("Leader election failed")
        if not self._ended.is_set():
            self._tell_main(self._lost.set)
        if self._leading.is_set() and not self._ended.wait(self._patience):
            _log.critical("The main loop did not stop after the lease was lost: ending the process")
            self._end_process()

    @property
    def _patience(self) -> float:
        """Seconds from the loss of the lease until another replica may write, less one to be safe."""
        times = self._options.times
        return max(0.5, times.duration - times.renew_deadline - 1.0)

    async def _elect(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._ended.is_set():
            return  # stopped before there was a task to cancel
        options = self._options
        async with Client(self._config, timeout=options.times.attempt) as client:
            elector = Elector(ClusterLease(client, options.name, options.namespace), options, self.leadership)
            try:
                await elector.acquire()
                _log.info("Acquired the lease %s/%s as %s", options.namespace, options.name, options.identity)
                self._answered_at = self._main.time()
                self._tell_main(self._leading.set)
                await elector.renew(self._main_loop_answers)
                _log.error("Lost the lease %s/%s", options.namespace, options.name)
            finally:
                if self._release:
                    async with asyncio.timeout(options.times.attempt):
                        await elector.release()

    def _main_loop_answers(self) -> bool:
        self._tell_main(self._answer)
        silence = self._main.time() - self._answered_at
        if silence < self._options.times.main_loop_silence:
            return True
        _log.error("The main loop has not answered for %.0f s: the lease is not renewed", silence)
        return False

    def _answer(self) -> None:
        self._answered_at = self._main.time()

    def _tell_main(self, callback: Callable[[], object]) -> None:
        try:
            self._main.call_soon_threadsafe(callback)
        except RuntimeError:
            pass  # the main loop is closed: nobody is left to tell


def _record_of(lease: dict[str, Any]) -> LeaseRecord:
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
