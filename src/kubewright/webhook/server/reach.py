"""Detect whether and how the API server reaches the webhooks of this process."""

import asyncio
import ipaddress
import os
import socket
from typing import Any
from urllib.parse import urlsplit

from kubewright.api import Forbidden, Kind, KubewrightError, NotFound
from kubewright.client import Client, ClusterConfig
from kubewright.webhook import Reach

SLICES = Kind(
    group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices", builtin=True
)
_WAYS_OUT = (
    "Run the operator in the cluster (`kubewright deploy`), run it on a local one (`--dev`), or run it here "
    "without webhooks (`--webhook-bind-address 0`)"
)


class WebhookUnreachable(KubewrightError):
    """The API server could not reach the webhooks from its machine."""


def reach_of(config: ClusterConfig) -> Reach:
    """Return how the API server reaches this process: by URL on this machine, through the Service in a Pod."""
    host = urlsplit(config.server).hostname or ""
    if is_loopback(host):
        return "url"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "service"
    raise WebhookUnreachable(f"the API server at {host} cannot reach webhooks on this machine. {_WAYS_OUT}")


async def confirm_reach(client: Client, host: str) -> None:
    """Raise WebhookUnreachable if this loopback address is on another machine than the API server.

    A port of this machine may lead into a container or a virtual machine, as it does with kind. The address that
    the API server advertises decides: it belongs to this machine, or the server runs elsewhere.
    """
    if not is_loopback(host):
        return
    advertised = await _advertised(client)
    if advertised and not await asyncio.to_thread(_any_of_this_machine, advertised):
        raise WebhookUnreachable(
            f"the API server is reached on this machine but lives elsewhere, at {', '.join(advertised)}: to it "
            f"{host} is another machine. If it can reach an address of this one, serve webhooks there "
            f"(`--webhook-bind-address ADDRESS:9443`). {_WAYS_OUT}"
        )


async def _advertised(client: Client) -> list[str]:
    try:
        found: list[dict[str, Any]] = list(
            await client.list(SLICES, namespace="default", labels="kubernetes.io/service-name=kubernetes")
        )
    except (Forbidden, NotFound):
        # Without permission to read it, assume that the address can be reached.
        return []
    endpoints = [endpoint for each in found for endpoint in each.get("endpoints") or ()]
    return [address for endpoint in endpoints for address in endpoint.get("addresses") or ()]


def _any_of_this_machine(addresses: list[str]) -> bool:
    return any(map(_is_of_this_machine, addresses))


def _is_of_this_machine(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return True if a host is this machine, by name or by address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
