"""Logs, exec, attach and ports of containers that are processes of this machine, and the refusal where none are."""

import asyncio
import contextlib
import functools
import shutil
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

from kubewright.api import JsonObject
from kubewright.devcluster.processes.child import Child, StartError
from kubewright.devcluster.processes.crew import Crew
from kubewright.devcluster.processes.listeners import may_listen
from kubewright.devcluster.processes.member import Member
from kubewright.devserver import CommandRequest, Dial, LogRequest, Run, StatusError, Terminal


class NoContainers:
    """A cluster whose Pods run nothing."""

    def logs(self, pod: JsonObject, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Refuse."""
        return _refuse("logs")

    def execute(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Refuse."""
        return _refuse("exec")

    def attach(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Refuse."""
        return _refuse("attach")

    def forward(self, pod: JsonObject) -> Dial:
        """Refuse."""
        _refuse("port-forward")


def _refuse(what: str) -> NoReturn:
    raise _not_here(
        f"Pods of this cluster only pretend to run, so there is no {what}: "
        "start it with `kubewright dev --pods=process` to run them as processes of this machine"
    )


def _not_here(message: str) -> StatusError:
    return StatusError(501, "NotImplemented", message)


class ProcessContainers:
    """The containers of a cluster whose Pods run as processes; `find` gives a Pod's by its uid."""

    def __init__(self, find: Callable[[str], Crew | None]) -> None:
        self._find = find

    def logs(self, pod: JsonObject, container: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Give what a container printed since it was started, or before."""
        member, name = self._member(pod, container), pod["metadata"]["name"]
        if request.previous:
            if member.previous is None:
                raise StatusError.bad_request(
                    f'previous terminated container "{container}" in pod "{name}" not found'
                )
            return member.previous.read(request)
        if not member.fact.has_run:
            raise StatusError.bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: {member.fact.waits[0]}'
            )
        return member.output.read(request)

    def execute(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Run a command beside a container that runs."""
        member = self._running(pod, container)
        return lambda terminal: _execute(member, request, terminal)

    def attach(self, pod: JsonObject, container: str, request: CommandRequest) -> Run:
        """Connect to a container that runs."""
        member = self._running(pod, container)
        return lambda terminal: _attach(member, request, terminal)

    def forward(self, pod: JsonObject) -> Dial:
        """Connect to ports at the Pod's address."""
        crew = self._find(pod["metadata"]["uid"])
        if crew is None:
            name = pod["metadata"]["name"]
            raise _not_here(f'pod "{name}" only pretends to run, nothing listens on its ports')
        return functools.partial(_dial, crew)

    def _running(self, pod: JsonObject, container: str) -> Member:
        member = self._member(pod, container)
        if member.child is None:
            raise StatusError(404, "NotFound", f'container not found ("{container}"): it does not run now')
        return member

    def _member(self, pod: JsonObject, container: str) -> Member:
        crew = self._find(pod["metadata"]["uid"])
        member = crew.members.get(container) if crew is not None else None
        if member is None:
            raise _not_here(
                f'container "{container}" of pod "{pod["metadata"]["name"]}" only pretends to run: this machine does '
                "not have its command; give one with `kubewright dev --pods=process --run IMAGE=COMMAND`"
            )
        return member


async def _dial(crew: Crew, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of the Pod's own; who listens on all addresses of this machine may be somebody else."""
    if not crew.pod.spec.host_network and not await asyncio.to_thread(
        may_listen, crew.address, port, crew.mark
    ):
        raise ConnectionRefusedError(
            f"no process of the Pod listens on port {port}; what does is another program of this machine"
        )
    return await asyncio.open_connection(crew.address, port)


async def _execute(member: Member, request: CommandRequest, terminal: Terminal) -> int:
    command = request.command
    paths = member.prepared.environment.get("PATH") if member.prepared is not None else None
    if "/" not in command[0] and await asyncio.to_thread(shutil.which, command[0], path=paths) is None:
        raise _cannot(f'exec: "{command[0]}": executable file not found in $PATH')
    try:
        child = await member.start(command, stdin=request.stdin, tty=request.tty)
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


async def _attach(member: Member, request: CommandRequest, terminal: Terminal) -> int:
    child = member.child
    if child is None:
        return 0
    async with asyncio.TaskGroup() as group:
        around = [group.create_task(_feed(child, terminal, end=member.container.stdin_once))]
        if member.container.tty:
            around.append(group.create_task(_resize(child, terminal)))
        async with contextlib.aclosing(member.output.listen()) as printed:
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
