"""The kubelets of the cluster's nodes: report the status and the lease of each Node, and the status of its Pods."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from kubewright.api import Meta, MicroTime, ObjectKey
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.client import Client
from kubewright.controller import Change, Context, Controller, Operator, Options, Result, needs, source
from kubewright.devcluster import clock, provisioner
from kubewright.devcluster.addresses import (
    NODE,
    NODE_CAPACITY,
    POD_NETWORK,
    AddressAllocator,
    PodAddresses,
    host_ips,
)
from kubewright.devcluster.pod_lifecycle import PodUpdate
from kubewright.devcluster.pod_scenarios import advance, stop
from kubewright.devcluster.simulated_commands import PROGRAMS
from kubewright.devcluster.statuses import REQUEUE_SOON, StatusWriter
from kubewright.devcluster.workloads import is_pod_finished
from kubewright.devserver import EndpointRequest, StatusError, SubresourceEndpoint, choose_container
from kubewright.http.server import Response

NAME = "kubelet"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW = timedelta(seconds=10)
STOP_SECONDS = 0.2
"""Seconds that simulated containers take to stop: `kubectl delete` reads a Pod once after deleting it, and waits only if
the Pod still exists."""
STATUS_INTERVAL = timedelta(minutes=5)
"""How often the node's status is refreshed if nothing else changes; the lease shows that the node is alive."""
_MIN_DELAY = 0.001
"""Shorter delays are treated as over: timers are no more precise, and a delay of zero is not allowed."""
_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


class PodRunner(Protocol):
    """Run the containers of Pods while the context is open: `ProcessPods`, which is optional and in a higher layer."""

    network: ipaddress.IPv4Network
    endpoints: Mapping[str, SubresourceEndpoint]
    """Subresources of Pods: log, exec, attach, portforward."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def serve(self, client: Client, url: str) -> None:
        """Set the cluster whose Pods to run."""
        ...

    async def advance(self, pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate | None:
        """Start containers and return the Pod's new status, or None if the Pod is not run by this runner."""
        ...

    async def stop(self, pod: core_v1.Pod, addresses: PodAddresses, now: datetime) -> PodUpdate | None:
        """Stop the containers and return the Pod's new status, or None if the Pod is not run by this runner.

        While `PodUpdate.running` is true, it is called again after the next change.
        """
        ...

    def forget(self, pod: core_v1.Pod) -> None:
        """Stop and remove what is left of a deleted Pod."""
        ...

    def changed(self) -> AsyncIterator[ObjectKey]:
        """Yield the keys of Pods whose containers changed."""
        ...


class Kubelet:
    """Report the status of the Pods on these nodes, simulated or from a runner.

    `programs` is the table of what programs do in simulated containers.
    """

    def __init__(
        self,
        nodes: Sequence[str] = (NODE,),
        runner: PodRunner | None = None,
        programs: Mapping[str, str] = PROGRAMS,
    ) -> None:
        self._host_ips = host_ips(nodes)
        self._runner = runner
        self._programs = programs
        self._allocator = AddressAllocator(runner.network if runner is not None else POD_NETWORK)
        self._stopped_at: dict[str, float] = {}
        self._status_writer = StatusWriter()

    def is_relevant(self, change: Change[core_v1.Pod]) -> bool:
        """Return True for changes of these nodes' Pods, except for status updates written by this kubelet."""
        if change.new is None and change.before is not None:
            self._stopped_at.pop(change.before.meta.uid, None)
            self._allocator.confirm(change.before.meta.uid)
        if change.new is None and change.old is not None and self._runner is not None:
            # Force-deleted: there is no object left to reconcile, but its processes must end.
            self._runner.forget(change.old)
        if change.new is None or change.new.spec.node_name not in self._host_ips:
            return False
        # Processes may have changed during the status update, so its event must not be skipped.
        return self._runner is not None or self._status_writer.is_external_change(change)

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Update the status of a Pod, or complete its deletion."""
        host_ip = self._host_ips.get(pod.spec.node_name)
        if host_ip is None:
            return None
        now = clock.now()
        addresses = PodAddresses(host_ip, await self._allocator.assign(pod, ctx))
        if pod.metadata.deletion_timestamp is not None:
            stopped = await self._runner.stop(pod, addresses, now) if self._runner is not None else None
            if stopped is None and (left := self._time_to_stop(pod)) > _MIN_DELAY:
                return Result(after=timedelta(seconds=left))
            return await self._end(pod, stopped or stop(pod, addresses, now), ctx)
        if is_pod_finished(pod):
            return None
        running = await self._runner.advance(pod, addresses, now) if self._runner is not None else None
        update = running or advance(pod, addresses, now, self._programs)
        if not await self._report(pod, update, ctx):
            return REQUEUE_SOON
        if update.requeue_at is None:
            return None
        return Result(after=max(update.requeue_at - clock.now(), timedelta(milliseconds=1)))

    def _time_to_stop(self, pod: core_v1.Pod) -> float:
        """Return the remaining seconds until the simulated containers of a terminating Pod stop."""
        if all(item.state.running is None for item in pod.status.container_statuses):
            return 0.0
        now = asyncio.get_running_loop().time()
        grace = pod.metadata.deletion_grace_period_seconds or 0
        return self._stopped_at.setdefault(pod.metadata.uid, now + min(STOP_SECONDS, grace)) - now

    async def _report(self, pod: core_v1.Pod, update: PodUpdate, ctx: Context) -> bool:
        written = await self._status_writer.write(pod, update.status, ctx)
        if written:
            self._allocator.confirm(pod.metadata.uid)
        # Simulated events are computed again with the next status; those of processes are reported only once.
        for event in update.events if written or self._runner is not None else ():
            (ctx.warn if event.warning else ctx.event)(event.reason, event.message)
        return written

    async def _end(self, pod: core_v1.Pod, update: PodUpdate, ctx: Context) -> Result | None:
        # Watchers must see the Pod not ready before it is gone.
        if not is_pod_finished(pod) and not await self._report(pod, update, ctx):
            return REQUEUE_SOON
        if not update.running and (pod.metadata.deletion_grace_period_seconds or not pod.metadata.finalizers):
            await ctx.delete(pod, grace_period_seconds=0)
        return None


class Heartbeat:
    """Refresh the status and the lease of nodes."""

    def __init__(self, nodes: Sequence[str], version: str) -> None:
        self._host_ips = host_ips(nodes)
        self._version = version
        self._due = dict.fromkeys(nodes, 0.0)

    def is_relevant(self, change: Change[core_v1.Node]) -> bool:
        """Return True for changes of these nodes."""
        return change.key.name in self._due

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Report the node as ready, and renew its lease."""
        name = node.metadata.name
        if name not in self._due:
            return None
        now = clock.now().replace(microsecond=0)
        await ctx.patch_status(node, node_status(node, self._host_ips[name], self._version, now))
        elapsed = asyncio.get_running_loop().time
        if elapsed() >= self._due[name]:
            await ctx.apply(_lease(name), owned=False)
            self._due[name] = elapsed() + RENEW.total_seconds()
        return Result(after=timedelta(seconds=max(self._due[name] - elapsed(), 0.001)))


def _lease(name: str) -> coordination_v1.Lease:
    spec = coordination_v1.LeaseSpec(
        holder_identity=name, lease_duration_seconds=LEASE_SECONDS, renew_time=MicroTime.now(UTC)
    )
    return coordination_v1.Lease(Meta(name, namespace=LEASE_NAMESPACE), spec=spec)


def node_status(node: core_v1.Node, host_ip: str, version: str, now: datetime) -> core_v1.NodeStatus:
    """Return the status of a healthy node."""
    current = {name: ("False", reason, message) for name, (reason, message) in _PRESSURES.items()}
    current["Ready"] = ("True", "KubeletReady", "kubelet is posting ready status")
    return core_v1.NodeStatus(
        capacity=NODE_CAPACITY,
        allocatable=NODE_CAPACITY,
        addresses=[
            core_v1.NodeAddress(type="InternalIP", address=host_ip),
            core_v1.NodeAddress(type="Hostname", address=node.metadata.name),
        ],
        conditions=[_condition(node, name, *words, now) for name, words in current.items()],
        node_info=core_v1.NodeSystemInfo(
            kubelet_version=version,
            kube_proxy_version="",
            container_runtime_version="kubewright://1",
            os_image="kubewright",
            kernel_version="0.0.0",
            operating_system="linux",
            architecture="amd64",
            machine_id="",
            system_uuid="",
            boot_id="",
        ),
    )


def _condition(
    node: core_v1.Node,
    type: str,  # noqa: A002 (the field's name)
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> core_v1.NodeCondition:
    before = next((item for item in node.status.conditions if item.type == type), None)
    same = before is not None and before.status == status
    heartbeat = before.last_heartbeat_time if before is not None and same else None
    return core_v1.NodeCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_heartbeat_time=heartbeat if heartbeat is not None and now - heartbeat < STATUS_INTERVAL else now,
        last_transition_time=before.last_transition_time if before is not None and same else now,
    )


def node_object(name: str = NODE) -> core_v1.Node:
    """Build the Node that a kubelet registers."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    return core_v1.Node(Meta(name, labels=labels))


def controllers(
    version: str,
    nodes: Sequence[str] = (NODE,),
    runner: PodRunner | None = None,
    programs: Mapping[str, str] = PROGRAMS,
) -> "tuple[Controller[Any], ...]":
    """Declare the kubelets of nodes, and the provisioner of their volumes."""
    kubelet, heartbeat = Kubelet(nodes, runner, programs), Heartbeat(nodes, version)
    pods = Controller(
        core_v1.Pod,
        kubelet,
        name=NAME,
        when=kubelet.is_relevant,
        watches=[source(runner.changed, map=lambda key: [key])] if runner is not None else [],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=16,
        options=Options(reporter=NAME, field_manager="kubelet", reconcile_terminating=True),
    )
    heartbeats = Controller(
        core_v1.Node,
        heartbeat,
        name="kubelet-heartbeat",
        when=heartbeat.is_relevant,
        needs=[needs(coordination_v1.Lease, "get", "create", "patch")],
        options=Options(reporter=NAME, field_manager="kubelet"),
    )
    return pods, heartbeats, *provisioner.controllers()


def kubelet_operator(version: str, nodes: Sequence[str] = (NODE,)) -> Operator:
    """Declare only kubelets, for a control plane that has all other controllers."""
    return Operator(*controllers(version, nodes), name=NAME)


async def _log_endpoint(call: EndpointRequest) -> Response:
    pod = call.api.get("", "pods", call.namespace, call.name)
    choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        return Response(204, b"", "")
    raise _not_implemented("logs")


async def _command_endpoint(call: EndpointRequest) -> Response:
    call.authorize_create()
    pod = call.api.get("", "pods", call.namespace, call.name)
    choose_container(pod, call.request.one("container"))
    if not pod["spec"].get("nodeName"):
        raise StatusError.bad_request(f"pod {call.name} does not have a host assigned")
    raise _not_implemented(call.subresource)


async def _forward_endpoint(call: EndpointRequest) -> Response:
    call.authorize_create()
    call.api.get("", "pods", call.namespace, call.name)
    raise _not_implemented("port-forward")


def _not_implemented(what: str) -> StatusError:
    return StatusError(
        501,
        "NotImplemented",
        f"Pods of this cluster are simulated, so there is no {what}: "
        "start it with `kubewright dev --pods=process` to run them as processes of this machine",
    )


POD_ENDPOINTS: Mapping[str, SubresourceEndpoint] = {
    "log": _log_endpoint,
    "exec": _command_endpoint,
    "attach": _command_endpoint,
    "portforward": _forward_endpoint,
}
