"""How a container's process feels by its probes: whether it has started, whether it serves, whether it lives."""

import asyncio
from collections.abc import Callable

from kubewright.api.builtin import core_v1
from kubewright.devcluster.containers import Note
from kubewright.processpods.probes import Execute, ProbeError, probe


class Health:
    """The probes of one start of a container."""

    def __init__(self, container: core_v1.Container, address: str, execute: Execute) -> None:
        self._container = container
        self._address = address
        self._execute = execute
        self.started: bool = container.startup_probe is None
        self.ready: bool = self.started and container.readiness_probe is None

    async def watch(self, changed: Callable[[], None], tell: Callable[[Note], None]) -> str:
        """Probe until the process should be ended; names the probe that wants it."""
        container = self._container
        if container.startup_probe is not None:
            if not await self._passes("Startup", container.startup_probe, tell):
                return "startup"
            self.started, self.ready = True, container.readiness_probe is None
            changed()
        async with asyncio.TaskGroup() as group:
            if container.readiness_probe is not None:
                serving = group.create_task(self._serve(container.readiness_probe, changed, tell))
                group_end = serving.cancel
            else:
                group_end = _nothing
            if container.liveness_probe is None:
                await asyncio.get_running_loop().create_future()
            else:
                await self._fails("Liveness", container.liveness_probe, tell)
            group_end()
        return "liveness"

    async def _passes(self, name: str, what: core_v1.Probe, tell: Callable[[Note], None]) -> bool:
        """Probe until the success or failure threshold is reached."""
        await asyncio.sleep(what.initial_delay_seconds)
        good = bad = 0
        while True:
            if await self._ask(name, what, tell):
                good, bad = good + 1, 0
            else:
                good, bad = 0, bad + 1
            if good >= max(what.success_threshold, 1):
                return True
            if bad >= max(what.failure_threshold, 1):
                return False
            await asyncio.sleep(max(what.period_seconds, 1))

    async def _fails(self, name: str, what: core_v1.Probe, tell: Callable[[Note], None]) -> None:
        """Probe until the failure threshold is reached."""
        await asyncio.sleep(what.initial_delay_seconds)
        bad = 0
        while True:
            bad = 0 if await self._ask(name, what, tell) else bad + 1
            if bad >= max(what.failure_threshold, 1):
                return
            await asyncio.sleep(max(what.period_seconds, 1))

    async def _serve(
        self, what: core_v1.Probe, changed: Callable[[], None], tell: Callable[[Note], None]
    ) -> None:
        await asyncio.sleep(what.initial_delay_seconds)
        streak, last = 0, None
        while True:
            good = await self._ask("Readiness", what, tell)
            streak, last = streak + 1 if good is last else 1, good
            needed = what.success_threshold if good else what.failure_threshold
            if good is not self.ready and streak >= max(needed, 1):
                self.ready = good
                changed()
            await asyncio.sleep(max(what.period_seconds, 1))

    async def _ask(self, name: str, what: core_v1.Probe, tell: Callable[[Note], None]) -> bool:
        try:
            await probe(self._container, what, self._address, self._execute)
        except ProbeError as error:
            tell(Note("Unhealthy", f"{name} probe failed: {error}", warning=True))
            return False
        return True


def _nothing() -> None:
    pass
