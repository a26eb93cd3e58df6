"""Logs, exec, attach and port-forward of containers that run as processes."""

import asyncio
import contextlib
import functools
import ipaddress
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from kubewright.api import JsonObject
from kubewright.devserver import StatusError
from kubewright.processpods.child import Child, StartError
from kubewright.processpods.container_process import ContainerProcess
from kubewright.processpods.pod_processes import PodProcesses
from kubewright.processpods.reaper import MARK
from kubewright.processpods.streaming.requests import CommandRequest, Dial, LogRequest
from kubewright.processpods.streaming.session import Run, Session

_PROCESSES = Path("/proc")
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
_MAPPED = "0000000000000000FFFF0000"
"""Prefix of IPv4 addresses in /proc/net/tcp6."""


def port_belongs_to_pod(address: str, port: int, mark: str) -> bool:
    """Return True if a port of the Pod's address belongs to the Pod, or if nothing listens on it.

    A process of another program may listen on all addresses of this machine. Blocking. Returns True without /proc.
    """
    tables = [Path(_PROCESSES, "net", name) for name in _TABLES]
    if not any(table.is_file() for table in tables):
        return True
    own = _hexadecimal(address)
    others: set[str] = set()
    for where, number in _listening(tables, port):
        if where in (own, f"{_MAPPED}{own}"):
            return True
        if not where.strip("0"):
            others.add(number)
    return not others or any(number in others for number in _sockets(mark))


def _hexadecimal(address: str) -> str:
    """Format an IPv4 address as in /proc/net/tcp: hexadecimal in the machine's byte order."""
    packed = ipaddress.IPv4Address(address).packed
    return (packed[::-1] if sys.byteorder == "little" else packed).hex().upper()


def _listening(tables: list[Path], port: int) -> Iterator[tuple[str, str]]:
    """Yield the addresses that are listened on for a port, with their socket inodes."""
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            where, _, number = fields[1].partition(":")
            if fields[3] == _LISTENS and int(number, 16) == port:
                yield where, fields[9]


def _sockets(mark: str) -> Iterator[str]:
    """Yield the socket inodes of processes with the mark."""
    beginning = f"{MARK}={mark}".encode()
    for number in filter(str.isdecimal, os.listdir(_PROCESSES)):
        process = _PROCESSES / number
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            if not any(item.startswith(beginning) for item in variables):
                continue
            links = [os.readlink(process / "fd" / name) for name in os.listdir(process / "fd")]
        except OSError:
            # The process has ended, or belongs to another user.
            continue
        yield from (link[8:-1] for link in links if link.startswith("socket:["))


def _not_implemented(message: str) -> StatusError:
    return StatusError(501, "NotImplemented", message)


class ProcessContainers:
    """The containers of process Pods; `find` returns a Pod's processes by its uid."""

    def __init__(self, find: Callable[[str], PodProcesses | None]) -> None:
        self._find = find

    def logs(self, pod: JsonObject, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Return the log of a container's current or previous run."""
        process, name = self._process(pod, container), pod["metadata"]["name"]
        if request.previous:
            if process.previous is None:
                raise StatusError.bad_request(
                    f'previous terminated container "{container}" in pod "{name}" not found'
                )
            return process.previous.read(request)
        if not process.record.has_run:
            raise StatusError.bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: {process.record.waiting[0]}'
            )
        return process.output.read(request)

    def execute(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Run a command next to a running container."""
        process = self._running(pod, container)
        return lambda terminal: _execute(process, request, terminal)

    def attach(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Attach to a running container."""
        process = self._running(pod, container)
        return lambda terminal: _attach(process, request, terminal)

    def forward(self, pod: JsonObject) -> Dial:
        """Return a function that connects to ports of the Pod."""
        processes = self._find(pod["metadata"]["uid"])
        if processes is None:
            name = pod["metadata"]["name"]
            raise _not_implemented(f'pod "{name}" is simulated, nothing listens on its ports')
        return functools.partial(_dial, processes)

    def _running(self, pod: JsonObject, container: str) -> ContainerProcess:
        process = self._process(pod, container)
        if process.child is None:
            raise StatusError(404, "NotFound", f'container not found ("{container}"): it is not running')
        return process

    def _process(self, pod: JsonObject, container: str) -> ContainerProcess:
        processes = self._find(pod["metadata"]["uid"])
        process = processes.containers.get(container) if processes is not None else None
        if process is None:
            raise _not_implemented(
                f'container "{container}" of pod "{pod["metadata"]["name"]}" is simulated: this machine does '
                "not have its command; give one with `kubewright dev --pods=process --run IMAGE=COMMAND`"
            )
        return process


async def _dial(processes: PodProcesses, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port, unless another program of this machine listens on it."""
    if not processes.pod.spec.host_network and not await asyncio.to_thread(
        port_belongs_to_pod, processes.address, port, processes.mark
    ):
        raise ConnectionRefusedError(
            f"no process of the Pod listens on port {port}; what does is another program of this machine"
        )
    return await asyncio.open_connection(processes.address, port)


async def _execute(process: ContainerProcess, request: CommandRequest, terminal: Session) -> int:
    command = request.command
    paths = process.prepared.environment.get("PATH") if process.prepared is not None else None
    if "/" not in command[0] and await asyncio.to_thread(shutil.which, command[0], path=paths) is None:
        raise _exec_error(f'exec: "{command[0]}": executable file not found in $PATH')
    try:
        child = await process.start(command, stdin=request.stdin, tty=request.tty)
    except StartError as error:
        raise _exec_error(str(error)) from None
    async with asyncio.TaskGroup() as group:
        helpers = [group.create_task(_feed(child, terminal))] if request.stdin else []
        if request.tty:
            helpers.append(group.create_task(_resize(child, terminal)))
        code = await child.run(terminal.write)
        for task in helpers:
            task.cancel()
    return code


async def _attach(process: ContainerProcess, request: CommandRequest, terminal: Session) -> int:
    child = process.child
    if child is None:
        return 0
    async with asyncio.TaskGroup() as group:
        helpers = [group.create_task(_feed(child, terminal, end=process.container.stdin_once))]
        if process.container.tty:
            helpers.append(group.create_task(_resize(child, terminal)))
        async with contextlib.aclosing(process.output.listen()) as printed:
            async for stream, data in printed:
                await terminal.write(stream, data)
        for task in helpers:
            task.cancel()
    return 0


async def _feed(child: Child, terminal: Session, *, end: bool = True) -> None:
    while data := await terminal.read():
        await child.write(data)
    if end:
        await child.end_input()


async def _resize(child: Child, terminal: Session) -> None:
    while True:
        child.resize(await terminal.resized())


def _exec_error(why: str) -> StatusError:
    return StatusError.internal(f"error executing command in container: {why}")
