"""Logs, exec, attach and port-forward of containers that run as processes."""

import asyncio
import contextlib
import functools
import shutil
from collections.abc import AsyncIterator, Callable

from kubewright.api import JsonObject
from kubewright.devserver import StatusError
from kubewright.processpods.child import Child, StartError
from kubewright.processpods.container_process import ContainerProcess
from kubewright.processpods.listeners import may_listen
from kubewright.processpods.pod_processes import PodProcesses
from kubewright.processpods.streaming.requests import CommandRequest, Dial, LogRequest, Run, Terminal


def _not_implemented(message: str) -> StatusError:
    return StatusError(501, "NotImplemented", message)


class ProcessContainers:
    """The containers of a cluster whose Pods run as processes; `find` returns a Pod's processes by its uid."""

    def __init__(self, find: Callable[[str], PodProcesses | None]) -> None:
        self._find = find

    def logs(self, pod: JsonObject, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Return what a container printed since it was started, or before."""
        process, name = self._process(pod, container), pod["metadata"]["name"]
        if request.previous:
            if process.previous is None:
                raise StatusError.bad_request(
                    f'previous terminated container "{container}" in pod "{name}" not found'
                )
            return process.previous.read(request)
        if not process.record.has_run:
            raise StatusError.bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: {process.record.waits[0]}'
            )
        return process.output.read(request)

    def execute(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Run a command beside a container that runs."""
        process = self._running(pod, container)
        return lambda terminal: _execute(process, request, terminal)

    def attach(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Connect to a container that runs."""
        process = self._running(pod, container)
        return lambda terminal: _attach(process, request, terminal)

    def forward(self, pod: JsonObject) -> Dial:
        """Connect to ports at the Pod's address."""
        processes = self._find(pod["metadata"]["uid"])
        if processes is None:
            name = pod["metadata"]["name"]
            raise _not_implemented(f'pod "{name}" only pretends to run, nothing listens on its ports')
        return functools.partial(_dial, processes)

    def _running(self, pod: JsonObject, container: str) -> ContainerProcess:
        process = self._process(pod, container)
        if process.child is None:
            raise StatusError(404, "NotFound", f'container not found ("{container}"): it does not run now')
        return process

    def _process(self, pod: JsonObject, container: str) -> ContainerProcess:
        processes = self._find(pod["metadata"]["uid"])
        process = processes.containers.get(container) if processes is not None else None
        if process is None:
            raise _not_implemented(
                f'container "{container}" of pod "{pod["metadata"]["name"]}" only pretends to run: this machine does '
                "not have its command; give one with `kubewright dev --pods=process --run IMAGE=COMMAND`"
            )
        return process


async def _dial(processes: PodProcesses, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of the Pod itself; a listener on all addresses can be another program of this machine."""
    if not processes.pod.spec.host_network and not await asyncio.to_thread(
        may_listen, processes.address, port, processes.mark
    ):
        raise ConnectionRefusedError(
            f"no process of the Pod listens on port {port}; what does is another program of this machine"
        )
    return await asyncio.open_connection(processes.address, port)


async def _execute(process: ContainerProcess, request: CommandRequest, terminal: Terminal) -> int:
    command = request.command
    paths = process.prepared.environment.get("PATH") if process.prepared is not None else None
    if "/" not in command[0] and await asyncio.to_thread(shutil.which, command[0], path=paths) is None:
        raise _cannot(f'exec: "{command[0]}": executable file not found in $PATH')
    try:
        child = await process.start(command, stdin=request.stdin, tty=request.tty)
    except StartError as error:
        raise _cannot(str(error)) from None
    async with asyncio.TaskGroup() as group:
        around = [group.create_task(_feed(child, terminal))] if request.stdin else []
        if request.tty:
            around.append(group.create_task(_resize(child, terminal)))
        code = await child.run(terminal.write)
        for task in around:
            task.cancel()
    return code


async def _attach(process: ContainerProcess, request: CommandRequest, terminal: Terminal) -> int:
    child = process.child
    if child is None:
        return 0
    async with asyncio.TaskGroup() as group:
        around = [group.create_task(_feed(child, terminal, end=process.container.stdin_once))]
        if process.container.tty:
            around.append(group.create_task(_resize(child, terminal)))
        async with contextlib.aclosing(process.output.listen()) as printed:
            async for stream, data in printed:
                await terminal.write(stream, data)
        for task in around:
            task.cancel()
    return 0


async def _feed(child: Child, terminal: Terminal, *, end: bool = True) -> None:
    while data := await terminal.read():
        await child.write(data)
    if end:
        await child.end_input()


async def _resize(child: Child, terminal: Terminal) -> None:
    while True:
        child.resize(await terminal.resized())


def _cannot(why: str) -> StatusError:
    return StatusError.internal(f"error executing command in container: {why}")
