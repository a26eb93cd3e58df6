"""kubectl, as a person would use it."""

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kubewright.testing import eventually, find_binaries


def find_kubectl() -> Path | None:
    """Find kubectl on the PATH, else beside the control plane's programs."""
    if found := shutil.which("kubectl"):
        return Path(found)
    folder = find_binaries()
    program = folder / "kubectl" if folder else None
    return program if program and os.access(program, os.X_OK) else None


class KubectlFailed(AssertionError):
    """kubectl ended with another exit status than 0."""


@dataclass(frozen=True)
class Kubectl:
    """Run kubectl in one namespace; gives what it printed."""

    program: Path
    kubeconfig: Path
    namespace: str

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.kubeconfig}",
            f"--namespace={self.namespace}",
            f"--cache-dir={self.kubeconfig.parent / 'kubectl'}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(stdin.encode())
        if process.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {err.decode().strip()}")
        return out.decode() + err.decode()

    async def in_time(self, *arguments: str) -> str:
        """Retry until it succeeds: a server needs a moment to serve a new kind and to call its webhooks."""

        async def run() -> tuple[str]:
            return (await self(*arguments),)

        (printed,) = await eventually(run, ignore=KubectlFailed)
        return printed

    async def rows(self, *arguments: str) -> list[list[str]]:
        """Return what `kubectl get --no-headers` prints, split at the gaps between columns."""
        text = await self("get", *arguments, "--no-headers")
        return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in text.splitlines()]
