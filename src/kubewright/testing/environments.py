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
from kubewright.manager import Manager, ManagerOptions
from kubewright.testing.controlplane import ControlPlane

ServerName = Literal["embedded", "real", "existing"]
_OFF = "0"


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
        cluster = await stack.enter_async_context(DevCluster())
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
