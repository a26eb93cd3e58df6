"""The volumes of a Pod as directories: each container's mounts are links below one directory of its own."""

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
from kubewright.processpods.environment import ContainerConfigError, ReferenceResolver

MOUNTS = "CONTAINER_SANDBOX_MOUNT_POINT"
"""Variable with the directory of a container's mounts; the name that Kubernetes uses for host process containers."""
_TOKEN_LIFE = timedelta(hours=1)
_TERMINATION_MESSAGE = "dev/termination-log"
_TERMINATION_MESSAGE_BYTES = 4096


class File(NamedTuple):
    """A file of a volume."""

    data: bytes
    mode: int


Files = dict[str, File]


@dataclass(slots=True)
class VolumeContent:
    """The content of a volume: files from the cluster, a directory of this machine, or neither for an empty volume."""

    files: Files | None = None
    link: Path | None = None
    persistent: bool = False
    """The directory outlives the Pod, and is created if missing."""


async def volume_content(
    resolver: ReferenceResolver, volume: core_v1.Volume, claims: Path, *, tokens: bool = True
) -> VolumeContent:
    """Return the content of a volume; that of a claim is a directory in `claims`.

    Without `tokens`, ServiceAccount tokens are left out, so that existing ones stay.
    """
    if volume.host_path is not None:
        return VolumeContent(link=Path(volume.host_path.path))
    if (claim := volume.persistent_volume_claim) is not None:
        return VolumeContent(
            link=claims / f"{resolver.pod.metadata.namespace}_{claim.claim_name}", persistent=True
        )
    return VolumeContent(await _files(resolver, volume, tokens=tokens))


async def _files(resolver: ReferenceResolver, volume: core_v1.Volume, *, tokens: bool) -> Files | None:
    if (source := volume.config_map) is not None:
        found = await resolver.config_map(source.name, optional=source.optional)
        return _selected_files(resolver, "ConfigMap", source.name, found, source.items, source.default_mode)
    if (secret := volume.secret) is not None:
        found = await resolver.secret(secret.secret_name, optional=secret.optional)
        return _selected_files(
            resolver, "Secret", secret.secret_name, found, secret.items, secret.default_mode
        )
    if volume.downward_api is not None:
        return _downward_api_files(resolver, volume.downward_api.items, volume.downward_api.default_mode)
    if volume.projected is not None:
        made: Files = {}
        for part in volume.projected.sources:
            if part.service_account_token is not None and not tokens:
                continue
            made.update(await _projected(resolver, part, volume.projected.default_mode))
        return made
    return None


async def _projected(resolver: ReferenceResolver, part: core_v1.VolumeProjection, mode: int | None) -> Files:
    if (source := part.config_map) is not None:
        found = await resolver.config_map(source.name, optional=source.optional)
        return _selected_files(resolver, "ConfigMap", source.name, found, source.items, mode)
    if (secret := part.secret) is not None:
        found = await resolver.secret(secret.name, optional=secret.optional)
        return _selected_files(resolver, "Secret", secret.name, found, secret.items, mode)
    if part.downward_api is not None:
        return _downward_api_files(resolver, part.downward_api.items, mode)
    if (token := part.service_account_token) is not None:
        made = await resolver.client.token_request(
            resolver.pod.spec.service_account_name,
            resolver.pod.metadata.namespace,
            audiences=(token.audience,) if token.audience else (),
            lifetime=timedelta(seconds=token.expiration_seconds) if token.expiration_seconds else _TOKEN_LIFE,
            bound_to=resolver.pod,
        )
        return {token.path: File(made.token.encode(), 0o600)}
    return {}


def _selected_files(
    resolver: ReferenceResolver,
    kind: str,
    name: str,
    found: dict[str, bytes],
    items: Sequence[core_v1.KeyToPath],
    mode: int | None,
) -> Files:
    default_mode = 0o644 if mode is None else mode
    if not items:
        return {key: File(data, default_mode) for key, data in found.items()}
    made: Files = {}
    for item in items:
        data = resolver.key(kind, name, found, item.key, optional=not found)
        if data is not None:
            made[item.path] = File(data, default_mode if item.mode is None else item.mode)
    return made


def _downward_api_files(
    resolver: ReferenceResolver, items: Sequence[core_v1.DownwardAPIVolumeFile], mode: int | None
) -> Files:
    default_mode, first = 0o644 if mode is None else mode, resolver.pod.spec.containers[0]
    made: Files = {}
    for item in items:
        text = ""
        if item.field_ref is not None:
            text = resolver.field(item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = resolver.resource(item.resource_field_ref, first)
        made[item.path] = File(text.encode(), default_mode if item.mode is None else item.mode)
    return made


class _Link(NamedTuple):
    """A link placed in a directory of this machine, possibly in place of an empty directory."""

    addresses: Path
    target: Path
    replaced_folder: bool

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            if self.addresses.readlink() == self.target:
                self.addresses.unlink()
                if self.replaced_folder:
                    self.addresses.mkdir()


class Sandbox:
    """The directory of one Pod.

    Every path is checked to be inside it. All methods block.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._external_links: list[_Link] = []

    def fill(self, volume: str, content: VolumeContent) -> None:
        """Write the content of a volume where it differs."""
        folder = self._volume(volume)
        if content.link is not None:
            if content.persistent:
                content.link.mkdir(parents=True, exist_ok=True)
            if not folder.is_symlink():
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.symlink_to(content.link)
            return
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in (content.files or {}).items():
            _write(_inside(folder, name), file)

    def mount(self, container: core_v1.Container) -> Path:
        """Link a container's mounts below one directory, and return it."""
        root = self.root / "containers" / container.name
        root.mkdir(parents=True, exist_ok=True)
        for item in container.volume_mounts:
            target = self._volume(item.name)
            if item.sub_path:
                target = _inside(target, item.sub_path)
            self._link(_inside(root, item.mount_path.lstrip("/")), target)
        return root

    def _link(self, addresses: Path, target: Path) -> None:
        addresses.parent.mkdir(parents=True, exist_ok=True)
        if addresses.is_symlink():
            return
        replaced_folder = addresses.is_dir()
        if replaced_folder:
            addresses.rmdir()
        addresses.symlink_to(target)
        if self._is_external(addresses):
            # A mount inside a mounted host directory: the link must be removed again.
            self._external_links.append(
                _Link(addresses.parent.resolve() / addresses.name, target, replaced_folder)
            )

    def termination_message(self, container: core_v1.Container) -> Path:
        """Return the empty file for a container's termination message."""
        root = self.root / "containers" / container.name
        file = _inside(root, container.termination_message_path.lstrip("/") or _TERMINATION_MESSAGE)
        if self._is_external(file):
            # Do not empty a file outside the Pod's directory.
            file = root / _TERMINATION_MESSAGE
        file.parent.mkdir(parents=True, exist_ok=True)
        # The previous run may have left anything there, even a pipe without a writer.
        file.unlink(missing_ok=True)
        file.touch(exist_ok=False)
        return file

    def remove(self) -> None:
        """Remove the directory, and links to it from elsewhere."""
        while self._external_links:
            self._external_links.pop().remove()
        shutil.rmtree(self.root, ignore_errors=True)

    def _is_external(self, path: Path) -> bool:
        """Return True if the path leads out of the Pod's directory through a link."""
        return not path.parent.resolve().is_relative_to(self.root.resolve())

    def _volume(self, name: str) -> Path:
        return _inside(self.root / "volumes", name)


def termination_message(path: Path) -> str:
    """Read a termination message; return an empty string if it is not a regular file, without blocking on a pipe."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return ""
        return file.read(_TERMINATION_MESSAGE_BYTES).decode(errors="replace")


def _inside(folder: Path, name: str) -> Path:
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder):
        raise ContainerConfigError(f"{name} is outside of its volume")
    return path


def _write(path: Path, file: File) -> None:
    if path.is_file() and path.read_bytes() == file.data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replace atomically: readers see either the old or the new file.
    fresh = path.with_name(f".{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(file.data)
    fresh.chmod(file.mode)
    fresh.replace(path)
