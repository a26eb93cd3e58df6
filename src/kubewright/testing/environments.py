"""Where tests run: on the embedded cluster, a real control plane, or an existing cluster."""

import asyncio
import os
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal

import yaml

from kubewright.client import Client, load_config
from kubewright.devcluster import DevCluster, Scratch, kubelet_operator, register_nodes
from kubewright.devserver import KubernetesRelease, UnknownReleaseError
from kubewright.devserver.data import RELEASE
from kubewright.manager import Manager, ManagerOptions
from kubewright.testing.controlplane import (
    CONTROLLERS,
    SERVERS,
    ControlPlane,
    build_command,
    default_folder,
    missing_binaries,
    release_of_binaries,
)
from kubewright.testing.releases import ReleaseError, selected_release

ServerName = Literal["embedded", "real", "existing"]
_OFF = "0"


def check_release(server: ServerName) -> None:
    """Raise ReleaseError if the server does not run, or cannot run here, the selected release."""
    release = selected_release()
    if release is None:
        return
    if server == "existing":
        raise ReleaseError(
            "an existing cluster has its own Kubernetes version: --kubernetes does not select it"
        )
    if server == "embedded":
        check_embedded(release)
    folder = default_folder()
    if server == "real" and (missing := missing_binaries(folder, (*SERVERS, *CONTROLLERS))):
        raise ReleaseError(
            f"Kubernetes {release} is not built: {folder} lacks {', '.join(missing)}. Run `{build_command(folder)}`"
        )


def check_embedded(release: str) -> None:
    """Raise ReleaseError if the embedded server does not know a release."""
    try:
        KubernetesRelease.find(release)
    except UnknownReleaseError as error:
        raise ReleaseError(f"the embedded server: {error}") from None


async def server_release(server: ServerName) -> str:
    """Return the Kubernetes release of a server, such as `1.33.13`; only for an existing cluster, a request is sent."""
    if server == "existing":
        async with AsyncExitStack() as stack:
            config = await asyncio.to_thread(load_config, await ExistingEnvironment().start(stack))
            client = await stack.enter_async_context(Client(config))
            return (await client.server_version()).git_version.removeprefix("v")
    if (release := selected_release()) is not None:
        return release
    if server == "real" and "KUBEBUILDER_ASSETS" in os.environ:
        return await asyncio.to_thread(release_of_binaries, default_folder())
    return RELEASE


class Environment(ABC):
    """A cluster for tests; `start` returns the kubeconfig of its administrator."""

    name: ServerName

    @abstractmethod
    async def start(self, stack: AsyncExitStack) -> Path:
        """Start the cluster; it runs while the stack is open."""


class EmbeddedEnvironment(Environment):
    """The dev cluster inside this process."""

    name: ServerName = "embedded"

    async def start(self, stack: AsyncExitStack) -> Path:
        """Start the dev cluster."""
        scratch = await asyncio.to_thread(Scratch.create, "kubewright-embedded-")
        stack.push_async_callback(asyncio.to_thread, scratch.close)
        cluster = await stack.enter_async_context(DevCluster(kubernetes=selected_release() or ""))
        path = scratch.path / "kubeconfig"
        await asyncio.to_thread(path.write_text, yaml.safe_dump(cluster.kubeconfig()))
        return path


class RealEnvironment(Environment):
    """A real control plane with simulated kubelets."""

    name: ServerName = "real"

    def __init__(self, binaries: Path | None = None) -> None:
        self.plane: ControlPlane = ControlPlane(binaries)

    async def start(self, stack: AsyncExitStack) -> Path:
        """Start the control plane and the kubelet."""
        plane = await stack.enter_async_context(self.plane)
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        async with Client(config) as client:
            await register_nodes(client)
            version = (await client.server_version()).git_version
        options = ManagerOptions(
            journal_limit=0, metrics_bind_address=_OFF, health_probe_bind_address=_OFF, graceful_timeout=1.0
        )
        kubelet = Manager(kubelet_operator(version), config, options)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        stack.callback(group.create_task(kubelet.run()).cancel)
        await kubelet.ready.wait()
        return plane.kubeconfig


class ExistingEnvironment(Environment):
    """The cluster of the current kubeconfig context."""

    name: ServerName = "existing"

    def __init__(self, kubeconfig: Path | None = None) -> None:
        given = kubeconfig or Path(os.environ.get("KUBECONFIG", "~/.kube/config"))
        self._kubeconfig = given.expanduser()

    async def start(self, stack: AsyncExitStack) -> Path:
        """Return the kubeconfig of the current context."""
        return self._kubeconfig
