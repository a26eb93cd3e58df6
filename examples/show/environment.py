"""The demo's environment: a dev cluster with the five operators, in a temporary directory."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
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
from kubewright.manager import ManagerOptions, WebhookOptions
from kubewright.testing import Cluster
from kubewright.ui import PageOptions, cluster_page
from kubewright.why import journal_file
from show.replicas import Replica

NAMESPACE = "demo"
EXAMPLES = Path(__file__).parents[1]
REPLICATED = "myownshell"


@dataclass
class Environment:
    """The cluster and the replicas that the scenario uses."""

    cluster: Cluster
    replicas: list[Replica] = field(default_factory=list[Replica])
    """Replicas of the MyOwnShell operator; the first one holds the lease."""
    link: str = ""
    """The link of the live page, if it is shown."""

    async def apply_samples(self) -> list[str]:
        """Apply the operators' sample YAML files and return the names of the applied objects."""
        applied: list[str] = []
        for file in sorted(EXAMPLES.glob("*/samples/*.yaml")):
            for document in yaml.safe_load_all(await asyncio.to_thread(file.read_text)):
                document["metadata"]["namespace"] = NAMESPACE
                await self.cluster.client.apply(document, field_manager="demo")
                applied.append(f"{document['kind'].lower()}/{document['metadata']['name']}")
        return applied

    async def leader(self) -> str:
        """Return the holder identity of the MyOwnShell operator's Lease."""
        lease = await self.cluster.eventually(
            coordination_v1.Lease, REPLICATED, lambda it: it.spec.holder_identity
        )
        return lease.spec.holder_identity or ""

    async def add_replica(self) -> None:
        """Start one more process of the MyOwnShell operator."""
        self.replicas.append(await Replica.start(EXAMPLES / REPLICATED, self.cluster.kubeconfig, NAMESPACE))

    async def stop_replicas(self) -> None:
        """Stop all processes concurrently."""
        async with asyncio.TaskGroup() as group:
            for replica in self.replicas:
                group.create_task(replica.stop())


@asynccontextmanager
async def set_up(*, ui: bool = False) -> AsyncGenerator[Environment, None]:
    """Start everything, with `ui` the live page as well; stop and clean up when the context ends."""
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
        environment = Environment(Cluster("embedded", client, server.config, kubeconfig, NAMESPACE))
        await environment.cluster.eventually(core_v1.ServiceAccount, "default")
        await environment.cluster.install(myownshell.operator())
        stack.push_async_callback(environment.stop_replicas)
        await environment.add_replica()
        for sample in (mycustomresource, foo, vmgroup, pulsarconsumer):
            operator = sample.operator()
            options = _served_options(operator.name) if ui else None
            await stack.enter_async_context(environment.cluster.running(operator, options=options))
        await environment.leader()
        await environment.add_replica()
        if ui:
            samples = tuple(sorted(EXAMPLES.glob("*/samples")))
            page = cluster_page(
                replace(server.config, namespace=NAMESPACE), "five operators", PageOptions(samples=samples)
            )
            environment.link = await stack.enter_async_context(page)
        yield environment


def _served_options(operator: str) -> ManagerOptions:
    """Return the options of an operator whose journal the live page reads."""
    return ManagerOptions(
        metrics_bind_address="0",
        health_probe_bind_address="0",
        webhooks=WebhookOptions(bind_address="127.0.0.1:0"),
        journal_file=journal_file(operator),
    )
