"""The Pods of a cluster as processes of this machine."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from kubewright.api import ObjectKey
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.fates import ANNOTATION
from kubewright.devcluster.places import LOOPBACK_NETWORK, Place
from kubewright.devcluster.scratch import Scratch
from kubewright.devcluster.stages import Stage, has_ended, too_long
from kubewright.devserver import Endpoint
from kubewright.processpods.commands import Images, runs_here
from kubewright.processpods.endpoints import pod_endpoints
from kubewright.processpods.pod_processes import PodProcesses
from kubewright.processpods.preparation import Machine, PodPreparation
from kubewright.processpods.reaper import Reaper
from kubewright.processpods.streams import ProcessContainers

STOP_SECONDS = 2.0
"""Seconds that processes are given when the whole cluster ends."""


class ProcessPods:
    """Run Pods while the context is open; nothing of them is left when it closes, or when this process dies."""

    network = LOOPBACK_NETWORK

    def __init__(self, images: Images) -> None:
        self._images = images
        self._pods: dict[str, PodProcesses] = {}
        self._elsewhere: set[str] = set()
        self._changes: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._stack = AsyncExitStack()
        self.endpoints: Mapping[str, Endpoint] = pod_endpoints(ProcessContainers(self._pods.get))
        """Subresources of Pods, for the API server."""

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
        """Run Pods of the cluster at `url`."""
        self._machine = Machine(client, url, self._images, self._reaper, self._scratch.path)

    async def advance(self, pod: core_v1.Pod, place: Place, now: datetime) -> Stage | None:
        """Start the containers of a Pod and return its stage, or None if no container runs on this machine."""
        processes = self._pods.get(pod.metadata.uid) or await self._start(pod, place)
        if processes is None:
            return None
        stage, limit = processes.stage(pod, now), pod.spec.active_deadline_seconds
        if limit is None or has_ended(stage.status.phase):
            return stage
        due = (pod.status.start_time or now) + timedelta(seconds=limit)
        if now < due:
            stage.again = min(filter(None, (stage.again, due)))
            return stage
        if not processes.ended:
            self._group.create_task(processes.stop(pod.spec.termination_grace_period_seconds or 0))
            return stage
        ended = too_long(stage.status)
        ended.notes = [*stage.notes, *ended.notes]
        return ended

    async def stop(self, pod: core_v1.Pod, place: Place, now: datetime) -> Stage | None:
        """Stop the containers of a Pod and return its stage, or None if no container ran on this machine."""
        processes = self._pods.get(pod.metadata.uid)
        if processes is None:
            return None
        if not processes.ended:
            self._group.create_task(processes.stop(pod.metadata.deletion_grace_period_seconds or 0))
            # `changed` yields the Pod again when a process has ended.
            await asyncio.sleep(0)
        stage = processes.stage(pod, now)
        stage.running = not processes.ended
        if processes.ended:
            self.forget(pod)
        return stage

    def forget(self, pod: core_v1.Pod) -> None:
        """Forget a Pod that was deleted."""
        self._elsewhere.discard(pod.metadata.uid)
        processes = self._pods.pop(pod.metadata.uid, None)
        if processes is not None:
            self._group.create_task(self._remove(processes))

    async def changed(self) -> AsyncIterator[ObjectKey]:
        """Yield the keys of Pods whose stage has changed."""
        while True:
            yield await self._changes.get()

    async def _start(self, pod: core_v1.Pod, place: Place) -> PodProcesses | None:
        uid = pod.metadata.uid
        if uid in self._elsewhere:
            return None
        here = await asyncio.to_thread(self._found_here, pod)
        if not here or ANNOTATION in pod.metadata.annotations:
            self._elsewhere.add(uid)
            return None
        key = ObjectKey(pod.metadata.namespace, pod.metadata.name)
        preparation = PodPreparation(self._machine, pod, place)
        processes = PodProcesses(preparation, place, here, lambda: self._changes.put_nowait(key))
        self._pods[uid] = processes
        self._group.create_task(processes.run())
        return processes

    def _found_here(self, pod: core_v1.Pod) -> frozenset[str]:
        every = (*pod.spec.init_containers, *pod.spec.containers)
        return frozenset(item.name for item in every if runs_here(item, self._images))

    async def _remove(self, processes: PodProcesses) -> None:
        await processes.stop(0)
        await processes.clear()

    async def _stop_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for processes in self._pods.values():
                group.create_task(processes.stop(STOP_SECONDS))
