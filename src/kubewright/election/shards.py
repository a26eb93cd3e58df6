"""A lease for each shard: replicas share the objects of an operator, and no two act on one shard at the same time.

`ShardElector` is the protocol, a coroutine on any event loop. Each `retry_period` it reads all leases of the operator and
writes those that it holds:

- The operator's own lease is held by the division into shards (`shards/uid-8`), not by a replica, and every replica of that
  division renews it. A replica acts only while it is certain that this lease has not expired, so replicas with another
  number of shards, or without shards, start only after all of these have stopped.
- A replica's lease shows that the replica is running. A replica without one gets no shards.
- A shard's lease is held by one replica, like the lease of a leader: the replica may act until `renew_deadline` after the
  start of its last renewal, on its own clock; others wait the whole duration since they last saw the lease change.

The `Leadership` of a shard ends with whichever of the operator's lease and the shard's lease ends first. A shard that was
lost is dropped; the process ends only if work on it still runs when another replica may begin.

Replicas that were configured with different shards follow the majority: the others release what they hold and wait.
`ShardElection` runs an elector in a thread with its own connection, as `ElectionThread` does.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from kubewright.api import AlreadyExists, Conflict, KubewrightError, MicroTime, NotFound
from kubewright.api.sharding import Shards
from kubewright.client import Client, ClusterConfig, requests
from kubewright.election.assignment import ShardNames, moves, preferred_shards, shards_of_group
from kubewright.election.lease import (
    LEASE,
    ElectionOptions,
    Leadership,
    LeaseRecord,
    MonotonicClock,
    elapsed,
    lease_record,
    lease_wire,
)

SHARDS_LABEL = "kubewright.dev/shards-of"
"""The label of the leases of shards and replicas; its value is the name of the operator's lease."""
FORGET_AFTER = 4
"""A replica's lease is deleted when it has not been renewed for this many times its duration."""
CHECK_PERIOD = 0.25
"""Seconds between two checks for leases that have expired."""

_log = logging.getLogger("kubewright.election")


class LeaseSet(Protocol):
    """Storage of the leases of one operator; a write fails with Conflict if the lease changed since it was read."""

    async def read(self) -> Mapping[str, LeaseRecord]:
        """Return all leases by name: those of shards and replicas, and the operator's own."""
        ...

    async def write(self, name: str, record: LeaseRecord) -> LeaseRecord:
        """Replace a lease at its version; create it if the version is empty."""
        ...

    async def delete(self, name: str, record: LeaseRecord) -> None:
        """Delete a lease at its version."""
        ...


class ClusterLeases:
    """The leases of one operator in a cluster."""

    def __init__(self, client: Client, names: ShardNames, namespace: str) -> None:
        self._client = client
        self._names = names
        self._namespace = namespace
        # Leases that exist and were not listed: their labels were removed. A write adds the label again.
        self._unlisted: set[str] = set()

    async def read(self) -> Mapping[str, LeaseRecord]:
        """Return all leases by name: those of shards and replicas, and the operator's own."""
        labels = f"{SHARDS_LABEL}={self._names.label}"
        listed = await self._client.list(LEASE, namespace=self._namespace, labels=labels)
        found = {lease["metadata"]["name"]: lease_record(lease) for lease in listed}
        self._unlisted -= found.keys()
        for name in {self._names.operator, *self._unlisted}:
            with suppress(NotFound):
                response = await self._client.raw(requests.get(LEASE, name, self._namespace))
                found[name] = lease_record(msgspec.json.decode(response.body))
        return found

    async def write(self, name: str, record: LeaseRecord) -> LeaseRecord:
        """Replace a lease at its version; create it if the version is empty."""
        lease = lease_wire(record, name, self._namespace)
        if name != self._names.operator:
            lease["metadata"]["labels"] = {SHARDS_LABEL: self._names.label}
        request = requests.replace(lease, LEASE) if record.version else requests.create(lease, LEASE)
        try:
            response = await self._client.raw(request)
        except AlreadyExists:
            self._unlisted.add(name)
            raise
        return lease_record(msgspec.json.decode(response.body))

    async def delete(self, name: str, record: LeaseRecord) -> None:
        """Delete a lease at its version."""
        with suppress(NotFound):
            await self._client.raw(
                requests.delete(LEASE, name, self._namespace, resource_version=record.version)
            )


class ShardLease:
    """A shard that this replica holds, and until when it may act on it."""

    def __init__(self, number: int, clock: MonotonicClock) -> None:
        self.number = number
        self.leadership: Leadership = Leadership(clock)
        self.renewed_at: float = 0.0
        """Start time of the request that last wrote its lease."""
        self.must_end_by: float = 0.0
        """Time by which work on it must have ended, once it is lost."""
        self.is_given = False
        """True if it is to be handed over: it is released when no more work runs."""
        self.is_idle = False
        """True when `is_given` is set and no more work runs."""


class ShardsTaken(msgspec.Struct, frozen=True):
    """This replica has taken shards together, so their objects can be listed and watched together."""

    leases: tuple[ShardLease, ...]


class HandOver(msgspec.Struct, frozen=True):
    """A shard is to be handed over: end the work on it, then call `released`."""

    lease: ShardLease


class ShardsLost(msgspec.Struct, frozen=True):
    """The lease of a shard ran out or was taken: all work on it must end at once."""

    lease: ShardLease


ShardEvent = ShardsTaken | HandOver | ShardsLost


class _Seen(msgspec.Struct):
    """A lease, and when this replica first saw it in this state."""

    record: LeaseRecord
    since: float


class ShardElector:
    """Take, renew and hand over shards; `notify` is called with each ShardEvent."""

    def __init__(
        self,
        store: LeaseSet,
        options: ElectionOptions,
        shards: Shards,
        notify: Callable[[ShardEvent], None],
        *,
        clock: MonotonicClock = elapsed,
        end_process: Callable[[], None] = lambda: None,
        may_renew: Callable[[], bool] = lambda: True,
    ) -> None:
        self.holders: dict[int, str] = dict.fromkeys(range(shards.count), "")
        """The replica that holds each shard, according to the last read leases; empty if it is free."""
        self.waiting: str = ""
        """Why this replica can hold no shards now; empty if it can."""
        self._store = store
        self._identity = options.identity
        self._times = options.times
        self._shards = shards
        self._names = ShardNames(options.name, shards)
        self._notify = notify
        self._clock = clock
        self._end_process = end_process
        self._may_renew = may_renew
        self._seen: dict[str, _Seen] = {}
        self._held: dict[int, ShardLease] = {}
        self._ending: list[ShardLease] = []
        self._group_renewed_at = float("-inf")
        self._last_read_at = float("-inf")
        self._members: frozenset[str] = frozenset()
        self._members_since = 0.0
        self._announced = False
        self._leaving = False
        self._problem = ""
        self._wake = asyncio.Event()

    @property
    def held(self) -> tuple[ShardLease, ...]:
        """Return the shards that this replica holds, in the order in which it took them."""
        return tuple(self._held.values())

    async def run(self) -> None:
        """Take part in the election until cancelled, or until `leave` was called and every shard is released."""
        async with asyncio.TaskGroup() as group:
            checks = group.create_task(self._check_forever(), name="lease checks")
            while self._held or not self._leaving:
                await self._attempt()
                if self._held or not self._leaving:
                    await self._pause()
            with suppress(KubewrightError, TimeoutError, msgspec.DecodeError):
                async with asyncio.timeout(self._times.attempt):
                    await self._withdraw(await self._store.read())
            checks.cancel()

    def leave(self) -> None:
        """Take no more shards, and end when those that are held are released."""
        self._leaving = True
        self._wake.set()

    def released(self, lease: ShardLease) -> None:
        """Release a shard: no work on it runs, and none can begin."""
        lease.is_idle = True
        self._wake.set()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.retry_period):
                await self._wake.wait()
        self._wake.clear()

    async def _attempt(self) -> None:
        """Read and write the leases once; a failure is logged once and retried soon."""
        try:
            async with asyncio.timeout(self._times.renew_deadline):
                await self._take_part()
                # Last, because no lease may be lost if this fails.
                await self._forget_members()
        except (Conflict, AlreadyExists):
            return
        except (KubewrightError, TimeoutError, msgspec.DecodeError) as error:
            problem = str(error) or "timed out"
            if problem != self._problem:
                self._problem = problem
                _log.warning(
                    "The leases of %s could not be read or renewed: %s", self._names.operator, problem
                )
            return
        except ExceptionGroup as failures:
            # Writes of several leases failed together; each shard's leadership expires at its own time.
            unexpected = failures.split((KubewrightError, TimeoutError, msgspec.DecodeError))[1]
            if unexpected is not None:
                raise
            return
        self._problem = ""

    async def _take_part(self) -> None:
        started = self._clock()
        leases = await self._store.read()
        self._observe(leases, self._clock())
        if not self._may_renew():
            return
        if self._leaving:
            await self._withdraw(leases)
        else:
            await self._announce(leases)
        preferred = self._preferred(leases)
        await self._renew_group(leases, preferred, started)
        self._last_read_at = started
        self._note_taken_by_others(leases)
        await self._renew_and_release(leases)
        members = self._live_members(self._shards.name)
        if not self._holds_group or self._shards.name != preferred or self._leaving:
            self._give(tuple(self._held) if not self._leaving else ())
            return
        if not self._announced:
            # Announce this replica before it takes shards, so that replicas that start together divide them from the start.
            self._announced = True
            return
        if members != self._members:
            self._members, self._members_since = members, self._clock()
        # Shards that are being handed over come last, so they are the first that are given away.
        mine = sorted(self._held, key=lambda number: self._held[number].is_given)
        free = {number: self._free_or_holder(number) for number in range(self._shards.count)}
        chosen = moves(free, members | {self._identity}, self._identity, mine)
        await self._take(chosen.take, leases)
        if self._clock() >= self._members_since + self._times.duration:
            self._give(chosen.give)

    # Leases that were read

    def _observe(self, leases: Mapping[str, LeaseRecord], now: float) -> None:
        """Record which leases changed since they were last read.

        A shard whose lease was deleted is not free before the lease would have expired. A replica deletes its own lease
        when it leaves.
        """
        for name, record in leases.items():
            seen = self._seen.get(name)
            if seen is None or seen.record != record:
                self._seen[name] = _Seen(record, now)
        for name in self._seen.keys() - leases.keys():
            seen = self._seen[name]
            left = self._names.shards_of_member(name) is not None
            if left or now >= seen.since + self._duration(seen.record):
                del self._seen[name]
        for number in range(self._shards.count):
            self.holders[number] = self._free_or_holder(number)

    def _duration(self, record: LeaseRecord) -> float:
        # A lease without a duration was written by something else: wait as long as for our own.
        return record.duration or self._times.seconds

    def _runs(self, name: str, without: str) -> bool:
        """Return True if a lease may still be valid for another holder."""
        seen = self._seen.get(name)
        if seen is None or seen.record.holder in ("", without):
            return False
        return self._clock() < seen.since + self._duration(seen.record)

    def _free_or_holder(self, number: int) -> str:
        """Return the holder of a shard; an empty string if its lease has expired."""
        name = self._names.shard(number)
        if number in self._held:
            return self._identity
        return self._seen[name].record.holder if self._runs(name, self._identity) else ""

    def _live_members(self, shards: str) -> frozenset[str]:
        """Return the running replicas that are configured with these shards."""
        return frozenset(
            seen.record.holder
            for name, seen in self._seen.items()
            if self._names.shards_of_member(name) == shards
            and seen.record.holder
            and self._clock() < seen.since + self._duration(seen.record)
        )

    def _preferred(self, leases: Mapping[str, LeaseRecord]) -> str:
        """Return the shards that most replicas are configured with; set `waiting` if this replica has others."""
        divisions = {found for name in self._seen if (found := self._names.shards_of_member(name))}
        votes = {name: len(self._live_members(name)) for name in divisions | {self._shards.name}}
        held = leases.get(self._names.operator)
        current = shards_of_group(held.holder) if held is not None else ""
        preferred = preferred_shards(votes, current)
        waiting = ""
        if preferred != self._shards.name:
            waiting = (
                f"this replica is configured with the shards {self._shards.name} and most others with {preferred}: "
                "it waits until they are gone"
            )
        elif self._runs(self._names.operator, self._names.group):
            waiting = f"the lease {self._names.operator} is held by {held.holder if held else ''}: waiting until it expires"
        if waiting and waiting != self.waiting:
            _log.warning("%s", waiting)
        self.waiting = waiting
        return preferred

    # The operator's lease

    @property
    def _holds_group(self) -> bool:
        """Return True if it is certain that the operator's lease is held by this replica's division into shards."""
        return self._clock() < self._group_renewed_at + self._times.renew_deadline

    async def _renew_group(self, leases: Mapping[str, LeaseRecord], preferred: str, started: float) -> None:
        """Renew the operator's lease, or take it once it has expired; record the time from which it is certainly held."""
        name, group = self._names.operator, self._names.group
        record, seen = leases.get(name), self._seen.get(name)
        if self._runs(name, group):
            if record is not None and record.holder != group:
                self._group_renewed_at = float("-inf")
                for lease in self.held:
                    self._lose(lease)
            return
        if record is not None and record.holder == group and seen is not None and seen.since >= started:
            # Another replica renewed it after our previous read, so that read's time is a safe lower bound.
            self._group_renewed_at = max(self._group_renewed_at, self._last_read_at)
        elif preferred == self._shards.name or (
            # The vote of a replica that leaves no longer counts, but its last reconciles need the lease.
            self._leaving and record is not None and record.holder == group
        ):
            await self._write(name, group, record, self._group_written)

    def _group_written(self, requested_at: float) -> None:
        self._group_renewed_at = max(self._group_renewed_at, requested_at)

    # This replica's lease

    async def _announce(self, leases: Mapping[str, LeaseRecord]) -> None:
        """Renew the lease of this replica."""
        name = self._names.member(self._identity)
        await self._write(name, self._identity, leases.get(name), lambda _: None)

    async def _forget_members(self) -> None:
        """Delete the leases of replicas that ended long ago."""
        now = self._clock()
        for name, seen in list(self._seen.items()):
            if self._names.shards_of_member(name) is None:
                continue
            if now >= seen.since + FORGET_AFTER * self._duration(seen.record):
                await self._store.delete(name, seen.record)
                del self._seen[name]

    async def _withdraw(self, leases: Mapping[str, LeaseRecord]) -> None:
        """Delete the lease of this replica, so that no free shard is left to it: the others take them at once."""
        name = self._names.member(self._identity)
        if (record := leases.get(name)) is not None:
            with suppress(KubewrightError):  # then the others wait until it expires
                await self._store.delete(name, record)

    # The leases of shards

    def _note_taken_by_others(self, leases: Mapping[str, LeaseRecord]) -> None:
        for number in list(self._held):
            record = leases.get(self._names.shard(number))
            if record is not None and record.holder not in ("", self._identity):
                self._lose(self._held[number])

    async def _renew_and_release(self, leases: Mapping[str, LeaseRecord]) -> None:
        async with asyncio.TaskGroup() as group:
            for lease in self.held:
                record = leases.get(self._names.shard(lease.number))
                if lease.is_idle:
                    group.create_task(self._release(lease, record))
                else:
                    group.create_task(self._renew(lease, record))

    async def _renew(self, lease: ShardLease, record: LeaseRecord | None) -> None:
        def written(requested_at: float) -> None:
            lease.renewed_at = requested_at
            self._extend(lease)

        with suppress(Conflict, AlreadyExists):
            await self._write(self._names.shard(lease.number), self._identity, record, written)

    async def _release(self, lease: ShardLease, record: LeaseRecord | None) -> None:
        # From now on, even a task that the reconciler left running cannot write.
        lease.leadership.end()
        if record is not None and record.holder == self._identity:
            now = MicroTime.now().to_wire()
            released = msgspec.structs.replace(record, holder="", duration=1, acquired=now, renewed=now)
            await self._store.write(self._names.shard(lease.number), released)
        self._held.pop(lease.number, None)
        _log.info("Released shard %d of %s", lease.number, self._names.operator)

    async def _take(self, numbers: tuple[int, ...], leases: Mapping[str, LeaseRecord]) -> None:
        """Take free shards, except for those whose leases another replica wrote first."""
        taken: list[ShardLease] = []

        async def take(number: int) -> None:
            name = self._names.shard(number)
            lease = ShardLease(number, self._clock)

            def written(requested_at: float) -> None:
                lease.renewed_at = requested_at
                taken.append(lease)

            if not self._runs(name, self._identity) and number not in self._held:
                with suppress(Conflict, AlreadyExists):
                    await self._write(name, self._identity, leases.get(name), written)

        try:
            async with asyncio.TaskGroup() as group:
                for number in numbers:
                    group.create_task(take(number))
        finally:
            taken.sort(key=lambda lease: lease.number)
            for lease in taken:
                self._held[lease.number] = lease
                self._extend(lease)
            if taken:
                chosen = ", ".join(str(lease.number) for lease in taken)
                _log.info("Acquired the shards %s of %s as %s", chosen, self._names.operator, self._identity)
                if self._leaving:
                    for lease in taken:
                        self.released(lease)
                else:
                    self._notify(ShardsTaken(tuple(taken)))

    def _extend(self, lease: ShardLease) -> None:
        """Extend this replica's leadership of a shard for as long as both leases are certainly held."""
        lease.leadership.renewed(min(lease.renewed_at, self._group_renewed_at), self._times)

    def _give(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            lease = self._held[number]
            if not lease.is_given:
                lease.is_given = True
                _log.info("Handing over shard %d of %s", number, self._names.operator)
                self._notify(HandOver(lease))

    def _lose(self, lease: ShardLease) -> None:
        """End the leadership of a shard at once; its work must have ended before another replica may start."""
        self._held.pop(lease.number, None)
        lease.must_end_by = lease.leadership.exit_time(self._times)
        lease.leadership.end()
        _log.error("Lost the lease of shard %d of %s", lease.number, self._names.operator)
        self._ending.append(lease)
        self._notify(ShardsLost(lease))

    async def _check_forever(self) -> None:
        """Detect expired leases, even while a request takes long, and work that still runs without its lease."""
        while True:
            await asyncio.sleep(min(CHECK_PERIOD, self._times.retry_period))
            for lease in self.held:
                if lease.is_idle:
                    if self._clock() >= lease.renewed_at + self._times.seconds:
                        self._held.pop(lease.number, None)  # it could not be released, but has expired by now
                elif not lease.leadership.valid:
                    self._lose(lease)
            self._ending = [lease for lease in self._ending if lease.leadership.active]
            if any(self._clock() >= lease.must_end_by for lease in self._ending):
                _log.critical(
                    "Lost the lease of a shard, and %d reconciles or threads that need it still run: ending the process",
                    sum(lease.leadership.active for lease in self._ending),
                )
                self._end_process()

    async def _write(
        self, name: str, holder: str, record: LeaseRecord | None, written: Callable[[float], None]
    ) -> None:
        """Write a lease for a holder, and call `written` with the start time of the request."""
        moment, requested_at = MicroTime.now().to_wire(), self._clock()
        if record is None:
            if self._runs(name, holder):
                return  # It was deleted, but its holder may act until it would have expired.
            record = LeaseRecord("", 0, "", "", 0)
        same = record.holder == holder
        stored = await self._store.write(
            name,
            msgspec.structs.replace(
                record,
                holder=holder,
                duration=self._times.seconds,
                acquired=record.acquired if same else moment,
                renewed=moment,
                transitions=record.transitions + (0 if same or not record.version else 1),
            ),
        )
        self._seen[name] = _Seen(stored, self._clock())
        written(requested_at)


class ShardElection:
    """Run a `ShardElector` in its own thread: call `start`, read `events`, and call `leave` and `stop` at the end."""

    def __init__(
        self,
        config: ClusterConfig,
        options: ElectionOptions,
        shards: Shards,
        *,
        end_process: Callable[[], None] | None = None,
        clock: MonotonicClock = elapsed,
    ) -> None:
        self.shards = shards
        self.events: asyncio.Queue[ShardEvent] = asyncio.Queue()
        """The events of this replica's shards, for the main loop."""
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """The exception with which the thread ended by itself."""
        self._config = config
        self._options = options
        self._clock = clock
        self._end_process = end_process or _end_process
        self._main = asyncio.get_running_loop()
        self._responded_at = clock()
        self._elector: ShardElector | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving = False
        self._thread = threading.Thread(target=self._run, name="kubewright-election", daemon=True)

    def start(self) -> None:
        """Join the election."""
        self._thread.start()

    @property
    def holders(self) -> Mapping[int, str]:
        """Return the replica that holds each shard, according to the last read leases; empty if it is free."""
        return {} if self._elector is None else dict(self._elector.holders)

    @property
    def waiting(self) -> str:
        """Return why this replica can hold no shards now; empty if it can."""
        return "" if self._elector is None else self._elector.waiting

    def released(self, lease: ShardLease) -> None:
        """Release a shard as soon as no work on it runs; none begins any more."""
        lease.leadership.close(lambda: self._call(lambda elector: elector.released(lease)))

    def leave(self) -> None:
        """Take no more shards; those that are held are renewed until `released` is called for them, or they are lost."""
        self._leaving = True
        for _ in range(self.events.qsize()):
            self._deliver(self.events.get_nowait())
        self._call(lambda elector: elector.leave())

    async def stop(self) -> None:
        """Leave the election; call `released` for all shards before. A thread that still runs keeps its shard's lease."""
        self.leave()
        await self._wait_ended()

    async def _wait_ended(self) -> None:
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, self._options.times.renew_deadline)

    def _run(self) -> None:
        try:
            asyncio.run(self._take_part())
        except BaseException as error:
            failure = error
            _log.exception("The election of shards failed")
            self._call_main(lambda: None if self.failure.done() else self.failure.set_result(failure))

    async def _take_part(self) -> None:
        times = self._options.times
        names = ShardNames(self._options.name, self.shards)
        async with Client(self._config, timeout=times.attempt) as client:
            self._elector = ShardElector(
                ClusterLeases(client, names, self._options.namespace),
                self._options,
                self.shards,
                self._publish,
                clock=self._clock,
                end_process=self._end_process,
                may_renew=self._main_loop_responds,
            )
            self._loop = asyncio.get_running_loop()
            if self._leaving:
                self._elector.leave()
            await self._elector.run()

    def _publish(self, event: ShardEvent) -> None:
        self._call_main(lambda: self._deliver(event))

    def _deliver(self, event: ShardEvent) -> None:
        if self._leaving and isinstance(event, ShardsTaken):
            # No work on them has started, and none will.
            for lease in event.leases:
                self.released(lease)
        else:
            self.events.put_nowait(event)

    def _call(self, call: Callable[[ShardElector], Any]) -> None:
        elector, loop = self._elector, self._loop
        if elector is not None and loop is not None:
            with suppress(RuntimeError):  # its loop ended by itself
                loop.call_soon_threadsafe(call, elector)

    def _main_loop_responds(self) -> bool:
        self._call_main(self._note_response)
        silence = self._clock() - self._responded_at
        if silence < self._options.times.main_loop_silence:
            return True
        _log.error("The main loop has not responded for %.0f s: the leases are not renewed", silence)
        return False

    def _note_response(self) -> None:
        self._responded_at = self._clock()

    def _call_main(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the main loop is closed
            self._main.call_soon_threadsafe(callback)


def _end_process() -> None:
    os._exit(1)
