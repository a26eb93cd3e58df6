"""Child processes that do not outlive their owner."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# The kernel kills the child when its parent ends for any reason. This is set in a separate process and not in
# `preexec_fn`, which is unsafe with threads. The parent may die before the call, hence the check of getppid.
_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


# Below the ephemeral ports, so that no outgoing connection takes the port before the program does, or while it restarts.
_PORTS = range(20000, 30000)


def free_port() -> int:
    """Return a loopback port for a program that is started next: nothing listens on it.

    The choice is the system's own: pytest-randomly seeds `random` alike in all test processes, which would then choose
    the same ports at the same time.
    """
    for port in random.SystemRandom().sample(_PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise ProcessError(f"no free loopback port between {_PORTS.start} and {_PORTS.stop}")


class ProcessError(RuntimeError):
    """A child process ended unexpectedly; the message has the end of its log."""


class Process:
    """One child process with its output in a log file."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name: str = Path(command[0]).name
        self.log = log
        self._command = [str(part) for part in command]
        self._directory = directory
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    def set_command(self, command: Sequence[str | Path]) -> None:
        """Use another command line from the next start on."""
        self._command = [str(part) for part in command]

    @property
    def running(self) -> bool:
        """Return True if the process was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Return the process id, None while the process does not run."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def ended(self) -> bool:
        """Return True if the process was started and has ended."""
        return self._process is not None and self._process.returncode is not None

    async def start(self) -> None:
        """Start the process in its own session, so that Ctrl-C in the terminal reaches only this process."""
        command = self._command
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
        output = await asyncio.to_thread(self.log.open, "ab")
        with output:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._directory,
                env=self._environment,
                start_new_session=True,
            )

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process runs."""
        if self._process is not None and self.running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait until the process ends, and return its exit status; that of a signal is negative."""
        assert self._process is not None, "the process was not started"
        return await self._process.wait()

    async def stop(self, *, grace: float = 10.0) -> None:
        """Terminate the process and wait; kill it when the grace period is over or the wait is cancelled."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        try:
            if grace > 0:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), grace)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        await process.wait()

    async def keep_running(self, restarts: int, delay: float) -> None:
        """Start the process again when it ends; return when it ended once more than `restarts` times.

        The delay before a restart is doubled each time. Cancel this before `stop`.
        """
        for attempt in range(restarts):
            if self._process is not None:
                await self._process.wait()
            await asyncio.sleep(delay * 2**attempt)
            await self.start()
        if self._process is not None:
            await self._process.wait()

    async def wait_ended(self) -> None:
        """Wait until the process ends by itself, and raise with the end of its log."""
        if self._process is not None:
            await self._process.wait()
        raise await self.failure()

    async def failure(self, why: str = "ended unexpectedly") -> ProcessError:
        """Describe what went wrong, with the last lines of the log."""
        lines = await asyncio.to_thread(self._last_lines)
        code = None if self._process is None else self._process.returncode
        status = "" if code is None else f" (exit status {code})"
        return ProcessError(f"{self.name} {why}{status}; the end of its log:\n{lines}")

    def _last_lines(self, count: int = 15) -> str:
        try:
            text = self.log.read_text(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-count:])
