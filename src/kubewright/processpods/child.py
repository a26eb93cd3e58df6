"""A child process in its own process group, with its pipes or its terminal."""

import asyncio
import contextlib
import errno
import os
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Self

from kubewright.processpods.reaper import Reaper
from kubewright.processpods.streaming.requests import OutputStream, Size

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

_PIECE = 64 * 1024
# The process must open its controlling terminal itself, in its own session.
_WITH_TERMINAL = "import os, sys; os.login_tty(0); os.execvp(sys.argv[1], sys.argv[1:])"
_SIGNALLED = 128
_DRAIN_SECONDS = 1.0
"""Seconds to read remaining output: a process that left the process group may keep the pipes open."""
Sink = Callable[[OutputStream, bytes], Awaitable[None]]


class Descriptor:
    """A non-blocking pipe or terminal file descriptor."""

    def __init__(self, number: int) -> None:
        os.set_blocking(number, False)
        self.number = number
        self._closed = False

    def close(self) -> None:
        """Close the file descriptor."""
        if not self._closed:
            self._closed = True
            os.close(self.number)

    async def read(self) -> bytes:
        """Return the next data, waiting for it; empty at the end."""
        while not self._closed:
            try:
                return os.read(self.number, _PIECE)
            except BlockingIOError:
                await self._wait(reading=True)
            except OSError as error:
                # On Linux, reading from a terminal without users fails with EIO.
                if error.errno == errno.EIO:
                    return b""
                raise
        return b""

    async def write(self, data: bytes) -> None:
        """Write all data; raise BrokenPipeError if there is no reader."""
        rest = memoryview(data)
        while rest and not self._closed:
            try:
                rest = rest[os.write(self.number, rest) :]
            except BlockingIOError:
                await self._wait(reading=False)

    async def _wait(self, *, reading: bool) -> None:
        loop = asyncio.get_running_loop()
        due: asyncio.Future[None] = loop.create_future()
        add, remove = (
            (loop.add_reader, loop.remove_reader) if reading else (loop.add_writer, loop.remove_writer)
        )
        add(self.number, lambda: due.done() or due.set_result(None))
        try:
            await due
        finally:
            if not self._closed:
                remove(self.number)


class StartError(RuntimeError):
    """A command cannot be started; the message has the reason."""


class Child:
    """A running process in its own process group."""

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
        """Start a command with a terminal or with pipes."""
        await asyncio.to_thread(reaper.restart_if_dead)
        with contextlib.ExitStack() as child_side, contextlib.ExitStack() as parent_side:
            streams = (
                _terminal(child_side, parent_side) if tty else _pipes(child_side, parent_side, stdin=stdin)
            )
            numbers, outputs, input_pipe = streams
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
                # Arguments and variables cannot contain a zero byte.
                raise StartError(f"{command[0]}: {error}") from None
            parent_side.pop_all()
        return cls(process, reaper, outputs, input_pipe if stdin else None)

    async def run(self, sink: Sink) -> int:
        """Copy the output to the sink until the process exits; return the exit code as a shell reports it."""
        try:
            async with asyncio.TaskGroup() as group:
                copies = [group.create_task(self._copy(name, sink)) for name in self._outputs]
                code = await self._process.wait()
                # Kill its remaining child processes, as happens when a container exits.
                self.kill()
                _, late = await asyncio.wait(copies, timeout=_DRAIN_SECONDS)
                for copy in late:
                    copy.cancel()
        finally:
            await self._close()
        return code if code >= 0 else _SIGNALLED - code

    async def _close(self) -> None:
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
            # Yield to other tasks: a process that prints endlessly always has data to read.
            await asyncio.sleep(0)

    def send(self, number: Signals) -> None:
        """Send a signal to the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process and its process group; do nothing once it has exited, because its PID may be reused."""
        if self.ended.is_set():
            return
        if self._process.returncode is None:
            # A process with a terminal has no process group until it runs.
            self.send(SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, SIGKILL)

    async def terminate(self, number: Signals, grace: float) -> None:
        """Send a signal, and kill the process after the grace period."""
        if grace > 0:
            self.send(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), grace)
                return
        self.kill()
        await self.ended.wait()

    async def write(self, data: bytes) -> None:
        """Write to standard input; data for a closed input is discarded."""
        if self._stdin is not None:
            with contextlib.suppress(BrokenPipeError, OSError):
                await self._stdin.write(data)

    async def end_input(self) -> None:
        """Close standard input; on a terminal, send the end-of-file character."""
        if self._stdin is None:
            return
        if self._stdin in self._outputs.values():
            await self.write(b"\x04")
        else:
            self._stdin.close()

    def resize(self, size: Size) -> None:
        """Set the size of the terminal."""
        terminal = self._outputs.get("stdout")
        if terminal is not None:
            with contextlib.suppress(OSError):
                fcntl.ioctl(
                    terminal.number, termios.TIOCSWINSZ, struct.pack("HHHH", size.height, size.width, 0, 0)
                )


_Streams = tuple[tuple[int, int, int], dict[OutputStream, Descriptor], Descriptor | None]


def _terminal(child_side: contextlib.ExitStack, parent_side: contextlib.ExitStack) -> _Streams:
    master, slave = pty.openpty()
    child_side.callback(os.close, slave)
    end = Descriptor(master)
    parent_side.callback(end.close)
    return (slave, slave, slave), {"stdout": end}, end


def _pipes(child_side: contextlib.ExitStack, parent_side: contextlib.ExitStack, *, stdin: bool) -> _Streams:
    outputs: dict[OutputStream, Descriptor] = {}
    numbers: list[int] = []
    for name in ("stdout", "stderr"):
        reading, writing = os.pipe()
        child_side.callback(os.close, writing)
        outputs[name] = Descriptor(reading)
        parent_side.callback(outputs[name].close)
        numbers.append(writing)
    if not stdin:
        return (asyncio.subprocess.DEVNULL, numbers[0], numbers[1]), outputs, None
    reading, writing = os.pipe()
    child_side.callback(os.close, reading)
    input_pipe = Descriptor(writing)
    parent_side.callback(input_pipe.close)
    return (reading, numbers[0], numbers[1]), outputs, input_pipe
