"""The work of one replica on its shards: starts when a lease is acquired, ends before a handover or when the lease is lost.

    ShardElection.events ──▶ ShardedWork.follow ── taken ──▶ informers, runners and workers of each shard
                                               ── to hand over ──▶ reconciles end, then the lease is released
                                               ── lost ──▶ reconciles are cancelled at once

Each shard has its own runners and informers. Its writes go through a client that is fenced by the shard's lease
(`ClientReader.fenced`, set up in `Manager._dependencies`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kubewright.cache import Cache
from kubewright.controller import Controller
from kubewright.controller.running import Runner, Shard
from kubewright.election import (
    HandOver,
    LeaseLost,
    ShardElection,
    ShardLease,
    ShardsLost,
    ShardsTaken,
)
from kubewright.metrics import Registry

_log = logging.getLogger("kubewright.manager")

MakeRunner = Callable[[Controller[Any], Shard, ShardLease], Runner[Any]]


class _ShardWork:
    """The runners of one shard, and the task in which they run."""

    def __init__(self, lease: ShardLease, runners: Sequence[Runner[Any]]) -> None:
        self.lease = lease
        self.runners = runners
        self.task: asyncio.Task[None] | None = None
        self.is_working = False
        self.ended = asyncio.Event()


class ShardedWork:
    """Follow the leases of a `ShardElection`: `follow` until cancelled, then `stop`."""

    def __init__(
        self,
        election: ShardElection,
        controllers: Sequence[Controller[Any]],
        make_runner: MakeRunner,
        cache: Cache,
        *,
        graceful_timeout: float,
        metrics: Registry,
        ready: asyncio.Event,
    ) -> None:
        self.election = election
        self._controllers = controllers
        self._make_runner = make_runner
        self._cache = cache
        self._graceful_timeout = graceful_timeout
        self._ready = ready
        self._works: dict[int, _ShardWork] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._held = metrics.gauge(
            "kubewright_shard_held",
            "Whether this replica holds the lease of a shard (1) or not (0)",
            ("shard",),
        )
        for number in range(election.shards.count):
            self._held.labels(shard=str(number)).set(0)

    @property
    def runners(self) -> list[Runner[Any]]:
        """Return the runners of all shards that this replica holds."""
        return [runner for work in self._works.values() for runner in work.runners]

    @property
    def numbers(self) -> list[int]:
        """Return the shards that this replica may act on now."""
        return sorted(number for number, work in self._works.items() if work.lease.leadership.valid)

    async def follow(self, group: asyncio.TaskGroup) -> None:
        """Start and end the work on shards as their leases come and go."""
        self.election.start()
        group.create_task(self._watch_election(), name="election")
        while True:
            event = await self.election.events.get()
            match event:
                case ShardsTaken(leases):
                    await self._begin(leases, group)
                case HandOver(lease):
                    self._end(lease, group, self._graceful_timeout)
                case ShardsLost(lease):
                    self._end(lease, group, 0.0)

    async def stop(self) -> None:
        """End all work as for a handover, and leave the election."""
        # First of all, because otherwise this replica would take the shards again that it releases one after the other.
        self.election.leave()
        async with asyncio.TaskGroup() as group:
            for work in list(self._works.values()):
                self._end(work.lease, group, self._graceful_timeout)
            losses = group.create_task(self._follow_losses(group), name="lost shards")
            while self._endings:
                await asyncio.wait(self._endings)
            losses.cancel()
        await self.election.stop()

    async def _follow_losses(self, group: asyncio.TaskGroup) -> None:
        """Cancel the reconciles of shards that are lost while they end."""
        while True:
            event = await self.election.events.get()
            if isinstance(event, ShardsLost):
                self._end(event.lease, group, 0.0)

    async def _watch_election(self) -> None:
        failure = await self.election.failure
        raise LeaseLost(f"the election of shards failed: {failure}") from failure

    async def _begin(self, leases: Sequence[ShardLease], group: asyncio.TaskGroup) -> None:
        try:
            for lease in leases:
                if (earlier := self._works.get(lease.number)) is not None:
                    await earlier.ended.wait()
        except asyncio.CancelledError:
            for lease in leases:
                self.election.released(lease)
            raise
        shards = self.election.shards
        streams = self._cache.shard_streams([lease.number for lease in leases])
        works = [
            _ShardWork(
                lease,
                [
                    self._make_runner(controller, Shard(shards, lease.number), lease)
                    for controller in self._controllers
                ],
            )
            for lease in leases
        ]
        for work in works:
            for runner in work.runners:
                runner.subscribe()
        self._cache.open_streams(streams)
        for work in works:
            number = work.lease.number
            self._works[number] = work
            self._held.labels(shard=str(number)).set(1)
            work.task = group.create_task(self._work(work), name=f"shard {number}")

    async def _work(self, work: _ShardWork) -> None:
        for runner in work.runners:
            await runner.wait_synced()
        work.is_working = True
        self._ready.set()
        async with asyncio.TaskGroup() as group:
            for runner in work.runners:
                group.create_task(runner.run(), name=f"controller {runner.controller.name}")

    def _end(self, lease: ShardLease, group: asyncio.TaskGroup, timeout: float) -> None:
        work = self._works.get(lease.number)
        if work is None or work.lease is not lease:
            return
        ending = group.create_task(self._ended(work, timeout), name=f"end of shard {lease.number}")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _ended(self, work: _ShardWork, timeout: float) -> None:
        """Let running reconciles end, then cancel them; drop the objects of the shard, and release its lease."""
        for runner in work.runners:
            runner.stop()
        task = work.task
        if task is not None:
            if not work.is_working:
                task.cancel()
            _, late = await asyncio.wait([task], timeout=None if timeout < 0 else timeout)
            if late:
                if timeout:
                    _log.warning(
                        "Reconciles of shard %d did not end within %.0f s: they are cancelled",
                        work.lease.number,
                        timeout,
                    )
                task.cancel()
                await asyncio.wait(late)
        if self._works.get(work.lease.number) is work:
            del self._works[work.lease.number]
            self._held.labels(shard=str(work.lease.number)).set(0)
            for runner in work.runners:
                runner.close()
            work.ended.set()
            self.election.released(work.lease)
            if not any(other.is_working for other in self._works.values()):
                self._ready.clear()
