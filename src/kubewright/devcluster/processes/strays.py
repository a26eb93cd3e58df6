"""Processes that left their process group: known by a variable that everything in a container inherits."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

MARK = "KUBEWRIGHT_CONTAINER"
"""The variable; its value is the cluster's, the Pod's and the container's name."""
_ROUNDS = 10
_PROCESSES = Path("/proc")


def kill_strays(mark: str) -> None:
    """Kill what carries a mark, and what that starts meanwhile; blocks. Without /proc nothing is found."""
    for _ in range(_ROUNDS):
        found = list(_marked(f"{MARK}={mark}".encode()))
        for number in found:
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                continue
        if not found:
            return


def _marked(variable: bytes) -> Iterator[int]:
    if not _PROCESSES.is_dir():
        return
    for entry in os.scandir(_PROCESSES):
        if not entry.name.isdecimal():
            continue
        try:
            # Who has ended has no environment any more, and that of others is not ours to read.
            known = Path(entry.path, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable in known:
            yield int(entry.name)
