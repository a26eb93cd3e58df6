"""Processes that left their process group: known by a variable that everything in a container inherits."""

import contextlib
import os
import signal
from pathlib import Path

MARK = "KUBEWRIGHT_CONTAINER"
"""The variable; its value is the cluster's, the Pod's and the container's name."""
_ROUNDS = 10
_PROCESSES = Path("/proc")


def kill_orphans(mark: str) -> None:
    """Kill what carries a mark, and what that starts meanwhile; blocks. Without /proc nothing is found."""
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
        # A process that ended has no environment, and that of other users cannot be read.
        return variable in Path(_PROCESSES, str(number), "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(number: int, variable: bytes) -> bool:
    """Kill a process that is still the one that carried the mark: its number may be given to another at any time."""
    try:
        handle = os.pidfd_open(number)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):
        # Old kernels, and Pythons that were built for them, know processes by their numbers only.
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
