"""A helper process that kills all process groups of its owner when the owner ends, even by SIGKILL."""

import contextlib
import secrets
import subprocess
import sys
import threading
from typing import Self

from kubewright.processpods.orphans import MARK

# It knows all living process groups, and its standard input ends with its owner. Processes that left their group have
# inherited the owner's mark (where there is a /proc to see that).
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


class Reaper:
    """Watch over process groups; all that blocks is start, `restart_if_dead` and stop."""

    def __init__(self, process: "subprocess.Popen[bytes]", name: str) -> None:
        self._process = process
        self._living: set[int] = set()
        self._replacing = threading.Lock()
        self.name = name
        """What the marks of all its processes begin with."""

    @classmethod
    def start(cls) -> Self:
        """Start the helper."""
        name = secrets.token_hex(8)
        return cls(_helper(name), name)

    def restart_if_dead(self) -> None:
        """Start another helper if it was killed, and send it all living process groups."""
        with self._replacing:
            if self._process.poll() is None:
                return
            self.stop()
            self._process = _helper(self.name)
            for group in list(self._living):
                self._send(f"+{group}\n")

    def stop(self) -> None:
        """Let it kill the remaining groups, and wait for it."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def add_group(self, group: int) -> None:
        """Register a process group."""
        self._living.add(group)
        self._send(f"+{group}\n")

    def remove_group(self, group: int) -> None:
        """Unregister a process group that has ended."""
        self._living.discard(group)
        self._send(f"-{group}\n")

    def _send(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # A helper that was killed is replaced before the next start; one that was stopped has killed all groups.
        if not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(line.encode())


def _helper(name: str) -> "subprocess.Popen[bytes]":
    """Start a helper in a session of its own: a Ctrl-C is for its owner."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, f"{MARK}={name}/"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
