"""Ends orphaned processes: those that left their process group, and all of them when this program dies."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

MARK = "KUBEWRIGHT_CONTAINER"
"""Environment variable that marks the processes of a container: `CLUSTER/POD/CONTAINER`."""
_ROUNDS = 10
_PROCESSES = Path("/proc")
# The helper receives all live process groups on standard input, which closes when its owner dies. It finds processes
# that left their group by the mark in their environment, if /proc exists.
_PROGRAM = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
living = set()
for line in sys.stdin:
    (living.add if line[0] == "+" else living.discard)(int(line[1:]))
for group in living:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
for number in os.listdir("/proc") if os.path.isdir("/proc") else ():
    try:
        with open("/proc/" + number + "/environ", "rb") as file:
            if any(variable.startswith(sys.argv[1].encode()) for variable in file.read().split(b"\\0")):
                os.kill(int(number), signal.SIGKILL)
    except OSError:
        pass
"""


def kill_orphans(mark: str) -> None:
    """Kill processes with the mark, and those that they start meanwhile.

    Blocking. Does nothing without /proc.
    """
    if not _PROCESSES.is_dir():
        return
    variable = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        numbers = [int(entry.name) for entry in os.scandir(_PROCESSES) if entry.name.isdecimal()]
        killed = [_carries(number, variable) and _kill(number, variable) for number in numbers]
        if not any(killed):
            return


def _carries(number: int, variable: bytes) -> bool:
    try:
        # The process has ended, or belongs to another user.
        return variable in Path(_PROCESSES, str(number), "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(number: int, variable: bytes) -> bool:
    """Kill a process if it still has the mark: its PID may have been reused."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):
        # Without pidfd (old kernels), fall back to the PID.
        with contextlib.suppress(OSError):
            os.kill(number, signal.SIGKILL)
        return True
    try:
        if _carries(number, variable):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


class Reaper:
    """A helper process that kills process groups when this process dies.

    `start`, `restart_if_dead` and `stop` block.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", name: str) -> None:
        self._process = process
        self._running_update: set[int] = set()
        self._replacing = threading.Lock()
        self.name = name
        """Prefix of the marks of all processes."""

    @classmethod
    def start(cls) -> Self:
        """Start the helper process."""
        name = secrets.token_hex(8)
        return cls(_helper(name), name)

    def restart_if_dead(self) -> None:
        """Replace a helper that was killed, and send it all live process groups."""
        with self._replacing:
            if self._process.poll() is None:
                return
            self.stop()
            self._process = _helper(self.name)
            for group in list(self._running_update):
                self._send(f"+{group}\n")

    def stop(self) -> None:
        """End the helper, which kills what is left, and wait for it."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def add_group(self, group: int) -> None:
        """Register a process group."""
        self._running_update.add(group)
        self._send(f"+{group}\n")

    def remove_group(self, group: int) -> None:
        """Unregister a process group that has ended."""
        self._running_update.discard(group)
        self._send(f"-{group}\n")

    def _send(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # A killed helper is replaced before the next start, and a stopped one has killed everything.
        if not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(line.encode())


def _helper(name: str) -> "subprocess.Popen[bytes]":
    """Start the helper in its own session, so that Ctrl-C does not reach it."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, f"{MARK}={name}/"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
