"""The names, addresses and capacity of the nodes, and the IP addresses of their Pods."""

import ipaddress
import random
from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api import Quantity
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Index

NODE = "kubewright"
HOST_IP = "127.0.0.1"
MAX_NODES = 250
POD_NETWORK = ipaddress.IPv4Network("10.244.0.0/16")
LOOPBACK_NETWORK = ipaddress.IPv4Network("127.128.0.0/9")
"""Pod network for Pods that run as processes: programs on this machine can bind and reach these addresses."""
NODE_CAPACITY = {
    "cpu": Quantity("64"),
    "memory": Quantity("256Gi"),
    "pods": Quantity("5000"),
    "ephemeral-storage": Quantity("1Ti"),
}
pods_by_address: Index[core_v1.Pod] = Index(
    core_v1.Pod, lambda pod: [pod.status.pod_ip] if pod.status.pod_ip else []
)


def node_names(count: int) -> list[str]:
    """Return the names of the nodes of a cluster: `kubewright`, `kubewright-2`, ..."""
    if not 1 <= count <= MAX_NODES:
        raise ValueError(f"nodes must be between 1 and {MAX_NODES}, got {count}")
    return [NODE if number == 1 else f"{NODE}-{number}" for number in range(1, count + 1)]


def host_ips(nodes: Sequence[str]) -> dict[str, str]:
    """Return the address of each node: 127.0.0.1, 127.0.0.2, ..."""
    first = ipaddress.ip_address(HOST_IP)
    return {name: str(first + number) for number, name in enumerate(nodes)}


@dataclass(frozen=True, slots=True)
class PodAddresses:
    """The IP addresses that one Pod's status reports."""

    host_ip: str
    pod_ip: str


class AddressAllocator:
    """Assign addresses of the Pod network in ascending order, skipping those in use."""

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        # Clusters on one machine share its loopback network, so each starts at a random address.
        self._next = random.randrange(network.num_addresses) if network.is_loopback else 0
        self._reserved: dict[str, str] = {}

    async def assign(self, pod: core_v1.Pod, ctx: Context) -> str:
        """Return the Pod's address, or reserve a free one until `confirm` is called."""
        current = pod.status.pod_ip
        if current and ipaddress.ip_address(current) in self._network:
            return current
        if known := self._reserved.get(pod.metadata.uid):
            return known
        taken = set(self._reserved.values())
        while (address := self._next_address()) in taken or await ctx.list(
            pods_by_address, address, all_namespaces=True
        ):
            continue
        return self._reserved.setdefault(pod.metadata.uid, address)

    def _next_address(self) -> str:
        """Return the next address, excluding the first and the last of the network."""
        self._next = self._next % (self._network.num_addresses - 2) + 1
        return str(self._network[self._next])

    def confirm(self, uid: str) -> None:
        """Drop the reservation: the Pod's status holds the address now, or the Pod is gone."""
        self._reserved.pop(uid, None)
