"""The cache directory of the external systems, filled by one process at a time."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Generator
from pathlib import Path


class Unavailable(Exception):
    """A system cannot be installed; the message says why and what to do."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache_folder(name: str) -> Path:
    """Return the cache directory of one system."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubewright" / name


@contextlib.contextmanager
def locked(folder: Path) -> Generator[None]:
    """Hold a lock on a directory; other processes wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
