"""Write several files atomically: all of them or none."""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from kubewright.api import ConfigError


def write_tree(root: Path, files: Mapping[str, str], *, remove: Iterable[str] = ()) -> None:
    """Write files by their path under root, and remove others; on failure, nothing is changed.

    Existing files are replaced: the caller checks whether that is allowed.
    """
    try:
        if root.exists():
            _Change(root).make(files, remove)
        else:
            _bring(root, files)
    except OSError as error:
        # Do not report the name of a temporary file.
        place = error.filename if root.exists() and error.filename else root
        raise ConfigError(f"cannot write {place}: {error.strerror}; nothing was changed") from None


def _bring(root: Path, files: Mapping[str, str]) -> None:
    """Create a new directory with all its files by renaming a draft."""
    root.parent.mkdir(parents=True, exist_ok=True)
    draft = root.with_name(f".{root.name}.{os.getpid()}.new")
    try:
        for name, text in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        draft.rename(root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


class _Change:
    """Files to add to an existing folder: drafts first, then one rename each, all undone if one fails."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: list[Path] = []
        self._drafts: dict[Path, Path] = {}
        self._before: dict[Path, bytes | None] = {}

    def make(self, files: Mapping[str, str], remove: Iterable[str]) -> None:
        """Make the change."""
        try:
            for name, text in files.items():
                self._draft(self._root / name, text)
            for path, draft in self._drafts.items():
                self._remember(path)
                draft.replace(path)
            for name in remove:
                self._remember(self._root / name)
                (self._root / name).unlink()
        except BaseException:
            self._undo()
            raise

    def _draft(self, path: Path, text: str) -> None:
        missing = [folder for folder in path.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            self._folders.append(folder)
        draft = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._drafts[path] = draft
        draft.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, draft)

    def _remember(self, path: Path) -> None:
        self._before[path] = path.read_bytes() if path.exists() else None

    def _undo(self) -> None:
        for path, content in self._before.items():
            with contextlib.suppress(OSError):
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(content)
        for draft in self._drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
