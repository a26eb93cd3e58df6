"""Restart a command when the user's files change."""

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click
from click.core import ParameterSource

from kubewright.api.sharding import Shards

POLL = 0.25
STOP_TIMEOUT = 45.0
"""Seconds for a child process to stop: longer than an operator's graceful shutdown."""
Stamps = Mapping[Path, tuple[int, int]]


def folder_of(target: str) -> Path:
    """Return the directory with the Python files of TARGET."""
    place = target if Path(target).exists() else target.partition(":")[0]
    path = Path(place)
    if path.exists():
        return path if path.is_dir() else path.parent
    with suppress(ImportError, ValueError):
        spec = find_spec(place.partition(".")[0])
        if spec is not None and spec.origin:
            return Path(spec.origin).parent
    return Path.cwd()


def stamps(folder: Path) -> Stamps:
    """Return the state of all Python files in a folder."""
    return dict(_stamps(folder))


def _stamps(folder: Path) -> Iterator[tuple[Path, tuple[int, int]]]:
    for path in folder.rglob("*.py"):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        with suppress(OSError):  # gone since it was listed
            state = path.stat()
            yield path, (state.st_mtime_ns, state.st_size)


def arguments_of(ctx: click.Context, without: Sequence[str]) -> list[str]:
    """Return command line arguments for the options of a context, without the options in `without`."""
    given: list[str] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in without or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        if value is None:
            continue  # it was given as an empty text
        if isinstance(parameter, click.Option):
            for item in value if parameter.multiple else [value]:
                given += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], _option_text(item)]
        else:
            given.append(str(value))
    return given


def _option_text(value: object) -> str:
    """Return the text that an option is parsed from."""
    return f"{value.count},{value.by}" if isinstance(value, Shards) else str(value)


async def run_reloading(arguments: Sequence[str], folder: Path) -> None:
    """Run `kubewright ARGUMENTS` in a child process, restarted after each change, until cancelled."""
    while True:
        before = await asyncio.to_thread(stamps, folder)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "from kubewright.cli import main; main()", *arguments
        )
        try:
            changed = await _changed(child, folder, before)
        finally:
            await _end(child)
        click.echo(f"{changed} changed: restarting", err=True)


async def _changed(child: asyncio.subprocess.Process, folder: Path, before: Stamps) -> str:
    reported = False
    while True:
        now = await asyncio.to_thread(stamps, folder)
        if now != before:
            names = {path for path in {*now, *before} if now.get(path) != before.get(path)}
            return ", ".join(sorted(path.name for path in names))
        if child.returncode is not None and not reported:
            reported = True
            click.echo(f"operator exited with {child.returncode}: waiting for a change in {folder}", err=True)
        await asyncio.sleep(POLL)


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    child.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_TIMEOUT):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()
