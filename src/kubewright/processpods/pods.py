"""Runs the Pods of a cluster as processes of this machine."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from kubewright.api import ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.addresses import LOOPBACK_NETWORK, PodAddresses
from kubewright.devcluster.pod_lifecycle import PodUpdate, deadline_exceeded
from kubewright.devcluster.pod_scenarios import SCENARIO_ANNOTATION
from kubewright.devcluster.scratch import Scratch
from kubewright.devcluster.workloads import is_terminal_phase
from kubewright.devserver import SubresourceEndpoint
from kubewright.processpods.endpoints import pod_endpoints
from kubewright.processpods.environment import Images, runs_here
from kubewright.processpods.pod_processes import PodProcesses
from kubewright.processpods.preparation import Machine, PodPreparation
from kubewright.processpods.reaper import Reaper
from kubewright.processpods.streams import ProcessContainers

STOP_SECONDS = 2.0
"""Grace period in seconds when the whole cluster stops."""


class ProcessPods:
    """Run Pods while the context is open; all processes end with it, even if this process is killed."""

    network = LOOPBACK_NETWORK

    def __init__(self, images: Images) -> None:
        self._images = images
        self._pods: dict[str, PodProcesses] = {}
        self._simulated: set[str] = set()
        self._changes: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._stack = AsyncExitStack()
        self.endpoints: Mapping[str, SubresourceEndpoint] = pod_endpoints(ProcessContainers(self._pods.get))
        """Handlers of Pod subresources, for the API server."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._scratch = await asyncio.to_thread(Scratch.create, "kubewright-pods-")
            stack.push_async_callback(asyncio.to_thread, self._scratch.close)
            self._reaper = await asyncio.to_thread(Reaper.start)
            stack.push_async_callback(asyncio.to_thread, self._reaper.stop)
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(self._stop_all)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def serve(self, client: Client, url: str) -> None:
        """Set the cluster whose Pods to run."""
        self._machine = Machine(client, url, self._images, self._reaper, self._scratch.path)

    async def advance(self, pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate | None:
        """Start containers and return the Pod's new status, or None if no container can run on this machine."""
        processes = self._pods.get(pod.metadata.uid) or await self._start(pod, addresses)
        if processes is None:
            return None
        update, limit = processes.update(pod, now), pod.spec.active_deadline_seconds
        if limit is None or is_terminal_phase(update.status.phase):
            return update
        due = (pod.status.start_time or now) + timedelta(seconds=limit)
        if now < due:
            update.requeue_at = min(filter(None, (update.requeue_at, due)))
            return update
        if not processes.ended:
            self._group.create_task(processes.stop(pod.spec.termination_grace_period_seconds or 0))
            return update
        ended = deadline_exceeded(update.status)
        ended.events = [*update.events, *ended.events]
        return ended

    async def stop(self, pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate | None:
        """Stop the containers and return the Pod's new status."""
        processes = self._pods.get(pod.metadata.uid)
        if processes is None:
            return None
        if not processes.ended:
            self._group.create_task(processes.stop(pod.metadata.deletion_grace_period_seconds or 0))
            # A change of the containers triggers another call.
            await asyncio.sleep(0)
        update = processes.update(pod, now)
        update.running = not processes.ended
        if processes.ended:
            self.forget(pod)
        return update

    def forget(self, pod: core_v1.Pod) -> None:
        """Stop and remove what is left of a deleted Pod."""
        self._simulated.discard(pod.metadata.uid)
        processes = self._pods.pop(pod.metadata.uid, None)
        if processes is not None:
            self._group.create_task(self._remove(processes))

    async def changed(self) -> AsyncIterator[ObjectKey]:
        """Yield the keys of Pods whose containers changed."""
        while True:
            yield await self._changes.get()

    async def _start(self, pod: core_v1.Pod, addresses: PodAddresses) -> PodProcesses | None:
        uid = pod.metadata.uid
        if uid in self._simulated:
            return None
        here = await asyncio.to_thread(self._runnable_containers, pod)
        if not here or SCENARIO_ANNOTATION in pod.metadata.annotations:
            self._simulated.add(uid)
            return None
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        preparation = PodPreparation(self._machine, pod, addresses)
        processes = PodProcesses(preparation, addresses, here, lambda: self._changes.put_nowait(key))
        self._pods[uid] = processes
        self._group.create_task(processes.run())
        return processes

    def _runnable_containers(self, pod: core_v1.Pod) -> frozenset[str]:
        every = (*pod.spec.init_containers, *pod.spec.containers)
        return frozenset(item.name for item in every if runs_here(item, self._images))

    async def _remove(self, processes: PodProcesses) -> None:
        await processes.stop(0)
        await processes.clear()

    async def _stop_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for processes in self._pods.values():
                group.create_task(processes.stop(STOP_SECONDS))
