"""Leader election of a simulated replica: the elector of `ElectionThread`, as a task of the replica's own process."""

import asyncio
from collections.abc import Callable

from kubewright.api.sharding import Shards
from kubewright.client import ClusterConfig
from kubewright.election import ElectionOptions, ElectionThread, Leadership, ShardElection

_LOOK = 0.25


class SimulatedElection(ElectionThread):
    """Run the elector on the main loop, so that it pauses and crashes with the process and uses virtual time."""

    def __init__(
        self, config: ClusterConfig, options: ElectionOptions, *, end_process: Callable[[], None]
    ) -> None:
        super().__init__(config, options, end_process=end_process)
        self.leadership: Leadership = Leadership(asyncio.get_running_loop().time)
        self._responded_at = self.leadership.clock()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start trying to acquire the lease."""
        self._running = asyncio.get_running_loop().create_task(self._run_here(), name="election")

    async def stop(self) -> None:
        """Start no more work, and release the lease when nothing that needs it is running."""
        self._stopping.set()
        self.leadership.close(self._end_elector)
        if self._running is not None and not self.leadership.active:
            await asyncio.wait([self._running], timeout=self._options.times.renew_deadline)

    async def _run_here(self) -> None:
        try:
            await self._elect()
        except asyncio.CancelledError:
            pass
        except Exception as error:
            self._failure = error
        self.leadership.end()
        if not self._stopping.is_set():
            self._lost.set()
        until = self.leadership.exit_time(self._options.times)
        while self.leadership.active:
            if self.leadership.clock() >= until:
                self._end_process()
            await asyncio.sleep(_LOOK)


class SimulatedShardElection(ShardElection):
    """Run the elector of shards on the main loop, as `SimulatedElection` does."""

    def __init__(
        self,
        config: ClusterConfig,
        options: ElectionOptions,
        shards: Shards,
        *,
        end_process: Callable[[], None],
    ) -> None:
        clock = asyncio.get_running_loop().time
        super().__init__(config, options, shards, end_process=end_process, clock=clock)
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Join the election."""
        self._running = asyncio.get_running_loop().create_task(self._run_here(), name="election")

    async def _wait_ended(self) -> None:
        if self._running is not None:
            await asyncio.wait([self._running], timeout=self._options.times.renew_deadline)

    async def _run_here(self) -> None:
        try:
            await self._take_part()
        except Exception as error:
            if not self.failure.done():
                self.failure.set_result(error)
