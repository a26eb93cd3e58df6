"""An isolated namespace: on a shared cluster, or on a cluster in the test's event loop."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client, load_config
from kubewright.devcluster import DevCluster, Scratch
from kubewright.devserver import Faults
from kubewright.testing.cluster import Cluster
from kubewright.testing.environments import ServerName


@asynccontextmanager
async def isolated(
    server: ServerName, kubeconfig: Path, *, faults: Faults | None = None
) -> AsyncGenerator[Cluster, None]:
    """Create a namespace on the cluster of a kubeconfig, and delete it when the context ends.

    With `faults` the cluster is the caller's own and ends after this.
    """
    config = await asyncio.to_thread(load_config, kubeconfig)
    namespace = f"test-{secrets.token_hex(4)}"
    async with Client(config, field_manager="kubewright-testing") as client:
        await client.create(core_v1.Namespace(Meta(namespace)))
        made = Cluster(server, client, config, kubeconfig, namespace, faults)
        try:
            # Pods are rejected until the namespace has its ServiceAccount; the ConfigMap could appear among those of a test.
            await made.eventually(core_v1.ServiceAccount, "default")
            await made.eventually(core_v1.ConfigMap, "kube-root-ca.crt")
            yield made
        finally:
            # A cluster of the caller's own is deleted entirely, and its injected faults could fail the request.
            if faults is None:
                await client.delete(core_v1.Namespace, namespace)


@asynccontextmanager
async def embedded() -> AsyncGenerator[Cluster, None]:
    """Run a dev cluster in the current event loop, with fault injection and, under `virtual_time`, with a virtual clock."""
    scratch = await asyncio.to_thread(Scratch.create, "kubewright-embedded-")
    try:
        async with DevCluster() as dev:
            path = scratch.path / "kubeconfig"
            await asyncio.to_thread(path.write_text, yaml.safe_dump(dev.kubeconfig()))
            async with isolated("embedded", path, faults=dev.server.faults) as made:
                yield made
    finally:
        await asyncio.to_thread(scratch.close)
