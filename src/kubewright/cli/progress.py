"""Output for people: a line for each completed step of a command, and what it waits for."""

import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import click

QUIET_SECONDS = 1.0
"""Waits shorter than this are not worth a line in a log."""
LARGE_FILE = 64 * 1024 * 1024
"""Bytes of a file from which on the progress of reading it is shown."""
_CLEAR = "\r\x1b[2K"
Update = Callable[[str], None]


class Progress:
    """Print completed steps to standard output and waits to standard error.

    A terminal shows a wait only while it lasts; a log gets a line when a wait has gone on for a second and
    whenever its reason changes.
    """

    def done(self, text: str) -> None:
        """Print a completed step."""
        click.echo(text)

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        click.echo(text, err=True)

    @contextmanager
    def waiting(self, text: str) -> Generator[Update, None, None]:
        """Show a wait while the context is open; the function given changes its text."""
        wait = _Terminal() if sys.stderr.isatty() else _Log()
        wait.update(text)
        try:
            yield wait.update
        finally:
            wait.end()


@contextmanager
def reading_progress(path: Path, *, passes: int = 1) -> Generator[Callable[[int], None] | None, None, None]:
    """Show how much of a large file was read; the function given takes the number of bytes since its last call.

    None is given for a file that is read in a moment, and for one that does not exist.
    """
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if size < LARGE_FILE:
        yield None
        return
    title = f"reading {path}, {size // 2**20} MiB"
    done = shown = 0
    with Progress().waiting(f"{title}: 0 %") as update:

        def advance(count: int) -> None:
            nonlocal done, shown
            done += count
            percent = done * 10 // (size * passes) * 10
            if percent != shown:
                shown = percent
                update(f"{title}: {percent} %")

        yield advance


class _Terminal:
    def __init__(self) -> None:
        self._since = time.monotonic()

    def update(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 8
        passed = f"{time.monotonic() - self._since:4.0f} s"
        click.echo(f"{_CLEAR}{passed} {text[:width]}", err=True, nl=False)

    def end(self) -> None:
        click.echo(_CLEAR, err=True, nl=False)


class _Log:
    def __init__(self) -> None:
        self._since = time.monotonic()
        self._printed = ""

    def update(self, text: str) -> None:
        if text != self._printed and time.monotonic() - self._since >= QUIET_SECONDS:
            self._printed = text
            click.echo(text, err=True)

    def end(self) -> None:
        """Leave the printed lines as they are."""
