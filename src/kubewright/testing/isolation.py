"""An isolated namespace: on a shared cluster, or on a cluster in the test's event loop."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import Client, load_config
from kubewright.devcluster import DevCluster, Scratch
from kubewright.devserver import Faults, Server
from kubewright.testing.cluster import Cluster
from kubewright.testing.environments import ServerName
from kubewright.testing.releases import selected_release

# Not the operators' own, so that a fault can match theirs alone.
_USER_AGENT = "kubewright-testing/0.1"


@asynccontextmanager
async def isolated(
    server: ServerName, kubeconfig: Path, *, faults: Faults | None = None, controllers: bool = True
) -> AsyncGenerator[Cluster, None]:
    """Create a namespace on the cluster of a kubeconfig, and delete it when the context ends.

    With `faults` the cluster is the caller's own and ends after this. Pass `controllers=False` if the cluster is an
    API server alone: then nothing fills the namespace with what Pods need.
    """
    config = await asyncio.to_thread(load_config, kubeconfig)
    namespace = f"test-{secrets.token_hex(4)}"
    async with Client(config, field_manager="kubewright-testing", user_agent=_USER_AGENT) as client:
        await client.create(core_v1.Namespace(Meta(namespace)))
        made = Cluster(server, client, config, kubeconfig, namespace, faults)
        try:
            if controllers:
                # Pods are rejected until the namespace has its ServiceAccount; the ConfigMap could appear among those of a test.
                await made.eventually(core_v1.ServiceAccount, "default")
                await made.eventually(core_v1.ConfigMap, "kube-root-ca.crt")
            yield made
        finally:
            # A cluster of the caller's own is deleted entirely, and its injected faults could fail the request.
            if faults is None:
                await client.delete(core_v1.Namespace, namespace)


@asynccontextmanager
async def embedded(
    *,
    controllers: bool = True,
    nodes: int = 1,
    programs: Mapping[str, str] | None = None,
    kubernetes: str = "",
) -> AsyncGenerator[Cluster, None]:
    """Run a dev cluster in the current event loop, with fault injection and, under `virtual_time`, with a virtual clock.

    With `controllers=False` only the API server runs: Deployments get no Pods, deleted owners leave their children, and
    a deleted namespace stays. `programs` says what programs and images do in simulated containers:
    `{"migrate": "sleep 3; exit 1"}`. `kubernetes` is the version that is served, such as `"1.33"`; by default the one that
    `pytest --kubernetes` selects.
    """
    version = kubernetes or selected_release() or ""
    scratch = await asyncio.to_thread(Scratch.create, "kubewright-embedded-")
    try:
        # Without controllers no namespace gets the ServiceAccount that the plugin gives to Pods.
        running = (
            DevCluster(kubernetes=version, nodes=nodes, programs=programs)
            if controllers
            else Server(kubernetes=version, disable_admission_plugins=("ServiceAccount",))
        )
        async with running as started:
            path = scratch.path / "kubeconfig"
            await asyncio.to_thread(path.write_text, yaml.safe_dump(started.kubeconfig()))
            faults = started.faults if isinstance(started, Server) else started.server.faults
            async with isolated("embedded", path, faults=faults, controllers=controllers) as made:
                yield made
    finally:
        await asyncio.to_thread(scratch.close)
