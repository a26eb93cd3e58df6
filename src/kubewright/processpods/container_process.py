"""One container as a process: prepared, started, probed, started again when it ends, stopped."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kubewright.api import KubewrightError
from kubewright.api.builtin import core_v1
from kubewright.devcluster import clock
from kubewright.devcluster.containers import (
    CRASH_LOOP,
    Note,
    back_off_told,
    backoff,
    may_restart,
    start_notes,
)
from kubewright.processpods.child import Child, StartError
from kubewright.processpods.container_state import ContainerRecord, Ending
from kubewright.processpods.folders import last_words
from kubewright.processpods.health import Health
from kubewright.processpods.orphans import kill_orphans
from kubewright.processpods.output import Output
from kubewright.processpods.preparation import PodPreparation, Prepared
from kubewright.processpods.probes import ProbeError, check_command, check_http
from kubewright.processpods.values import Unprepared

RETRY_SECONDS = 10.0
WELL = timedelta(minutes=10)
"""A container that ran so long is started again as if it had never failed."""
_CANNOT_START = 128
_MESSAGE_LINES, _MESSAGE_BYTES = 80, 2048


class ContainerProcess:
    """A container of a Pod that runs as a process."""

    def __init__(
        self,
        container: core_v1.Container,
        policy: str,
        preparation: PodPreparation,
        changed: Callable[[], None],
        record: ContainerRecord,
    ) -> None:
        self.container = container
        self.record = record
        self.notes: list[Note] = []
        self.output: Output = Output()
        self.previous: Output | None = None
        self.child: Child | None = None
        self.prepared: Prepared | None = None
        self.started: asyncio.Event = asyncio.Event()
        self._policy = policy
        self._preparation = preparation
        self._changed = changed
        self._failures = 0
        self._stopping = asyncio.Event()

    async def keep(self) -> None:
        """Run it until it is stopped, or has ended and is not to be started again."""
        if self.record.ending is not None:
            return
        while not self._stopping.is_set() and await self._once():
            pass
        self.started.set()

    async def stop(self, grace: float) -> None:
        """Stop it: with a signal first, by force when the grace is over."""
        self._stopping.set()
        if self.child is not None:
            self.notes.append(Note("Killing", f"Stopping container {self.container.name}"))
            await self._terminate(self.child, grace)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command beside it; return exit code and what was printed."""
        assert self.prepared is not None
        printed = Output()
        try:
            child = await self.start(command)
        except StartError as error:
            return _CANNOT_START, str(error)
        code = await child.run(printed.feed)
        printed.end()
        return code, printed.last(_MESSAGE_LINES, _MESSAGE_BYTES)

    async def start(self, command: Sequence[str], *, stdin: bool = False, tty: bool = False) -> Child:
        """Start a command with the container's environment in its folder."""
        assert self.prepared is not None
        return await Child.start(
            command,
            reaper=self._preparation.machine.reaper,
            environment=self.prepared.environment,
            folder=self.prepared.folder,
            stdin=stdin,
            tty=tty,
        )

    async def _once(self) -> bool:
        """Start it and wait for its end; return True if it must be restarted."""
        try:
            self.prepared = await self._preparation.prepare(self.container)
        except (Unprepared, KubewrightError, OSError, ValueError) as error:
            self._wait_because(
                "CreateContainerConfigError", str(error), Note("Failed", f"Error: {error}", True)
            )
            return not await self._stopped_within(RETRY_SECONDS)
        ending = await self._run(self.prepared)
        record = self.record
        record.since, record.started, record.ready = None, False, False
        if self._stopping.is_set() or not may_restart(self._policy, ending.code):
            record.ending = ending
            self._changed()
            return False
        record.last = ending
        if ending.ended - ending.began >= WELL:
            self._failures = 0
        if self._failures:
            text, note = back_off_told(self._preparation.pod, self.container, self._failures)
            self._wait_because(CRASH_LOOP, text, note)
            if await self._stopped_within(backoff(self._failures).total_seconds()):
                record.ending = ending
                return False
        self._failures += 1
        record.restarts += 1
        return True

    async def _run(self, prepared: Prepared) -> Ending:
        began = _now()
        if self.record.has_run:
            self.previous = self.output
        self.output = Output()
        try:
            child = self.child = await self.start(
                prepared.command, stdin=self.container.stdin, tty=self.container.tty
            )
        except StartError as error:
            self.notes.append(Note("Failed", f"Error: {error}", warning=True))
            self.output.end()
            return Ending(_CANNOT_START, began, began, "StartError", str(error))
        self.notes += start_notes(self.container)
        health = Health(self.container, self._preparation.address, self.execute)
        self.record.since = began
        self._feel(health)
        if self._stopping.is_set():
            child.kill()
        async with asyncio.TaskGroup() as group:
            care = group.create_task(self._care(child, health))
            code = await child.run(self.output.feed)
            care.cancel()
        self.child = None
        self.output.end()
        message = await asyncio.to_thread(_cleared, prepared)
        return Ending(code, began, _now(), message=message or self._last_lines(code))

    async def _care(self, child: Child, health: Health) -> None:
        """Run the start hook, then the probes; end the process where they want that."""
        hook = self.container.lifecycle.post_start if self.container.lifecycle is not None else None
        if hook is not None and (trouble := await self._hook(hook)):
            self.notes.append(Note("FailedPostStartHook", f"PostStartHook failed: {trouble}", warning=True))
            await self._terminate(child, self._grace())
            return
        verdict = await health.watch(lambda: self._feel(health), self.notes.append)
        self.notes.append(
            Note("Killing", f"Container {self.container.name} failed {verdict} probe, will be restarted")
        )
        self._changed()
        await self._terminate(child, self._grace())

    def _feel(self, health: Health) -> None:
        self.record.started, self.record.ready = health.started, health.ready
        if health.started:
            self.started.set()
        self._changed()

    async def _terminate(self, child: Child, grace: float) -> None:
        life = self.container.lifecycle
        if grace > 0 and life is not None and life.pre_stop is not None:
            begun = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(grace):
                    trouble = await self._hook(life.pre_stop)
            except TimeoutError:
                trouble = "it took longer than the grace"
            if trouble:
                self.notes.append(Note("FailedPreStopHook", f"PreStopHook failed: {trouble}", warning=True))
            grace = max(grace - (asyncio.get_running_loop().time() - begun), 1.0)
        wanted = life.stop_signal if life is not None else None
        known = signal.Signals.__members__
        await child.terminate(known.get(wanted or "", signal.SIGTERM), grace)

    async def _hook(self, hook: core_v1.LifecycleHandler) -> str:
        try:
            if hook.exec is not None:
                await check_command(hook.exec.command, self.execute)
            elif hook.http_get is not None:
                await check_http(self.container, hook.http_get, self._preparation.address)
            elif hook.sleep is not None:
                await asyncio.sleep(hook.sleep.seconds)
        except (ProbeError, OSError, ValueError) as error:
            return str(error)
        return ""

    def _grace(self) -> float:
        return float(self._preparation.pod.spec.termination_grace_period_seconds or 0)

    def _last_lines(self, code: int) -> str:
        if code and self.container.termination_message_policy == "FallbackToLogsOnError":
            return self.output.last(_MESSAGE_LINES, _MESSAGE_BYTES)
        return ""

    def _wait_because(self, reason: str, message: str, note: Note) -> None:
        self.record.waits = (reason, message)
        self.notes.append(note)
        self._changed()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _cleared(prepared: Prepared) -> str:
    """End what the container left behind, commands beside it included; return the message that it left."""
    kill_orphans(prepared.mark)
    return last_words(prepared.last_words)


def _now() -> datetime:
    return clock.now().replace(microsecond=0)
