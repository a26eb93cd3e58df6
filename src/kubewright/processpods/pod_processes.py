"""The processes of one Pod, in order: init containers, sidecars, then containers."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from kubewright.api.builtin import core_v1
from kubewright.devcluster import clock
from kubewright.devcluster.addresses import PodAddresses
from kubewright.devcluster.pod_lifecycle import INITIALIZING, PodEvent, PodUpdate, may_restart
from kubewright.processpods.container_process import ContainerProcess
from kubewright.processpods.container_state import ContainerExit, ContainerRecord, pod_update
from kubewright.processpods.preparation import PodPreparation

REFRESH_SECONDS = 60.0
TOKEN_SECONDS = 3600.0
"""Lifetime of a token without expirationSeconds."""
_LOST = 255


class PodProcesses:
    """All processes of a Pod; `here` names the containers whose commands exist on this machine."""

    def __init__(
        self,
        preparation: PodPreparation,
        addresses: PodAddresses,
        here: frozenset[str],
        changed: Callable[[], None],
    ) -> None:
        self.pod: core_v1.Pod = preparation.pod
        self.address: str = preparation.address
        self.ended: bool = False
        self.containers: dict[str, ContainerProcess] = {}
        self._preparation = preparation
        self._addresses = addresses
        self._changed = changed
        self._stopping = asyncio.Event()
        self._grace = 0.0
        self._records: dict[str, ContainerRecord] = {}
        now = clock.now().replace(microsecond=0)
        spec, known = self.pod.spec, _by_name(self.pod)
        for item in (*spec.init_containers, *spec.containers):
            init = item in spec.init_containers
            policy = _policy(item, spec.restart_policy, init=init)
            if item.name in here:
                record = _restored_record(known.get(item.name), policy, now)
                if spec.init_containers and not init and not record.has_run:
                    record.waiting = (INITIALIZING, "")
                self.containers[item.name] = ContainerProcess(item, policy, preparation, changed, record)
                self._records[item.name] = record
            elif init:
                self._records[item.name] = _simulated_record(item, now)

    @property
    def mark(self) -> str:
        """Prefix of the process marks of this Pod."""
        return self._preparation.mark

    def update(self, pod: core_v1.Pod, now: datetime) -> PodUpdate:
        """Return the Pod's status, and the Events since the last call."""
        events: list[PodEvent] = []
        for process in self.containers.values():
            events += process.events
            process.events.clear()
        return pod_update(pod, self._addresses, now, self._records, events, stopping=self._stopping.is_set())

    async def run(self) -> None:
        """Run the Pod until all its containers have ended."""
        try:
            async with asyncio.TaskGroup() as group:
                refresher = group.create_task(self._refresh())
                if await self._initialize(group):
                    await self._run_containers(group)
                refresher.cancel()
                for process in self._sidecars():
                    group.create_task(process.stop(self._grace))
        finally:
            self.ended = True
            self._changed()

    async def stop(self, grace: float) -> None:
        """Stop all processes; a later call with a shorter grace period takes precedence."""
        self._stopping.set()
        self._grace = grace
        sidecars = self._sidecars()
        async with asyncio.TaskGroup() as group:
            for process in self.containers.values():
                if process not in sidecars:
                    group.create_task(process.stop(grace))

    async def clear(self) -> None:
        """Remove the Pod's files."""
        await self._preparation.clear()

    def _sidecars(self) -> list[ContainerProcess]:
        """Return the sidecars: init containers that run until the other containers have ended."""
        names = {item.name for item in self.pod.spec.init_containers if item.restart_policy == "Always"}
        return [process for name, process in self.containers.items() if name in names]

    async def _initialize(self, group: asyncio.TaskGroup) -> bool:
        sidecars = self._sidecars()
        for item in self.pod.spec.init_containers:
            process = self.containers.get(item.name)
            if process is None:
                continue
            if process in sidecars:
                group.create_task(process.run_until_stopped())
                await process.started.wait()
            else:
                await process.run_until_stopped()
                if process.record.final_exit is None or process.record.final_exit.code != 0:
                    return False
            if self._stopping.is_set():
                return False
        return True

    async def _run_containers(self, group: asyncio.TaskGroup) -> None:
        containers = [
            self.containers[item.name] for item in self.pod.spec.containers if item.name in self.containers
        ]
        for process in containers:
            if not process.record.has_run:
                process.record.waiting = ("ContainerCreating", "")
        tasks = [group.create_task(process.run_until_stopped()) for process in containers]
        if tasks:
            await asyncio.wait(tasks)
        if len(tasks) < len(self.pod.spec.containers):
            # Simulated containers run until the Pod is deleted.
            await self._stopping.wait()

    async def _refresh(self) -> None:
        rounds, token_rounds = 0, token_refresh_rounds(self.pod.spec)
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            rounds += 1
            tokens = rounds >= token_rounds
            # Files whose source is missing stay as they are until the next refresh.
            if await self._preparation.refresh(tokens=tokens) and tokens:
                rounds = 0


def token_refresh_rounds(spec: core_v1.PodSpec) -> int:
    """Return after how many refreshes tokens are renewed: at two thirds of the shortest lifetime."""
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


def _simulated_record(container: core_v1.Container, now: datetime) -> ContainerRecord:
    if container.restart_policy == "Always":
        return ContainerRecord(running_since=now, started=True, ready=True)
    return ContainerRecord(final_exit=ContainerExit(0, now, now), ready=True)


def _restored_record(before: core_v1.ContainerStatus | None, policy: str, now: datetime) -> ContainerRecord:
    """Restore a container's state after a restart of the cluster, which ended its process."""
    if before is None or not before.container_id:
        return ContainerRecord()
    if (end := before.state.terminated) is not None:
        began, ended = end.started_at or now, end.finished_at or now
        return ContainerRecord(
            before.restart_count,
            final_exit=ContainerExit(end.exit_code, began, ended, end.reason, end.message),
        )
    running = before.state.running
    began = running.started_at if running is not None and running.started_at is not None else now
    lost = ContainerExit(_LOST, began, now, "Unknown")
    if not may_restart(policy, lost.code):
        return ContainerRecord(before.restart_count, final_exit=lost)
    return ContainerRecord(before.restart_count + 1, last_exit=lost)


def _by_name(pod: core_v1.Pod) -> dict[str, core_v1.ContainerStatus]:
    status = pod.status
    return {item.name: item for item in (*status.init_container_statuses, *status.container_statuses)}
