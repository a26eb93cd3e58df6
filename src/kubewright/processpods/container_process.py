"""A container that runs as a process: prepare, start, probe, restart and stop it."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from kubewright.api import KubewrightError
from kubewright.api.builtin import core_v1
from kubewright.devcluster import clock
from kubewright.devcluster.pod_lifecycle import (
    CRASH_LOOP,
    PodEvent,
    backoff,
    crash_loop_backoff,
    may_restart,
    start_events,
)
from kubewright.processpods.child import Child, StartError
from kubewright.processpods.container_state import ContainerExit, ContainerRecord
from kubewright.processpods.environment import ContainerConfigError
from kubewright.processpods.output import Output
from kubewright.processpods.preparation import PodPreparation, Prepared
from kubewright.processpods.probes import Health, ProbeError, check_command, check_http
from kubewright.processpods.reaper import kill_orphans
from kubewright.processpods.volumes import termination_message

RETRY_SECONDS = 10.0
BACKOFF_RESET = timedelta(minutes=10)
"""A container that ran this long is restarted without backoff."""
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
        self.events: list[PodEvent] = []
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

    async def run_until_stopped(self) -> None:
        """Run the container, with restarts, until it is stopped or has exited for good."""
        if self.record.final_exit is not None:
            return
        while not self._stopping.is_set() and await self._run_once():
            pass
        self.started.set()

    async def stop(self, grace: float) -> None:
        """Stop the container: send its stop signal, and kill it after the grace period."""
        self._stopping.set()
        if self.child is not None:
            self.events.append(PodEvent("Killing", f"Stopping container {self.container.name}"))
            await self._terminate(self.child, grace)

    async def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command next to the container; return the exit code and the output."""
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
        """Start a command with the container's environment and working directory."""
        assert self.prepared is not None
        return await Child.start(
            command,
            reaper=self._preparation.machine.reaper,
            environment=self.prepared.environment,
            folder=self.prepared.folder,
            stdin=stdin,
            tty=tty,
        )

    async def _run_once(self) -> bool:
        """Run the container once; return True if it should be restarted."""
        try:
            self.prepared = await self._preparation.prepare(self.container)
        except (ContainerConfigError, KubewrightError, OSError, ValueError) as error:
            self._set_waiting(
                "CreateContainerConfigError", str(error), PodEvent("Failed", f"Error: {error}", True)
            )
            return not await self._stopped_within(RETRY_SECONDS)
        exit_ = await self._run(self.prepared)
        record = self.record
        record.running_since, record.started, record.ready = None, False, False
        if self._stopping.is_set() or not may_restart(self._policy, exit_.code):
            record.final_exit = exit_
            self._changed()
            return False
        record.last_exit = exit_
        if exit_.ended - exit_.began >= BACKOFF_RESET:
            self._failures = 0
        if self._failures:
            text, event = crash_loop_backoff(self._preparation.pod, self.container, self._failures)
            self._set_waiting(CRASH_LOOP, text, event)
            if await self._stopped_within(backoff(self._failures).total_seconds()):
                record.final_exit = exit_
                return False
        self._failures += 1
        record.restarts += 1
        return True

    async def _run(self, prepared: Prepared) -> ContainerExit:
        began = _now()
        if self.record.has_run:
            self.previous = self.output
        self.output = Output()
        try:
            child = self.child = await self.start(
                prepared.command, stdin=self.container.stdin, tty=self.container.tty
            )
        except StartError as error:
            self.events.append(PodEvent("Failed", f"Error: {error}", warning=True))
            self.output.end()
            return ContainerExit(_CANNOT_START, began, began, "StartError", str(error))
        self.events += start_events(self.container)
        health = Health(self.container, self._preparation.address, self.execute)
        self.record.running_since = began
        self._publish_health(health)
        if self._stopping.is_set():
            child.kill()
        async with asyncio.TaskGroup() as group:
            supervisor = group.create_task(self._supervise(child, health))
            code = await child.run(self.output.feed)
            supervisor.cancel()
        self.child = None
        self.output.end()
        message = await asyncio.to_thread(_clean_up, prepared)
        return ContainerExit(code, began, _now(), message=message or self._last_lines(code))

    async def _supervise(self, child: Child, health: Health) -> None:
        """Run the postStart hook and the probes; terminate the process if they fail."""
        hook = self.container.lifecycle.post_start if self.container.lifecycle is not None else None
        if hook is not None and (problem := await self._hook(hook)):
            self.events.append(
                PodEvent("FailedPostStartHook", f"PostStartHook failed: {problem}", warning=True)
            )
            await self._terminate(child, self._grace())
            return
        probe_name = await health.watch(lambda: self._publish_health(health), self.events.append)
        self.events.append(
            PodEvent(
                "Killing", f"Container {self.container.name} failed {probe_name} probe, will be restarted"
            )
        )
        self._changed()
        await self._terminate(child, self._grace())

    def _publish_health(self, health: Health) -> None:
        self.record.started, self.record.ready = health.started, health.ready
        if health.started:
            self.started.set()
        self._changed()

    async def _terminate(self, child: Child, grace: float) -> None:
        life = self.container.lifecycle
        if grace > 0 and life is not None and life.pre_stop is not None:
            started_status = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(grace):
                    problem = await self._hook(life.pre_stop)
            except TimeoutError:
                problem = "timed out after the grace period"
            if problem:
                self.events.append(
                    PodEvent("FailedPreStopHook", f"PreStopHook failed: {problem}", warning=True)
                )
            grace = max(grace - (asyncio.get_running_loop().time() - started_status), 1.0)
        stop_signal = life.stop_signal if life is not None else None
        signals = signal.Signals.__members__
        await child.terminate(signals.get(stop_signal or "", signal.SIGTERM), grace)

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

    def _set_waiting(self, reason: str, message: str, event: PodEvent) -> None:
        self.record.waiting = (reason, message)
        self.events.append(event)
        self._changed()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _clean_up(prepared: Prepared) -> str:
    """Kill processes that the container left behind, and return its termination message."""
    kill_orphans(prepared.mark)
    return termination_message(prepared.termination_message)


def _now() -> datetime:
    return clock.now().replace(microsecond=0)
