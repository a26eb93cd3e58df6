"""The real API server that all contenders use, and its request counts."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from kubewright.api import NotFound, Object
from kubewright.client import Client, load_config, requests
from kubewright.schema import crd
from kubewright.testing.controlplane import (
    SERVERS,
    ControlPlane,
    binaries_folder,
    find_binaries,
    missing_binaries,
)
from support.programs import Noting

WRITERS = 32
NAMESPACE = "default"
_REQUESTS = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@asynccontextmanager
async def real_server(bench: Noting) -> AsyncGenerator[tuple[ControlPlane, Client], None]:
    """Start etcd and kube-apiserver, with no other controllers, and a client as their admin."""
    binaries = find_binaries()
    if binaries is None:
        missing = ", ".join(missing_binaries(binaries_folder(), SERVERS))
        raise SystemExit(
            f"the real API server is needed ({missing} missing): run scripts/control-plane build"
        )
    bench.progress("starting the API server")
    async with ControlPlane(binaries, controllers=False) as plane:
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        async with Client(config, field_manager="bench") as client:
            yield plane, client


async def install(client: Client, kind: type[Object]) -> None:
    """Create the CRD of a kind and wait until it is served."""
    await client.create(crd(kind))
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(kind, limit=1)
                return
            except NotFound:
                await asyncio.sleep(0.05)


async def each(items: Iterable[Any], work: Callable[[Any], Awaitable[Any]], width: int = WRITERS) -> None:
    """Do the work on all items, so many at a time."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())


async def requests_served(client: Client) -> Counter[tuple[str, str]]:
    """Return how many requests the API server handled, by verb and resource, as its own metrics count them."""
    response = await client.raw(requests.get_path("/metrics", accept="text/plain"))
    counted: Counter[tuple[str, str]] = Counter()
    for labels, value in _REQUESTS.findall(response.body.decode()):
        named = dict(_LABEL.findall(labels))
        counted[named["verb"], named["resource"]] += int(float(value))
    return counted
