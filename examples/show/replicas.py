"""Two replicas of one operator, as `kubewright run --leader-elect` starts them."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Self

# On Linux the kernel kills the replicas when the demo ends, even by SIGKILL.
_REPLICA = """
import os, signal, sys
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
from kubewright.cli import main
sys.argv[:2] = ["kubewright"]
main()
"""


RESTART_SECONDS = 1.0


class Replica:
    """One process that runs an operator while it holds the lease.

    An operator that lost its lease exits, for example after the machine slept. A kubelet would restart it, so this does.
    """

    def __init__(self, command: list[str], process: asyncio.subprocess.Process) -> None:
        self._command = command
        self._process = process
        self._restarting = asyncio.create_task(self._restart())

    @classmethod
    async def start(cls, target: Path, kubeconfig: Path, namespace: str) -> Self:
        """Start a replica."""
        command = ["run", str(target), "--leader-elect"]
        flags = {
            "kubeconfig": str(kubeconfig),
            "namespace": namespace,
            "leader-election-namespace": namespace,
            "metrics-bind-address": "0",
            "health-probe-bind-address": "0",
        }
        command += [f"--{name}={value}" for name, value in flags.items()]
        return cls(command, await _started(command))

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    async def kill(self) -> None:
        """Send SIGKILL and wait for the process; it is not restarted."""
        self._restarting.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Send SIGTERM; kill the process if it does not exit within 5 s."""
        self._restarting.cancel()
        if self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            await self.kill()

    async def _restart(self) -> None:
        while True:
            await self._process.wait()
            await asyncio.sleep(RESTART_SECONDS)
            self._process = await _started(self._command)


async def _started(command: list[str]) -> asyncio.subprocess.Process:
    """Start the command in its own session, so that Ctrl-C in the terminal reaches only the demo."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _REPLICA,
        str(os.getpid()),
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
