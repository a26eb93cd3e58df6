"""Where the outside systems are kept between runs, and how they get there: whole, and one at a time."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Generator
from pathlib import Path


class Unavailable(Exception):
    """A system is not there; the text says why and what to do."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache_folder(name: str) -> Path:
    """Name the folder of one system."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubewright" / name


@contextlib.contextmanager
def alone(folder: Path) -> Generator[None]:
    """Be the only one who fills a folder; others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
