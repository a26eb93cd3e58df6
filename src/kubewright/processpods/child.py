"""A process with all that it starts: its streams, its terminal, its end."""

import asyncio
import contextlib
import os
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

from kubewright.processpods.descriptors import Descriptor
from kubewright.processpods.reaper import Reaper
from kubewright.processpods.streaming.requests import OutputStream, Size

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

# A terminal must be taken by the process itself, in a session of its own.
_WITH_TERMINAL = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"
_SIGNALLED = 128
_LAST_WORDS = 1.0
"""Seconds to read the rest of the pipes: a process that left the process group can keep them open forever."""

Sink = Callable[[OutputStream, bytes], Awaitable[None]]


class StartError(RuntimeError):
    """A command cannot be started; the message has the reason."""


class Child:
    """One process that runs, in a process group of its own."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reaper: Reaper,
        outputs: Mapping[OutputStream, Descriptor],
        stdin: Descriptor | None,
    ) -> None:
        self._process = process
        self._reaper = reaper
        self._outputs = outputs
        self._stdin = stdin
        self.ended: asyncio.Event = asyncio.Event()
        reaper.add_group(process.pid)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        reaper: Reaper,
        environment: Mapping[str, str],
        folder: Path,
        stdin: bool = False,
        tty: bool = False,
    ) -> Self:
        """Start a command, with a terminal or with pipes."""
        await asyncio.to_thread(reaper.restart_if_dead)
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            streams = _terminal(theirs, ours) if tty else _pipes(theirs, ours, stdin=stdin)
            numbers, outputs, given = streams
            wrapped = [sys.executable, "-I", "-S", "-c", _WITH_TERMINAL, *command] if tty else list(command)
            try:
                process = await asyncio.create_subprocess_exec(
                    *wrapped,
                    stdin=numbers[0],
                    stdout=numbers[1],
                    stderr=numbers[2],
                    env=dict(environment),
                    cwd=folder,
                    start_new_session=not tty,
                )
            except OSError as error:
                raise StartError(f"{command[0]}: {error.strerror or error}") from None
            except ValueError as error:
                # No word and no variable of a process can hold a zero byte.
                raise StartError(f"{command[0]}: {error}") from None
            ours.pop_all()
        return cls(process, reaper, outputs, given if stdin else None)

    async def run(self, sink: Sink) -> int:
        """Pass its output on until it ends; return the exit code as a shell reports it."""
        try:
            async with asyncio.TaskGroup() as group:
                copies = [group.create_task(self._copy(name, sink)) for name in self._outputs]
                code = await self._process.wait()
                # What it left running ends with it, as everything in a container does.
                self.kill()
                _, late = await asyncio.wait(copies, timeout=_LAST_WORDS)
                for copy in late:
                    copy.cancel()
        finally:
            await self._clear()
        return code if code >= 0 else _SIGNALLED - code

    async def _clear(self) -> None:
        if self._process.returncode is None:
            self.kill()
            await self._process.wait()
        self.ended.set()
        self._reaper.remove_group(self._process.pid)
        for descriptor in {*self._outputs.values(), *([self._stdin] if self._stdin is not None else [])}:
            descriptor.close()

    async def _copy(self, stream: OutputStream, sink: Sink) -> None:
        while data := await self._outputs[stream].read():
            await sink(stream, data)
            # A process that prints without end always has more: yield to the others.
            await asyncio.sleep(0)

    def send(self, number: Signals) -> None:
        """Send a signal to the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """End the process and all that it started, at once; its number is another's when that has happened."""
        if self.ended.is_set():
            return
        if self._process.returncode is None:
            # With a terminal it has no group yet before it runs.
            self.send(SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, SIGKILL)

    async def terminate(self, number: Signals, grace: float) -> None:
        """Ask it to end, and make it end when the grace is over."""
        if grace > 0:
            self.send(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), grace)
                return
        self.kill()
        await self.ended.wait()

    async def write(self, data: bytes) -> None:
        """Write to its standard input; data after the reader has closed it is lost."""
        if self._stdin is not None:
            with contextlib.suppress(BrokenPipeError, OSError):
                await self._stdin.write(data)

    async def end_input(self) -> None:
        """End its standard input; in a terminal by the key for it."""
        if self._stdin is None:
            return
        if self._stdin in self._outputs.values():
            await self.write(b"\x04")
        else:
            self._stdin.close()

    def resize(self, size: Size) -> None:
        """Set the size of its terminal."""
        terminal = self._outputs.get("stdout")
        if terminal is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(
                    terminal.number, termios.TIOCSWINSZ, struct.pack("HHHH", size.height, size.width, 0, 0)
                )


_Streams = tuple[tuple[int, int, int], dict[OutputStream, Descriptor], Descriptor | None]


def _terminal(theirs: contextlib.ExitStack, ours: contextlib.ExitStack) -> _Streams:
    master, slave = pty.openpty()
    theirs.callback(os.close, slave)
    end = Descriptor(master)
    ours.callback(end.close)
    return (slave, slave, slave), {"stdout": end}, end


def _pipes(theirs: contextlib.ExitStack, ours: contextlib.ExitStack, *, stdin: bool) -> _Streams:
    outputs: dict[OutputStream, Descriptor] = {}
    numbers: list[int] = []
    for name in ("stdout", "stderr"):
        reading, writing = os.pipe()
        theirs.callback(os.close, writing)
        outputs[name] = Descriptor(reading)
        ours.callback(outputs[name].close)
        numbers.append(writing)
    if not stdin:
        return (asyncio.subprocess.DEVNULL, numbers[0], numbers[1]), outputs, None
    reading, writing = os.pipe()
    theirs.callback(os.close, reading)
    given = Descriptor(writing)
    ours.callback(given.close)
    return (reading, numbers[0], numbers[1]), outputs, given
