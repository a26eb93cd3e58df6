"""The stage: a dev cluster with the five operators running, in a folder that goes with it."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

import foo
import kubewright as kw
import mycustomresource
import myownshell
import pulsarconsumer
import vmgroup
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.client import Client
from kubewright.devcluster import DevCluster
from kubewright.testing import Cluster
from show.replicas import Replica

NAMESPACE = "demo"
EXAMPLES = Path(__file__).parents[1]
REPLICATED = "myownshell"


@dataclass
class Stage:
    """What the story plays on."""

    cluster: Cluster
    replicas: list[Replica] = field(default_factory=list[Replica])
    """Of the MyOwnShell operator; the first one started holds the lease."""

    async def apply_samples(self) -> list[str]:
        """Apply the YAML files that come with the operators; gives the names of what was applied."""
        applied: list[str] = []
        for file in sorted(EXAMPLES.glob("*/samples/*.yaml")):
            for document in yaml.safe_load_all(await asyncio.to_thread(file.read_text)):
                document["metadata"]["namespace"] = NAMESPACE
                await self.cluster.client.apply(document, field_manager="demo")
                applied.append(f"{document['kind'].lower()}/{document['metadata']['name']}")
        return applied

    async def leader(self) -> str:
        """Return who holds the lease of the MyOwnShell operator."""
        lease = await self.cluster.eventually(
            coordination_v1.Lease, REPLICATED, lambda it: it.spec.holder_identity
        )
        return lease.spec.holder_identity or ""

    async def add_replica(self) -> None:
        """Start one more process of the MyOwnShell operator."""
        self.replicas.append(await Replica.start(EXAMPLES / REPLICATED, self.cluster.kubeconfig, NAMESPACE))

    async def stop_replicas(self) -> None:
        """End the processes, all at once: nobody waits for one after the other."""
        async with asyncio.TaskGroup() as group:
            for replica in self.replicas:
                group.create_task(replica.stop())


@asynccontextmanager
async def set_up() -> AsyncGenerator[Stage, None]:
    """Bring everything up; whatever ends the context takes everything down again."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubewright-demo-")))
        os.environ["VMGROUP_SIMULATOR"] = str(folder / "vcenter.json")
        server = await stack.enter_async_context(DevCluster())
        kubeconfig = folder / "kubeconfig"
        document = server.kubeconfig()
        document["contexts"][0]["context"]["namespace"] = NAMESPACE
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(document))
        client = await stack.enter_async_context(Client(server.config, field_manager="demo"))
        await client.create(core_v1.Namespace(kw.Meta(NAMESPACE)))
        stage = Stage(Cluster("embedded", client, server.config, kubeconfig, NAMESPACE))
        await stage.cluster.eventually(core_v1.ServiceAccount, "default")
        await stage.cluster.install(myownshell.operator())
        stack.push_async_callback(stage.stop_replicas)
        await stage.add_replica()
        for sample in (mycustomresource, foo, vmgroup, pulsarconsumer):
            await stack.enter_async_context(stage.cluster.running(sample.operator()))
        await stage.leader()
        await stage.add_replica()
        yield stage
