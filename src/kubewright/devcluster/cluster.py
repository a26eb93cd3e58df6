"""The dev cluster: the embedded server and the controllers that make it look alive."""

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from kubewright.api import AlreadyExists, NotFound
from kubewright.api.builtin import core_v1
from kubewright.client import Client, ClusterConfig, config_from_kubeconfig
from kubewright.controller import Controller, Operator
from kubewright.devcluster import (
    aggregation,
    autoscalers,
    certificate_requests,
    cron_jobs,
    daemon_sets,
    deployments,
    disruptions,
    endpoints,
    evictions,
    jobs,
    kubelet,
    namespaces,
    node_care,
    quotas,
    replica_sets,
    scheduling,
    stateful_sets,
    storage,
    volumes,
)
from kubewright.devcluster.garbage import GarbageCollector
from kubewright.devcluster.kubelet import PodRunner
from kubewright.devcluster.loopback import Loopback
from kubewright.devcluster.places import NODE
from kubewright.devcluster.pod_endpoints import POD_ENDPOINTS
from kubewright.devserver import Server
from kubewright.manager import Manager, ManagerOptions

OFF = "0"
ADMIN, MASTERS = "kubewright:dev-cluster", "system:masters"
_POLL = 0.005
_client_log = logging.getLogger("kubewright.client")


def _is_news(record: logging.LogRecord) -> bool:
    """Keep the server's advice on Endpoints out of the log: a cluster has them, and its controllers write them."""
    return "v1 Endpoints is deprecated" not in record.getMessage()


async def register_node(client: Client, name: str = NODE) -> None:
    """Make the node, and the storage class of its volumes, unless they are there."""
    for obj in (kubelet.node_object(name), storage.storage_class()):
        try:
            await client.create(obj)
        except AlreadyExists:
            continue


async def _until_pods_are_welcome(client: Client) -> None:
    """Wait for the first namespace's ServiceAccount, without which the server refuses Pods."""
    while True:
        try:
            await client.get(core_v1.ServiceAccount, "default", "default")
        except NotFound:
            await asyncio.sleep(_POLL)
        else:
            return


class DevCluster:
    """Serve a cluster of one node while the context is open: API server, controllers, scheduler, kubelet.

    `data` names a file that keeps the cluster between runs. A `pod_runner`, such as `kubewright.processpods.ProcessPods`,
    runs the containers of Pods; without one Pods only pretend to run. With `listen=False` the cluster is reached by
    `in_process_config` alone. Without `workloads` only namespaces and the garbage collector work.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        listen: bool = True,
        workloads: bool = True,
        pod_runner: PodRunner | None = None,
    ) -> None:
        self._pod_runner = pod_runner
        # Nodes are ready at once here, and nobody would take off the taint that they are not.
        self._server = Server(
            data=data,
            host=host,
            port=port,
            listen=listen,
            disable_admission_plugins=("TaintNodesByCondition",),
            pod_endpoints=POD_ENDPOINTS if pod_runner is None else pod_runner.endpoints,
        )
        self._listen = listen
        self._workloads = workloads
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            _client_log.addFilter(_is_news)
            stack.callback(_client_log.removeFilter, _is_news)
            server = await stack.enter_async_context(self._server)
            client = await stack.enter_async_context(
                Client(self.in_process_config(), field_manager="kubewright")
            )
            if self._pod_runner is not None:
                await stack.enter_async_context(self._pod_runner)
                self._pod_runner.serve(client, server.url)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            await self._start(client, group, stack, server.ca_pem)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        # What went wrong beside the cluster is none of its failures, which come in groups.
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """Where the API is served."""
        return self._server.url

    @property
    def server(self) -> Server:
        """The API server inside."""
        return self._server

    @property
    def config(self) -> ClusterConfig:
        """How an administrator connects."""
        return config_from_kubeconfig(self.kubeconfig())

    def kubeconfig(self) -> dict[str, Any]:
        """Return the administrator's kubeconfig."""
        return self._server.kubeconfig()

    def in_process_config(self) -> ClusterConfig:
        """Return how a program of this process connects: as an administrator, without a network between."""
        return ClusterConfig(
            self._server.url,
            token=self._server.add_user(ADMIN, (MASTERS,)),
            exchange=lambda: Loopback(self._server.handle, self._server.spawn),
        )

    async def _start(
        self, client: Client, group: asyncio.TaskGroup, stack: AsyncExitStack, ca_pem: bytes
    ) -> None:
        controllers = [namespaces.controller(client, ca_pem.decode())]
        if self._workloads:
            controllers += await self._workload_controllers(client)
        operator = Operator(*controllers, name="kubewright-dev-cluster")
        quiet = ManagerOptions(
            metrics_bind_address=OFF,
            health_probe_bind_address=OFF,
            graceful_timeout=1.0,
            # Its thread keeps real time, which a cluster without a network may not have.
            watchdog=self._listen,
        )
        manager = Manager(operator, client.config, quiet)
        collector = GarbageCollector(client)
        for work in (manager.run(), collector.run()):
            stack.callback(group.create_task(work).cancel)
        await manager.ready.wait()
        await collector.synced.wait()
        await _until_pods_are_welcome(client)

    async def _workload_controllers(self, client: Client) -> list[Controller[Any]]:
        version = (await client.server_version()).git_version
        await register_node(client)
        return [
            deployments.controller(),
            replica_sets.controller(),
            stateful_sets.controller(),
            daemon_sets.controller(),
            *jobs.controllers(),
            cron_jobs.controller(),
            *endpoints.controllers(),
            *volumes.controllers(),
            disruptions.controller(),
            quotas.controller(client),
            autoscalers.controller(client),
            aggregation.controller(),
            certificate_requests.controller(self._server.sign),
            node_care.controller(),
            evictions.controller(),
            scheduling.controller(),
            *kubelet.controllers(version, runner=self._pod_runner),
        ]
