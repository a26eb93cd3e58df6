"""A private temporary folder, removed by its owner or, if that was killed, by the next one."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Self

if sys.platform != "win32":
    import fcntl


class Scratch:
    """A folder that `create` has made: there is no instance, and so nothing to remove, without one."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, prefix: str) -> Self:
        """Make a folder, after removing those of the same prefix whose owners are gone."""
        _sweep(prefix)
        path = Path(tempfile.mkdtemp(prefix=prefix))
        # Locked before it has its name: a sweeper never sees an unlocked folder of a living owner.
        unnamed = path / "lock.new"
        lock = unnamed.open("wb")
        _try_lock(lock)
        unnamed.rename(path / "lock")
        return cls(path, lock)

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        _remove(self.path)
        self._lock.close()


def _sweep(prefix: str) -> None:
    for lock in Path(tempfile.gettempdir()).glob(f"{prefix}*/lock"):
        try:
            with lock.open("r+b") as file:
                abandoned = _try_lock(file)
        except OSError:
            continue
        if abandoned:
            _remove(lock.parent)


def _remove(folder: Path) -> None:
    # Whatever goes wrong above, only what lies directly in the temporary folder and bears our mark is removed.
    lock = folder / "lock"
    if folder.is_absolute() and folder.parent == Path(tempfile.gettempdir()) and lock.is_file():
        shutil.rmtree(folder, ignore_errors=True)


def _try_lock(file: IO[bytes]) -> bool:
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
