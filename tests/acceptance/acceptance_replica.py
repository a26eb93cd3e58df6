"""`kubewright run` as a process of its own."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from kubewright.testing import Cluster, eventually

_COUNT = iter(range(1_000_000))


class Replica:
    """One process that runs an operator; what it says lies in a file of JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    @classmethod
    async def start(cls, target: Path, cluster: Cluster, folder: Path, flags: Sequence[str]) -> Self:
        """Start it in the test's namespace, with probes and metrics off unless the flags say otherwise."""
        log = folder / f"{target.name}-{next(_COUNT)}.log"
        with await asyncio.to_thread(log.open, "wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                "from kubewright.cli import main; main()",
                "run",
                str(target),
                f"--kubeconfig={cluster.kubeconfig}",
                f"--namespace={cluster.namespace}",
                f"--leader-election-namespace={cluster.namespace}",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
                "--webhook-bind-address=127.0.0.1:0",
                "--log-format=json",
                *flags,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(os.environ),
            )
        return cls(process, log)

    def lines(self) -> list[dict[str, Any]]:
        """Return what it has logged so far."""
        found: list[dict[str, Any]] = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found

    async def wait_says(self, message: str, *, timeout: float = 60.0) -> None:
        """Wait until a message was logged."""

        def said() -> bool:
            return any(message in line.get("msg", "") for line in self.lines())

        try:
            await eventually(lambda: said() or self.process.returncode is not None, timeout=timeout)
            assert said(), f"exited with {self.process.returncode}"
        except AssertionError as error:
            raise AssertionError(f"did not log {message!r}:\n{self.log.read_text()}") from error

    async def ended(self, number: signal.Signals, *, timeout: float) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), timeout)

    async def stop(self) -> None:
        """End the process if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
