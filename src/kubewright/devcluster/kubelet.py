"""A node without a machine: it says it is ready, and tells how its Pods fare."""

import ipaddress
from datetime import UTC, datetime, timedelta

from kubewright.api import Meta, MicroTime, Quantity
from kubewright.api.builtin import coordination_v1, core_v1
from kubewright.controller import Context, Controller, Operator, Result, Scope, needs
from kubewright.devcluster.stages import Place, advance

NODE = "kubewright"
HOST_IP = "127.0.0.1"
POD_NETWORK = ipaddress.ip_network("10.244.0.0/16")
HEARTBEAT = timedelta(seconds=10)
ROOM = {
    "cpu": Quantity("64"),
    "memory": Quantity("256Gi"),
    "pods": Quantity("5000"),
    "ephemeral-storage": Quantity("1Ti"),
}


class Addresses:
    """Give each Pod an address of its own, by its uid."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._free = POD_NETWORK.hosts()

    def of(self, pod: core_v1.Pod) -> str:
        """Give a Pod's address: the one it has, or a new one."""
        known = pod.status.pod_ip or self._taken.get(pod.metadata.uid)
        if not known:
            used = set(self._taken.values())
            known = next(str(host) for host in self._free if str(host) not in used)
        self._taken[pod.metadata.uid] = known
        return known

    def release(self, uid: str) -> None:
        """Take an address back."""
        self._taken.pop(uid, None)


class Kubelet:
    """Report the stages of the Pods on one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._addresses = Addresses()

    async def reconcile(self, pod: core_v1.Pod, ctx: Context) -> Result | None:
        """Move a Pod one stage on, or let it go."""
        if pod.spec.node_name != self._node:
            return None
        if pod.metadata.deletion_timestamp is not None:
            await self._end(pod, ctx)
            return None
        place = Place(HOST_IP, self._addresses.of(pod))
        stage = advance(pod, place, datetime.now(UTC).replace(microsecond=0))
        await ctx.patch_status(pod, stage.status)
        for note in stage.notes:
            (ctx.warn if note.warning else ctx.event)(note.reason, note.text)
        return Result(after=stage.again) if stage.again else None

    async def _end(self, pod: core_v1.Pod, ctx: Context) -> None:
        for container in pod.spec.containers:
            ctx.event("Killing", f"Stopping container {container.name}")
        self._addresses.release(pod.metadata.uid)
        await ctx.delete(pod, grace_period_seconds=0)


class Heartbeat:
    """Keep one node and its lease alive."""

    def __init__(self, version: str) -> None:
        self._version = version

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Say that the node is ready, and renew its lease."""
        now = datetime.now(UTC)
        await ctx.patch_status(node, node_status(node, self._version, now.replace(microsecond=0)))
        name = node.metadata.name
        lease = coordination_v1.Lease(
            Meta(name, namespace="kube-node-lease"),
            spec=coordination_v1.LeaseSpec(
                holder_identity=name, lease_duration_seconds=40, renew_time=MicroTime.now(UTC)
            ),
        )
        await ctx.apply(lease, owned=False)
        return Result(after=HEARTBEAT)


def node_status(node: core_v1.Node, version: str, now: datetime) -> core_v1.NodeStatus:
    """Say what a healthy node says of itself."""
    problems = {
        "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    }
    told = {name: ("False", reason, message) for name, (reason, message) in problems.items()}
    told["Ready"] = ("True", "KubeletReady", "kubelet is posting ready status")
    before = {item.type: item for item in node.status.conditions}
    conditions: list[core_v1.NodeCondition] = []
    for name, (status, reason, message) in told.items():
        known = before.get(name)
        same = known is not None and known.status == status
        conditions.append(
            core_v1.NodeCondition(
                type=name,
                status=status,
                reason=reason,
                message=message,
                last_heartbeat_time=known.last_heartbeat_time if known is not None and same else now,
                last_transition_time=known.last_transition_time if known is not None and same else now,
            )
        )
    return core_v1.NodeStatus(
        capacity=ROOM,
        allocatable=ROOM,
        addresses=[
            core_v1.NodeAddress(type="InternalIP", address=HOST_IP),
            core_v1.NodeAddress(type="Hostname", address=node.metadata.name),
        ],
        conditions=conditions,
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


def controllers(version: str, node: str = NODE) -> tuple[Controller[core_v1.Pod], Controller[core_v1.Node]]:
    """Declare the kubelet of one node."""
    pods = Controller(
        core_v1.Pod,
        Kubelet(node),
        name="kubelet",
        scope=Scope(fields=f"spec.nodeName={node}"),
        needs=[needs(core_v1.Pod, "delete")],
        concurrency=16,
    )
    heartbeat = Controller(
        core_v1.Node,
        Heartbeat(version),
        name="kubelet-heartbeat",
        scope=Scope(fields=f"metadata.name={node}"),
        needs=[needs(coordination_v1.Lease, "get", "create", "patch")],
    )
    return pods, heartbeat


def kubelet_operator(version: str, node: str = NODE) -> Operator:
    """Declare a kubelet alone, for a control plane that has everything else."""
    return Operator(*controllers(version, node), name="kubelet")
