"""A Pod's volumes as folders: what a container mounts lies under one folder of its own, at the same path."""

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from kubewright.api.builtin import core_v1
from kubewright.processpods.values import Unprepared, Values

MOUNTS = "CONTAINER_SANDBOX_MOUNT_POINT"
"""The variable that names the folder under which a container's mounts lie, as Kubernetes calls it for containers
that are processes of the host."""
_TOKEN_LIFE = timedelta(hours=1)
_LAST_WORDS = "dev/termination-log"
_LAST_WORDS_BYTES = 4096


class File(NamedTuple):
    """A file of a volume."""

    data: bytes
    mode: int


Files = dict[str, File]


@dataclass(slots=True)
class Content:
    """What a volume holds: files that the cluster keeps up to date, a folder of this machine, or an empty one."""

    files: Files | None = None
    link: Path | None = None
    lasting: bool = False
    """The folder is ours, and outlives the Pod."""


async def content(values: Values, volume: core_v1.Volume, claims: Path, *, tokens: bool = True) -> Content:
    """Look up what a volume holds; a claim's lies in a folder of its own among `claims`.

    Without `tokens` those of the ServiceAccount are left as they are.
    """
    if volume.host_path is not None:
        return Content(link=Path(volume.host_path.path))
    if (claim := volume.persistent_volume_claim) is not None:
        return Content(link=claims / f"{values.pod.metadata.namespace}_{claim.claim_name}", lasting=True)
    return Content(await _files(values, volume, tokens=tokens))


async def _files(values: Values, volume: core_v1.Volume, *, tokens: bool) -> Files | None:
    if (source := volume.config_map) is not None:
        found = await values.config_map(source.name, optional=source.optional)
        return _chosen(values, "ConfigMap", source.name, found, source.items, source.default_mode)
    if (secret := volume.secret) is not None:
        found = await values.secret(secret.secret_name, optional=secret.optional)
        return _chosen(values, "Secret", secret.secret_name, found, secret.items, secret.default_mode)
    if volume.downward_api is not None:
        return _told(values, volume.downward_api.items, volume.downward_api.default_mode)
    if volume.projected is not None:
        made: Files = {}
        for part in volume.projected.sources:
            if part.service_account_token is not None and not tokens:
                continue
            made.update(await _projected(values, part, volume.projected.default_mode))
        return made
    return None


async def _projected(values: Values, part: core_v1.VolumeProjection, mode: int | None) -> Files:
    if (source := part.config_map) is not None:
        found = await values.config_map(source.name, optional=source.optional)
        return _chosen(values, "ConfigMap", source.name, found, source.items, mode)
    if (secret := part.secret) is not None:
        found = await values.secret(secret.name, optional=secret.optional)
        return _chosen(values, "Secret", secret.name, found, secret.items, mode)
    if part.downward_api is not None:
        return _told(values, part.downward_api.items, mode)
    if (token := part.service_account_token) is not None:
        made = await values.client.token_request(
            values.pod.spec.service_account_name,
            values.pod.metadata.namespace,
            audiences=(token.audience,) if token.audience else (),
            lifetime=timedelta(seconds=token.expiration_seconds) if token.expiration_seconds else _TOKEN_LIFE,
            bound_to=values.pod,
        )
        return {token.path: File(made.token.encode(), 0o600)}
    return {}


def _chosen(
    values: Values,
    kind: str,
    name: str,
    found: dict[str, bytes],
    items: Sequence[core_v1.KeyToPath],
    mode: int | None,
) -> Files:
    usual = 0o644 if mode is None else mode
    if not items:
        return {key: File(data, usual) for key, data in found.items()}
    made: Files = {}
    for item in items:
        data = values.key(kind, name, found, item.key, optional=not found)
        if data is not None:
            made[item.path] = File(data, usual if item.mode is None else item.mode)
    return made


def _told(values: Values, items: Sequence[core_v1.DownwardAPIVolumeFile], mode: int | None) -> Files:
    usual, first = 0o644 if mode is None else mode, values.pod.spec.containers[0]
    made: Files = {}
    for item in items:
        text = ""
        if item.field_ref is not None:
            text = values.field(item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = values.resource(item.resource_field_ref, first)
        made[item.path] = File(text.encode(), usual if item.mode is None else item.mode)
    return made


class _Link(NamedTuple):
    """A link that was put into a folder of this machine, perhaps in place of an empty folder."""

    place: Path
    target: Path
    stood: bool

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            if self.place.readlink() == self.target:
                self.place.unlink()
                if self.stood:
                    self.place.mkdir()


class Sandbox:
    """The folder of one Pod. Every path in it is checked to lie there; all methods block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._abroad: list[_Link] = []

    def fill(self, volume: str, holds: Content) -> None:
        """Write what a volume holds, where it differs."""
        folder = self._volume(volume)
        if holds.link is not None:
            if holds.lasting:
                holds.link.mkdir(parents=True, exist_ok=True)
            if not folder.is_symlink():
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.symlink_to(holds.link)
            return
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in (holds.files or {}).items():
            _write(_inside(folder, name), file)

    def mount(self, container: core_v1.Container) -> Path:
        """Lay a container's mounts under one folder, and give that."""
        root = self.root / "containers" / container.name
        root.mkdir(parents=True, exist_ok=True)
        for item in container.volume_mounts:
            target = self._volume(item.name)
            if item.sub_path:
                target = _inside(target, item.sub_path)
            self._link(_inside(root, item.mount_path.lstrip("/")), target)
        return root

    def _link(self, place: Path, target: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            return
        stood = place.is_dir()
        if stood:
            place.rmdir()
        place.symlink_to(target)
        if self._is_abroad(place):
            # A mount inside a host path: files put there are removed again.
            self._abroad.append(_Link(place.parent.resolve() / place.name, target, stood))

    def last_words(self, container: core_v1.Container) -> Path:
        """Return the empty file in which a container may leave a message about its end."""
        root = self.root / "containers" / container.name
        file = _inside(root, container.termination_message_path.lstrip("/") or _LAST_WORDS)
        if self._is_abroad(file):
            # Not ours to empty.
            file = root / _LAST_WORDS
        file.parent.mkdir(parents=True, exist_ok=True)
        # The last start can have left anything there, even a pipe without a reader.
        file.unlink(missing_ok=True)
        file.touch(exist_ok=False)
        return file

    def remove(self) -> None:
        """Remove the folder, and what was linked to it from elsewhere."""
        while self._abroad:
            self._abroad.pop().remove()
        shutil.rmtree(self.root, ignore_errors=True)

    def _is_abroad(self, path: Path) -> bool:
        """Return True if a path of the Pod leads through a link out of its folder."""
        return not path.parent.resolve().is_relative_to(self.root.resolve())

    def _volume(self, name: str) -> Path:
        return _inside(self.root / "volumes", name)


def last_words(path: Path) -> str:
    """Return the termination message of a container; empty if it is not a file. Never waits for a pipe."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return ""
        return file.read(_LAST_WORDS_BYTES).decode(errors="replace")


def _inside(folder: Path, name: str) -> Path:
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder):
        raise Unprepared(f"{name} leads out of its volume")
    return path


def _write(path: Path, file: File) -> None:
    if path.is_file() and path.read_bytes() == file.data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replaced in one step: a reader sees the old file or the new one.
    fresh = path.with_name(f".{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(file.data)
    fresh.chmod(file.mode)
    fresh.replace(path)
