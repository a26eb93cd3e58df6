"""A private temporary directory, removed by its owner or, after a crash, by the next one."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Self

if sys.platform != "win32":
    import fcntl


class Scratch:
    """A temporary directory made by `create`."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, prefix: str) -> Self:
        """Create a directory, after removing those with the same prefix whose owners are gone."""
        _sweep(prefix)
        path = Path(tempfile.mkdtemp(prefix=prefix))
        # Locked before it is renamed to `lock`: another process never sees a live directory unlocked.
        unnamed = path / "lock.new"
        lock = unnamed.open("wb")
        _try_lock(lock)
        unnamed.rename(path / "lock")
        return cls(path, lock)

    def close(self) -> None:
        """Remove the directory and its content."""
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
    # Safety check: remove only directories directly in the temporary directory that contain our lock.
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
