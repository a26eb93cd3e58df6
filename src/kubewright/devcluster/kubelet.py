"""A node without a machine: it says it is ready, and tells how its Pods fare."""

import asyncio
import ipaddress
import random
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from kubewright.api import Meta, MicroTime, ObjectKey
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.client import Client
from kubewright.controller import Change, Context, Controller, Index, Operator, Options, Result, needs, source
from kubewright.devcluster import clock, storage
from kubewright.devcluster.places import HOST_IP, NODE, POD_NETWORK, ROOM, Place
from kubewright.devcluster.stages import Stage, advance, is_over, stop
from kubewright.devcluster.statuses import SOON, Reporter
from kubewright.devserver import Endpoint

NAME = "kubelet"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW = timedelta(seconds=10)
STOPPING = 0.2
"""Seconds that containers take to end: a Pod is seen on its way out, by people and by `kubectl delete`, which asks
once more after its deletion and then waits for the end of what it finds."""
REPORT = timedelta(minutes=5)
"""How often a node says again that it is ready when nothing else changes; the lease tells that it lives."""
_NOTHING = 0.001
"""Seconds that are not waited for: clocks and timers are no finer, and a delay of none is refused."""
_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}

pods_by_address: Index[core_v1.Pod] = Index(
    core_v1.Pod, lambda pod: [pod.status.pod_ip] if pod.status.pod_ip else []
)


class PodRunner(Protocol):
    """Run the containers of Pods while its context is open, as `kubewright.processpods` does."""

    network: ipaddress.IPv4Network
    endpoints: Mapping[str, Endpoint]
    """Subresources of Pods: log, exec, attach, portforward."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def serve(self, client: Client, url: str) -> None:
        """Run Pods of the cluster at `url`."""
        ...

    async def advance(self, pod: core_v1.Pod, place: Place, now: datetime) -> Stage | None:
        """Start what is to run and tell how it fares; None: nothing of this Pod runs here."""
        ...

    async def stop(self, pod: core_v1.Pod, place: Place, now: datetime) -> Stage | None:
        """End what runs and tell how it ended; a stage that still runs is asked for again."""
        ...

    def forget(self, pod: core_v1.Pod) -> None:
        """Learn that a Pod is no more."""
        ...

    def changed(self) -> AsyncIterator[ObjectKey]:
        """Tell which Pods fare differently than before."""
        ...


class Addresses:
    """Hand out the addresses of the Pod network in turn; those in use are passed over."""

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        # Clusters on one machine share its loopback network: each begins somewhere else.
        self._next = random.randrange(network.num_addresses) if network.is_loopback else 0
        self._promised: dict[str, str] = {}

    async def of(self, pod: core_v1.Pod, ctx: Context) -> str:
        """Give a Pod's address: the one it has, or a free one, promised until `kept`."""
        told = pod.status.pod_ip
        if told and ipaddress.ip_address(told) in self._network:
            return told
        if known := self._promised.get(pod.metadata.uid):
            return known
        taken = set(self._promised.values())
        while (address := self._draw()) in taken or await ctx.list(
            pods_by_address, address, all_namespaces=True
        ):
            continue
        return self._promised.setdefault(pod.metadata.uid, address)

    def _draw(self) -> str:
        """Give the next address; the first and the last of the network are nobody's."""
        self._next = self._next % (self._network.num_addresses - 2) + 1
        return str(self._network[self._next])

    def kept(self, uid: str) -> None:
        """Learn that the address is written into the Pod's status, or no longer wanted."""
        self._promised.pop(uid, None)


class Kubelet:
    """Report the stages of the Pods on one node; a runner makes those real that it can run."""

    def __init__(self, node: str, runner: PodRunner | None = None) -> None:
        self._node = node
        self._runner = runner
        self._addresses = Addresses(runner.network if runner is not None else POD_NETWORK)
        self._stopped_at: dict[str, float] = {}
        self._reporter = Reporter()

    def concerns(self, change: Change[core_v1.Pod]) -> bool:
        """Predicate: pass what happens to the Pods of this node, except for what is told of them here."""
        if change.new is None and change.before is not None:
            self._stopped_at.pop(change.before.meta.uid, None)
            self._addresses.kept(change.before.meta.uid)
        if change.new is None and change.old is not None and self._runner is not None:
            # Deleted by force: nothing is left to reconcile, but what runs must end.
            self._runner.forget(change.old)
        if change.new is None or change.new.spec.node_name != self._node:
            return False
        # What runs in earnest may have gone on while it was told of.
        return self._runner is not None or self._reporter.is_news(change)

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Move a Pod one stage on, or let it go."""
        if pod.spec.node_name != self._node:
            return None
        now = clock.now()
        place = Place(HOST_IP, await self._addresses.of(pod, ctx))
        if pod.metadata.deletion_timestamp is not None:
            ending = await self._runner.stop(pod, place, now) if self._runner is not None else None
            if ending is None and (left := self._time_to_stop(pod)) > _NOTHING:
                return Result(after=timedelta(seconds=left))
            return await self._end(pod, ending or stop(pod, place, now), ctx)
        if is_over(pod):
            return None
        running = await self._runner.advance(pod, place, now) if self._runner is not None else None
        stage = running or advance(pod, place, now)
        if not await self._report(pod, stage, ctx):
            return SOON
        if stage.again is None:
            return None
        return Result(after=max(stage.again - clock.now(), timedelta(milliseconds=1)))

    def _time_to_stop(self, pod: core_v1.Pod) -> float:
        """Tell how long the containers of a Pod that pretends to run still take to end."""
        if all(item.state.running is None for item in pod.status.container_statuses):
            return 0.0
        now = asyncio.get_running_loop().time()
        grace = pod.metadata.deletion_grace_period_seconds or 0
        return self._stopped_at.setdefault(pod.metadata.uid, now + min(STOPPING, grace)) - now

    async def _report(self, pod: core_v1.Pod, stage: Stage, ctx: Context) -> bool:
        written = await self._reporter.write(pod, stage.status, ctx)
        if written:
            self._addresses.kept(pod.metadata.uid)
        # What pretends to run is told of again; what runs in earnest is not.
        for note in stage.notes if written or self._runner is not None else ():
            (ctx.warn if note.warning else ctx.event)(note.reason, note.text)
        return written

    async def _end(self, pod: core_v1.Pod, stage: Stage, ctx: Context) -> Result | None:
        # Who watches must see that it is not ready any more before it is gone.
        if not is_over(pod) and not await self._report(pod, stage, ctx):
            return SOON
        if not stage.running and (pod.metadata.deletion_grace_period_seconds or not pod.metadata.finalizers):
            await ctx.delete(pod, grace_period_seconds=0)
        return None


class Heartbeat:
    """Keep one node and its lease alive."""

    def __init__(self, node: str, version: str) -> None:
        self._node = node
        self._version = version
        self._due = 0.0

    def concerns(self, change: Change[core_v1.Node]) -> bool:
        """Predicate: pass what happens to this node."""
        return change.key.name == self._node

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Say that the node is ready, and renew its lease."""
        if node.metadata.name != self._node:
            return None
        now = clock.now()
        await ctx.patch_status(node, node_status(node, self._version, now.replace(microsecond=0)))
        elapsed = asyncio.get_running_loop().time
        if elapsed() >= self._due:
            await ctx.apply(_lease(node.metadata.name), owned=False)
            self._due = elapsed() + RENEW.total_seconds()
        return Result(after=timedelta(seconds=max(self._due - elapsed(), 0.001)))


def _lease(name: str) -> coordination_v1.Lease:
    spec = coordination_v1.LeaseSpec(
        holder_identity=name, lease_duration_seconds=LEASE_SECONDS, renew_time=MicroTime.now(UTC)
    )
    return coordination_v1.Lease(Meta(name, namespace=LEASE_NAMESPACE), spec=spec)


def node_status(node: core_v1.Node, version: str, now: datetime) -> core_v1.NodeStatus:
    """Say what a healthy node says of itself."""
    told = {name: ("False", reason, message) for name, (reason, message) in _PRESSURES.items()}
    told["Ready"] = ("True", "KubeletReady", "kubelet is posting ready status")
    return core_v1.NodeStatus(
        capacity=ROOM,
        allocatable=ROOM,
        addresses=[
            core_v1.NodeAddress(type="InternalIP", address=HOST_IP),
            core_v1.NodeAddress(type="Hostname", address=node.metadata.name),
        ],
        conditions=[_condition(node, name, *words, now) for name, words in told.items()],
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
    told_at = before.last_heartbeat_time if before is not None and same else None
    return core_v1.NodeCondition(
        type=type,
        status=status,
        reason=reason,
        message=message,
        last_heartbeat_time=told_at if told_at is not None and now - told_at < REPORT else now,
        last_transition_time=before.last_transition_time if before is not None and same else now,
    )


def node_object(name: str = NODE) -> core_v1.Node:
    """Make the node that a kubelet registers."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    return core_v1.Node(Meta(name, labels=labels))


def controllers(
    version: str, node: str = NODE, runner: PodRunner | None = None
) -> "tuple[Controller[Any], ...]":
    """Declare the kubelet of one node, and the provisioner of its volumes."""
    kubelet, heartbeat = Kubelet(node, runner), Heartbeat(node, version)
    pods = Controller(
        core_v1.Pod,
        kubelet,
        name=NAME,
        when=kubelet.concerns,
        watches=[source(runner.changed, map=lambda key: [key])] if runner is not None else [],
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=16,
        options=Options(reporter=NAME, reconcile_terminating=True),
    )
    nodes = Controller(
        core_v1.Node,
        heartbeat,
        name="kubelet-heartbeat",
        when=heartbeat.concerns,
        needs=[needs(coordination_v1.Lease, "get", "create", "patch")],
        options=Options(reporter=NAME),
    )
    return pods, nodes, *storage.controllers()


def kubelet_operator(version: str, node: str = NODE) -> Operator:
    """Declare a kubelet alone, for a control plane that has everything else."""
    return Operator(*controllers(version, node), name=NAME)
