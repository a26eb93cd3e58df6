"""Rendered files in a folder: written whole, compared for CI, never in place of what somebody wrote by hand."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kubewright.api import ConfigError
from kubewright.cli.project.trees import write_tree
from kubewright.generate import HEADER


def write_rendered(folder: Path, tree: Mapping[str, str], *, among: Sequence[str] = ("",)) -> None:
    """Write a rendered tree; what was rendered before and is no longer part of it goes.

    `among` names the folders inside that hold nothing else that is rendered.
    """
    for name in tree:
        path = folder / name
        if path.exists() and not _rendered(path):
            raise ConfigError(
                f"{path} has not the first line of a rendered file, so it stays: move it away, "
                "or choose another directory"
            )
    write_tree(folder, tree, remove=_surplus(folder, tree, among))


def differences(folder: Path, tree: Mapping[str, str], *, among: Sequence[str] = ("",)) -> list[str]:
    """Say of each file that is not what it should be what is wrong with it."""
    found: list[str] = []
    for name, text in sorted(tree.items()):
        path = folder / name
        if not path.exists():
            found.append(f"missing: {path}")
        elif _read(path) != text:
            found.append(f"stale: {path}")
    return found + [f"no longer rendered: {folder / name}" for name in _surplus(folder, tree, among)]


def _surplus(folder: Path, tree: Mapping[str, str], among: Sequence[str]) -> list[str]:
    found = [name for part in among for name in _files(folder, part)]
    return [name for name in found if name not in tree and _rendered(folder / name)]


def _files(folder: Path, part: str) -> Iterator[str]:
    if not (folder / part).is_dir():
        return
    for path in sorted((folder / part).rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix()


def _rendered(path: Path) -> bool:
    """A rendered file says so itself; its first line is the leave to replace it."""
    return _read(path).startswith(HEADER)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
