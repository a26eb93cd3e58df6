"""Which command runs a container on this machine."""

import os
import re
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubewright.api.builtin import core_v1
from kubewright.processpods.environment import expanded

Images = Mapping[str, Sequence[str]]

# A number below 80 alone is no port that a Pod listens on but, as in `:0`, a display, or any port at all.
_EVERYWHERE = re.compile(
    r"((?:.*=)?(?:[a-z][a-z0-9+.-]*://)?)(?:(?:0\.0\.0\.0|\[::\])(:\d{1,5})|(:(?:[89]\d|[1-9]\d{2,4})))"
)


def command_of(container: core_v1.Container, images: Images, known: dict[str, str]) -> list[str]:
    """Return a container's command: that of its image if one is given, else its own; the arguments follow."""
    stand_in = images.get(container.image) or images.get(_untagged(container.image))
    words = list(stand_in) if stand_in else [expanded(word, known) for word in container.command]
    return [*words, *(expanded(word, known) for word in container.args)] if words else []


def at_own_address(text: str, address: str) -> str:
    """Put the Pod's address where a text names all addresses and a port: `:8081` means the Pod's own in a Pod."""
    found = _EVERYWHERE.fullmatch(text)
    return f"{found[1]}{address}{found[2] or found[3]}" if found is not None else text


def can_bind(address: str) -> bool:
    """Return True if this machine lets processes listen on an address; macOS knows only one of its loopback network."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def runs_here(container: core_v1.Container, images: Images) -> bool:
    """Return True if a container's command exists on this machine; looks at files."""
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
