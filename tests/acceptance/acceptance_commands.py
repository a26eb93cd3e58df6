"""The kubewright command, as a person would use it."""

import asyncio
import sys


class CommandFailed(AssertionError):
    """The command ended with another exit status than 0."""


async def kubewright(*arguments: str) -> str:
    """Run a command to its end; gives what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from kubewright.cli import main; main()",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise CommandFailed(f"kubewright {' '.join(arguments)}: {err.decode().strip()}")
    return out.decode()
