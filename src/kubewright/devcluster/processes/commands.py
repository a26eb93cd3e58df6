"""Which command stands for a container on this machine."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubewright.api.builtin import core_v1
from kubewright.devcluster.processes.environment import expanded

Images = Mapping[str, Sequence[str]]


def command_of(container: core_v1.Container, images: Images, known: dict[str, str]) -> list[str]:
    """Give a container's command: that of its image if one is given, else its own; the arguments follow."""
    stand_in = images.get(container.image) or images.get(_untagged(container.image))
    words = list(stand_in) if stand_in else [expanded(word, known) for word in container.command]
    return [*words, *(expanded(word, known) for word in container.args)] if words else []


def runs_here(container: core_v1.Container, images: Images) -> bool:
    """Tell whether a container's command exists on this machine; looks at files."""
    words = command_of(container, images, dict(os.environ))
    return bool(words) and shutil.which(words[0]) is not None


def folder_of(container: core_v1.Container, mounts: Path) -> Path:
    """Find where a container's process works: its own folder here or under its mounts, else where the cluster is."""
    if not container.working_dir:
        return Path.cwd()
    named = Path(container.working_dir)
    if named.is_dir():
        return named
    inside = mounts / container.working_dir.lstrip("/")
    inside.mkdir(parents=True, exist_ok=True)
    return inside


def _untagged(image: str) -> str:
    path, slash, name = image.partition("@")[0].rpartition("/")
    return f"{path}{slash}{name.partition(':')[0]}"
