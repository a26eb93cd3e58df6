"""Ends orphaned processes: those that left their process group, and all of them when this program dies."""

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

MARK = "KUBEWRIGHT_CONTAINER"
"""Environment variable that marks the processes of a container: `CLUSTER/POD/CONTAINER`."""
_ROUNDS = 10
_END_SECONDS = 5.0
"""How long to wait for the end of a killed process: one that waits for a disk ends later."""
_EXEC_SECONDS = 0.01
"""Pause before a process without an environment is looked at again."""
_KERNEL_THREAD = 0x00200000
"""Flag of kernel threads in /proc/PID/stat."""
_PROCESSES = Path("/proc")
# The helper receives all live process groups on standard input, which closes when its owner dies. It finds processes
# that left their group by the mark in their environment, if /proc exists.
_PROGRAM = """
import os, signal, sys, time
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
# Several times: a process that executes another program has no environment meanwhile.
for _ in range(5) if os.path.isdir("/proc") else ():
    for number in os.listdir("/proc"):
        try:
            with open("/proc/" + number + "/environ", "rb") as file:
                if any(variable.startswith(sys.argv[1].encode()) for variable in file.read().split(b"\\0")):
                    os.kill(int(number), signal.SIGKILL)
        except OSError:
            pass
    time.sleep(0.01)
"""


def kill_orphans(mark: str) -> None:
    """Kill processes with the mark, and those that they start meanwhile, and wait until they have ended.

    Blocking. Does nothing without /proc.
    """
    if not _PROCESSES.is_dir():
        return
    variable = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        numbers = [int(entry.name) for entry in os.scandir(_PROCESSES) if entry.name.isdecimal()]
        # Read once: a second look could find that a process without an environment has one by now, and miss its mark.
        found = {number: _environment(number) for number in numbers}
        killed = [_kill(number, variable) for number, text in found.items() if _has(text, variable)]
        if any(killed):
            continue
        if not any(text == b"" and _runs_program(number) for number, text in found.items()):
            return
        time.sleep(_EXEC_SECONDS)


def _has(environment: bytes | None, variable: bytes) -> bool:
    return environment is not None and variable in environment.split(b"\0")


def _environment(number: int) -> bytes | None:
    """Return the environment of a process, empty while it is in an exec; None if it has ended or is another user's."""
    try:
        return Path(_PROCESSES, str(number), "environ").read_bytes()
    except OSError:
        return None


def _runs_program(number: int) -> bool:
    """Return True if a process runs a program: its environment is empty only while it executes another one."""
    try:
        fields = Path(_PROCESSES, str(number), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    state, flags = fields[0], int(fields[6])
    return state not in "ZX" and not flags & _KERNEL_THREAD


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
        if _has(_environment(number), variable):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            # A killed process ends when it runs next, which on a busy machine is later than its container.
            end = select.poll()
            end.register(handle, select.POLLIN)
            end.poll(_END_SECONDS * 1000)
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
