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


class Replica:
    """One process that runs an operator while it holds the lease."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, target: Path, kubeconfig: Path, namespace: str) -> Self:
        """Start a replica in its own session, so that Ctrl-C in the terminal reaches only the demo."""
        command = ["run", str(target), "--leader-elect"]
        flags = {
            "kubeconfig": str(kubeconfig),
            "namespace": namespace,
            "leader-election-namespace": namespace,
            "metrics-bind-address": "0",
            "health-probe-bind-address": "0",
        }
        command += [f"--{name}={value}" for name, value in flags.items()]
        process = await asyncio.create_subprocess_exec(
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
        return cls(process)

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    async def kill(self) -> None:
        """Send SIGKILL and wait for the process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Send SIGTERM; kill the process if it does not exit within 5 s."""
        if self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            await self.kill()
