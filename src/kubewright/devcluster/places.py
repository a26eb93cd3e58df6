"""Where Pods are: the node's room and address, the networks of their own addresses."""

import ipaddress
from dataclasses import dataclass

from kubewright.api import Quantity

NODE = "kubewright"
HOST_IP = "127.0.0.1"
POD_NETWORK = ipaddress.IPv4Network("10.244.0.0/16")
LOOPBACK_NETWORK = ipaddress.IPv4Network("127.128.0.0/9")
"""Addresses of Pods whose processes run on this machine: there they can be bound and reached."""
ROOM = {
    "cpu": Quantity("64"),
    "memory": Quantity("256Gi"),
    "pods": Quantity("5000"),
    "ephemeral-storage": Quantity("1Ti"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one Pod runs."""

    host_ip: str
    pod_ip: str
