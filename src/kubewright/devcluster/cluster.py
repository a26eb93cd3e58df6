"""The dev cluster: the embedded API server with controllers, a scheduler and a kubelet."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

from kubewright.api import AlreadyExists, NotFound, kind_of
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
    jobs,
    kubelet,
    namespaces,
    node_lifecycle,
    policies,
    provisioner,
    quotas,
    replica_sets,
    scheduler,
    stateful_sets,
    token_secrets,
    volumes,
)
from kubewright.devcluster.addresses import NODE, node_names
from kubewright.devcluster.garbage import GarbageCollector
from kubewright.devcluster.kubelet import POD_ENDPOINTS, PodRunner
from kubewright.devcluster.loopback import Loopback
from kubewright.devcluster.simulated_commands import extended_programs
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devserver import AuthorizationMode, AuthorizationObserver, Server, ServerCredentials
from kubewright.manager import Manager, ManagerOptions

OFF = "0"
ADMIN, MASTERS = "kubewright:dev-cluster", "system:masters"
_POLL = 0.005
_client_log = logging.getLogger("kubewright.client")


def _is_not_endpoints_warning(record: logging.LogRecord) -> bool:
    """Return False for the deprecation warning of Endpoints, which the cluster's own controllers cause."""
    return "v1 Endpoints is deprecated" not in record.getMessage()


async def register_nodes(client: Client, names: Sequence[str] = (NODE,)) -> None:
    """Create the Nodes and the default StorageClass unless they exist."""
    for obj in (*map(kubelet.node_object, names), provisioner.storage_class()):
        try:
            await client.create(obj)
        except AlreadyExists:
            continue


async def _wait_for_default_service_account(client: Client) -> None:
    """Wait for the default ServiceAccount of the default namespace, without which the server rejects Pods."""
    while True:
        try:
            await client.get(core_v1.ServiceAccount, "default", "default")
        except NotFound:
            await asyncio.sleep(_POLL)
        else:
            return


class DevCluster:
    """Serve a cluster while the context is open: API server, controllers, scheduler, and the kubelets of `nodes` nodes.

    `data` names a file that keeps the cluster between runs. A `pod_runner`, such as
    `kubewright.processpods.ProcessPods`, runs the containers of Pods; without one, Pods are simulated. `programs` adds
    to the table of what programs and images do in simulated containers, for example `{"migrate": "sleep 3; exit 1"}`.
    With `listen=False` the cluster is reached only through `in_process_config`. Without `workloads` only the namespace
    controller and the garbage collector run, and without `garbage_collector` not that either. The other arguments are those of `Server`.
    """

    def __init__(
        self,
        *,
        kubernetes: str = "",
        data: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        listen: bool = True,
        workloads: bool = True,
        garbage_collector: bool = True,
        pod_runner: PodRunner | None = None,
        anonymous: bool = False,
        credentials: ServerCredentials | None = None,
        authorization_modes: Collection[AuthorizationMode] = ("RBAC",),
        authorization_observer: AuthorizationObserver | None = None,
        enable_admission_plugins: Collection[str] = (),
        disable_admission_plugins: Collection[str] = (),
        feature_gates: Mapping[str, bool] | None = None,
        nodes: int = 1,
        programs: Mapping[str, str] | None = None,
    ) -> None:
        self._pod_runner = pod_runner
        self._nodes = node_names(nodes)
        self._programs = extended_programs(programs or {})
        # Nodes are ready at once here, and no controller would remove the not-ready taint.
        self._server = Server(
            kubernetes=kubernetes,
            data=data,
            host=host,
            port=port,
            listen=listen,
            enable_admission_plugins=enable_admission_plugins,
            disable_admission_plugins={"TaintNodesByCondition", *disable_admission_plugins},
            feature_gates=feature_gates,
            anonymous=anonymous,
            credentials=credentials,
            authorization_modes=authorization_modes,
            authorization_observer=authorization_observer,
            pod_endpoints=POD_ENDPOINTS if pod_runner is None else pod_runner.endpoints,
        )
        self._listen = listen
        self._workloads = workloads
        self._garbage_collector = garbage_collector
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            _client_log.addFilter(_is_not_endpoints_warning)
            stack.callback(_client_log.removeFilter, _is_not_endpoints_warning)
            server = await stack.enter_async_context(self._server)
            client = await stack.enter_async_context(
                Client(self.in_process_config(), field_manager=FIELD_MANAGER)
            )
            if self._pod_runner is not None:
                await stack.enter_async_context(self._pod_runner)
                self._pod_runner.serve(client, server.url)
            group = await stack.enter_async_context(asyncio.TaskGroup())
            await self._start(client, group, stack, server.ca_pem)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *failure: object) -> None:
        # Pass no exception on: a failure in the body of the `async with` is not a failure of the cluster's
        # tasks.
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return self._server.url

    @property
    def server(self) -> Server:
        """The embedded API server."""
        return self._server

    @property
    def config(self) -> ClusterConfig:
        """Connection settings of the cluster's administrator."""
        return config_from_kubeconfig(self.kubeconfig())

    def kubeconfig(self) -> dict[str, Any]:
        """Return the administrator's kubeconfig."""
        return self._server.kubeconfig()

    def in_process_config(self) -> ClusterConfig:
        """Return settings for a client in this process: administrator rights, no network."""
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
        # Earlier releases do not serve all kinds.
        served = [item for item in controllers if self._server.serves(kind_of(item.kind))]
        operator = Operator(*served, name="kubewright-dev-cluster")
        quiet = ManagerOptions(
            journal_limit=0,
            metrics_bind_address=OFF,
            health_probe_bind_address=OFF,
            graceful_timeout=1.0,
            # The watchdog thread uses real time, and a cluster without a network may run on virtual time.
            watchdog=self._listen,
        )
        manager = Manager(operator, client.config, quiet)
        stack.callback(group.create_task(manager.run()).cancel)
        if self._garbage_collector:
            collector = GarbageCollector(client)
            stack.callback(group.create_task(collector.run()).cancel)
            await collector.synced.wait()
        await manager.ready.wait()
        await _wait_for_default_service_account(client)

    async def _workload_controllers(self, client: Client) -> list[Controller[Any]]:
        version = (await client.server_version()).git_version
        await register_nodes(client, self._nodes)
        return [
            deployments.controller(),
            *replica_sets.controllers(),
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
            policies.controller(client),
            certificate_requests.controller(self._server.sign),
            token_secrets.controller(self._server.issue_for_secret, self._server.ca_pem),
            *node_lifecycle.controllers(),
            scheduler.controller(),
            *kubelet.controllers(version, self._nodes, self._pod_runner, self._programs),
        ]
