"""Prepares containers to start: environment, volumes, and a kubeconfig with the Pod's ServiceAccount token."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kubewright.api import KubewrightError
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.addresses import PodAddresses
from kubewright.processpods.environment import (
    ContainerConfigError,
    Images,
    ReferenceResolver,
    at_own_address,
    can_bind,
    command_of,
    environment,
    folder_of,
)
from kubewright.processpods.reaper import MARK, Reaper
from kubewright.processpods.volumes import MOUNTS, Sandbox, VolumeContent, volume_content

ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
CLAIMS, PODS = "claims", "pods"
_DISPLAY = "DISPLAY"
"""A variable whose value `:99` is a display, not a port."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What all Pods share: the cluster, the commands of images, and the working directory."""

    client: Client
    url: str
    images: Images
    reaper: Reaper
    folder: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command that is ready to start."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    mark: str
    termination_message: Path
    """The file for the container's termination message."""


class PodPreparation:
    """Prepares the containers of one Pod."""

    def __init__(self, machine: Machine, pod: core_v1.Pod, addresses: PodAddresses) -> None:
        self.machine = machine
        self.pod = pod
        self.address: str = addresses.host_ip if pod.spec.host_network else addresses.pod_ip
        self._resolver = ReferenceResolver(machine.client, pod, addresses)
        self._sandbox = Sandbox(machine.folder / PODS / pod.metadata.uid)

    @property
    def mark(self) -> str:
        """Prefix of the process marks of this Pod."""
        return f"{self.machine.reaper.name}/{self.pod.metadata.uid}/"

    async def prepare(self, container: core_v1.Container) -> Prepared:
        """Write the volumes and build the environment of a container.

        Raise ContainerConfigError if something it refers to is missing.
        """
        mounted = {item.name for item in container.volume_mounts}
        await self._fill((item for item in self.pod.spec.volumes if item.name in mounted), tokens=True)
        mounts = await asyncio.to_thread(self._mount, container)
        termination_message = await asyncio.to_thread(self._sandbox.termination_message, container)
        mark = f"{self.mark}{container.name}"
        variables = await environment(self._resolver, container, self._given(mounts))
        folder = await asyncio.to_thread(folder_of, container, mounts)
        command = command_of(container, self.machine.images, variables)
        if not command:
            raise ContainerConfigError(f"image {container.image} has no command on this machine")
        if not self.pod.spec.host_network and can_bind(self.address):
            for name in {item.name for item in container.env} & variables.keys() - {_DISPLAY}:
                variables[name] = at_own_address(variables[name], self.address)
            command = [at_own_address(word, self.address) for word in command]
        # Set last, so that a container cannot override its mark and outlive its Pod.
        variables[MARK] = mark
        return Prepared(command, variables, folder, mark, termination_message)

    async def refresh(self, *, tokens: bool) -> bool:
        """Update files from ConfigMaps, Secrets and tokens; return True if all are up to date.

        A failure in one volume does not prevent the update of the others.
        """
        whole = True
        for volume in self.pod.spec.volumes:
            try:
                await self._fill([volume], tokens=tokens)
            except (ContainerConfigError, KubewrightError, OSError, ValueError):
                whole = False
        return whole

    async def clear(self) -> None:
        """Remove the Pod's directory."""
        await asyncio.to_thread(self._sandbox.remove)

    async def _fill(self, volumes: Iterable[core_v1.Volume], *, tokens: bool) -> None:
        claims = self.machine.folder / CLAIMS
        for volume in volumes:
            found: VolumeContent = await volume_content(self._resolver, volume, claims, tokens=tokens)
            await asyncio.to_thread(self._sandbox.fill, volume.name, found)

    def _mount(self, container: core_v1.Container) -> Path:
        mounts = self._sandbox.mount(container)
        account = mounts / ACCOUNT
        if (account / "token").is_file():
            document = _kubeconfig(self.machine.url, account, self.pod.metadata.namespace)
            _kubeconfig_path(mounts).write_text(json.dumps(document))
        return mounts

    def _given(self, mounts: Path) -> dict[str, str]:
        server = urlsplit(self.machine.url)
        port = str(server.port)
        return {
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            # Client libraries look for the ServiceAccount at a fixed path, which only containers have,
            # but all read KUBECONFIG. Without a token the file does not exist, so that the user's own
            # kubeconfig is never used instead.
            "KUBECONFIG": str(_kubeconfig_path(mounts)),
            MOUNTS: str(mounts),
        }


def _kubeconfig_path(mounts: Path) -> Path:
    return mounts.with_name(f"{mounts.name}.kubeconfig")


def _kubeconfig(url: str, account: Path, namespace: str) -> dict[str, object]:
    name = "pod"
    cluster = {"server": url, "certificate-authority": str(account / "ca.crt")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"tokenFile": str(account / "token")}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }
