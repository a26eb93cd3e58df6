"""What the processes of one Pod are given: environment, folders, the cluster's address and their account."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from kubewright.api import KubewrightError
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from kubewright.devcluster.places import Place
from kubewright.processpods.commands import (
    Images,
    at_own_address,
    can_bind,
    command_of,
    folder_of,
)
from kubewright.processpods.environment import environment
from kubewright.processpods.folders import MOUNTS, Content, Sandbox, content
from kubewright.processpods.orphans import MARK
from kubewright.processpods.reaper import Reaper
from kubewright.processpods.values import Unprepared, Values

ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
CLAIMS, PODS = "claims", "pods"
_DISPLAY = "DISPLAY"
"""The variable in which `:99` is a display and not a port."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What all Pods share: this machine, and the cluster they belong to."""

    client: Client
    url: str
    images: Images
    reaper: Reaper
    folder: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command that is ready to be started."""

    command: list[str]
    environment: dict[str, str]
    folder: Path
    mark: str
    last_words: Path
    """Where the container may leave a message about its end."""


class PodPreparation:
    """What one Pod's processes find around them."""

    def __init__(self, machine: Machine, pod: core_v1.Pod, place: Place) -> None:
        self.machine = machine
        self.pod = pod
        self.address: str = place.host_ip if pod.spec.host_network else place.pod_ip
        self._values = Values(machine.client, pod, place)
        self._sandbox = Sandbox(machine.folder / PODS / pod.metadata.uid)

    @property
    def mark(self) -> str:
        """What the marks of all its processes begin with."""
        return f"{self.machine.reaper.name}/{self.pod.metadata.uid}/"

    async def prepare(self, container: core_v1.Container) -> Prepared:
        """Lay out what a container needs; raise Unprepared while something is missing."""
        mounted = {item.name for item in container.volume_mounts}
        await self._fill((item for item in self.pod.spec.volumes if item.name in mounted), tokens=True)
        mounts = await asyncio.to_thread(self._mount, container)
        last_words = await asyncio.to_thread(self._sandbox.last_words, container)
        mark = f"{self.mark}{container.name}"
        variables = await environment(self._values, container, self._given(mounts))
        folder = await asyncio.to_thread(folder_of, container, mounts)
        command = command_of(container, self.machine.images, variables)
        if not command:
            raise Unprepared(f"the image {container.image} stands for no command")
        if not self.pod.spec.host_network and can_bind(self.address):
            for name in {item.name for item in container.env} & variables.keys() - {_DISPLAY}:
                variables[name] = at_own_address(variables[name], self.address)
            command = [at_own_address(word, self.address) for word in command]
        # Last, so that a container cannot call itself another and outlive its Pod.
        variables[MARK] = mark
        return Prepared(command, variables, folder, mark, last_words)

    async def refresh(self, *, tokens: bool) -> bool:
        """Bring files of the cluster up to date: ConfigMaps and Secrets change, tokens expire.

        What one volume misses does not keep the others from it; return True if all is up to date.
        """
        whole = True
        for volume in self.pod.spec.volumes:
            try:
                await self._fill([volume], tokens=tokens)
            except (Unprepared, KubewrightError, OSError, ValueError):
                whole = False
        return whole

    async def clear(self) -> None:
        """Remove the Pod's folder."""
        await asyncio.to_thread(self._sandbox.remove)

    async def _fill(self, volumes: Iterable[core_v1.Volume], *, tokens: bool) -> None:
        claims = self.machine.folder / CLAIMS
        for volume in volumes:
            holds: Content = await content(self._values, volume, claims, tokens=tokens)
            await asyncio.to_thread(self._sandbox.fill, volume.name, holds)

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
            # Programs look for their account at a path that only containers have; a kubeconfig they all read.
            # Without a ServiceAccount the file does not exist: the process must not use the user's own kubeconfig.
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
