"""The processes of one Pod, in their order: init containers, those beside them, then the containers themselves."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from kubewright.api.builtin import core_v1
from kubewright.devcluster import clock
from kubewright.devcluster.containers import Note, may_restart
from kubewright.devcluster.places import Place
from kubewright.devcluster.stages import Stage
from kubewright.processpods.container_process import ContainerProcess
from kubewright.processpods.container_state import INITIALIZING, ContainerRecord, Ending, stage_of
from kubewright.processpods.preparation import PodPreparation

REFRESH_SECONDS = 60.0
TOKEN_SECONDS = 3600.0
"""The lifetime of a token without expirationSeconds."""
_LOST = 255


class PodProcesses:
    """All processes of a Pod; `here` names the containers whose commands this machine has."""

    def __init__(
        self, preparation: PodPreparation, place: Place, here: frozenset[str], changed: Callable[[], None]
    ) -> None:
        self.pod: core_v1.Pod = preparation.pod
        self.address: str = preparation.address
        self.ended: bool = False
        self.containers: dict[str, ContainerProcess] = {}
        self._preparation = preparation
        self._place = place
        self._changed = changed
        self._stopping = asyncio.Event()
        self._grace = 0.0
        self._facts: dict[str, ContainerRecord] = {}
        now = clock.now().replace(microsecond=0)
        spec, known = self.pod.spec, _known(self.pod)
        for item in (*spec.init_containers, *spec.containers):
            init = item in spec.init_containers
            policy = _policy(item, spec.restart_policy, init=init)
            if item.name in here:
                record = _remembered(known.get(item.name), policy, now)
                if spec.init_containers and not init and not record.has_run:
                    record.waits = (INITIALIZING, "")
                self.containers[item.name] = ContainerProcess(item, policy, preparation, changed, record)
                self._facts[item.name] = record
            elif init:
                self._facts[item.name] = _pretended(item, now)

    @property
    def mark(self) -> str:
        """What the marks of all processes of the Pod begin with."""
        return self._preparation.mark

    def stage(self, pod: core_v1.Pod, now: datetime) -> Stage:
        """Return the stage of the Pod, with the events since the last call."""
        notes: list[Note] = []
        for process in self.containers.values():
            notes += process.notes
            process.notes.clear()
        return stage_of(pod, self._place, now, self._facts, notes, stopping=self._stopping.is_set())

    async def run(self) -> None:
        """Run the Pod to its end."""
        try:
            async with asyncio.TaskGroup() as group:
                care = group.create_task(self._refresh())
                if await self._initialize(group):
                    await self._work(group)
                care.cancel()
                for process in self._beside():
                    group.create_task(process.stop(self._grace))
        finally:
            self.ended = True
            self._changed()

    async def stop(self, grace: float) -> None:
        """Stop all processes; a second call can shorten the grace period."""
        self._stopping.set()
        self._grace = grace
        beside = self._beside()
        async with asyncio.TaskGroup() as group:
            for process in self.containers.values():
                if process not in beside:
                    group.create_task(process.stop(grace))

    async def clear(self) -> None:
        """Remove what the Pod leaves in folders."""
        await self._preparation.clear()

    def _beside(self) -> list[ContainerProcess]:
        """Return the containers that run beside the others from before their start until after their end."""
        names = {item.name for item in self.pod.spec.init_containers if item.restart_policy == "Always"}
        return [process for name, process in self.containers.items() if name in names]

    async def _initialize(self, group: asyncio.TaskGroup) -> bool:
        beside = self._beside()
        for item in self.pod.spec.init_containers:
            process = self.containers.get(item.name)
            if process is None:
                continue
            if process in beside:
                group.create_task(process.keep())
                await process.started.wait()
            else:
                await process.keep()
                if process.record.ending is None or process.record.ending.code != 0:
                    return False
            if self._stopping.is_set():
                return False
        return True

    async def _work(self, group: asyncio.TaskGroup) -> None:
        containers = [
            self.containers[item.name] for item in self.pod.spec.containers if item.name in self.containers
        ]
        for process in containers:
            if not process.record.has_run:
                process.record.waits = ("ContainerCreating", "")
        tasks = [group.create_task(process.keep()) for process in containers]
        if tasks:
            await asyncio.wait(tasks)
        if len(tasks) < len(self.pod.spec.containers):
            # The others only pretend to run, and do so until the Pod is deleted.
            await self._stopping.wait()

    async def _refresh(self) -> None:
        rounds, to_tokens = 0, rounds_to_tokens(self.pod.spec)
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            rounds += 1
            tokens = rounds >= to_tokens
            # Where something is missing what was there stays, and the next round may find it again.
            if await self._preparation.refresh(tokens=tokens) and tokens:
                rounds = 0


def rounds_to_tokens(spec: core_v1.PodSpec) -> int:
    """Return after how many refreshes a Pod's tokens are renewed: at two thirds of the shortest lifetime."""
    sources = [part for item in spec.volumes if item.projected is not None for part in item.projected.sources]
    lives = [
        part.service_account_token.expiration_seconds or TOKEN_SECONDS
        for part in sources
        if part.service_account_token is not None
    ]
    return max(int(min([*lives, TOKEN_SECONDS]) * 2 / 3 / REFRESH_SECONDS), 1)


def _policy(container: core_v1.Container, policy: str, *, init: bool) -> str:
    if container.restart_policy:
        return container.restart_policy
    return "OnFailure" if init and policy == "Always" else policy


def _pretended(container: core_v1.Container, now: datetime) -> ContainerRecord:
    if container.restart_policy == "Always":
        return ContainerRecord(since=now, started=True, ready=True)
    return ContainerRecord(ending=Ending(0, now, now), ready=True)


def _remembered(before: core_v1.ContainerStatus | None, policy: str, now: datetime) -> ContainerRecord:
    """Take up what was known of a container before the cluster was started again: its process is lost."""
    if before is None or not before.container_id:
        return ContainerRecord()
    if (end := before.state.terminated) is not None:
        began, ended = end.started_at or now, end.finished_at or now
        return ContainerRecord(
            before.restart_count, ending=Ending(end.exit_code, began, ended, end.reason, end.message)
        )
    running = before.state.running
    began = running.started_at if running is not None and running.started_at is not None else now
    lost = Ending(_LOST, began, now, "Unknown")
    if not may_restart(policy, lost.code):
        return ContainerRecord(before.restart_count, ending=lost)
    return ContainerRecord(before.restart_count + 1, last=lost)


def _known(pod: core_v1.Pod) -> dict[str, core_v1.ContainerStatus]:
    status = pod.status
    return {item.name: item for item in (*status.init_container_statuses, *status.container_statuses)}
