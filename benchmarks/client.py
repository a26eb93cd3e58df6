"""Requests a second and CPU a request of our client, against bare aiohttp doing the same on the real API server.

The bare side sends bodies that were encoded beforehand and reads responses without decoding them. Ours encodes a
typed object, sends it with credentials, timeouts, retries and warnings, and decodes the typed response.
"""

import argparse
import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
from harness import Bench, alternate_async, at_once

import kubewright as kw
from kubewright.api import encode
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import Client, load_config
from kubewright.testing.controlplane import (
    SERVERS,
    ControlPlane,
    binaries_folder,
    find_binaries,
    missing_binaries,
)

NAMESPACE = "default"
SUBJECTS = 64
DATA = {f"key-{number}": "v" * 60 for number in range(16)}
BARE = "aiohttp"

Work = Callable[[int], Awaitable[Any]]


class Cost(NamedTuple):
    """What one run came to."""

    rate: float
    cpu: float


def config_map(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(kw.Meta(name, namespace=NAMESPACE, labels={"bench": "client"}), data=DATA)


def deployment(number: int) -> dict[str, Any]:
    labels = {"app": f"web-{number}"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }


def ours(client: Client, names: "count[int]") -> dict[str, Work]:
    """Return each kind of request as an author would write it."""
    return {
        "get": lambda _: client.get(core_v1.ConfigMap, "subject", NAMESPACE),
        "create": lambda _: client.create(config_map(f"made-{next(names)}")),
        "apply": lambda number: client.apply(
            config_map(f"applied-{number % SUBJECTS}"), field_manager="bench"
        ),
        # Each at once has an object of its own: writers of one wait for each other in the server.
        "status patch": lambda number: client.patch(
            apps_v1.Deployment,
            {"status": {"observedGeneration": next(names)}},
            name=f"web-{number % SUBJECTS}",
            namespace=NAMESPACE,
            subresource="status",
        ),
    }


def bare(
    session: aiohttp.ClientSession, server: str, tls: ssl.SSLContext, names: "count[int]"
) -> dict[str, Work]:
    """Return the same requests on the HTTP library alone."""
    maps = f"{server}/api/v1/namespaces/{NAMESPACE}/configmaps"
    webs = f"{server}/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    prepared = encode(config_map("made-NUMBER"))
    applied = [encode(config_map(f"applied-{number}")) for number in range(SUBJECTS)]
    merge = {"Content-Type": "application/merge-patch+json"}
    apply = {"Content-Type": "application/apply-patch+yaml"}

    async def send(
        method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        async with session.request(method, url, data=body, headers=headers, ssl=tls) as response:
            if response.status >= 300:
                raise RuntimeError(f"{method} {url}: HTTP {response.status}")
            return await response.read()

    def created(_: int) -> Awaitable[bytes]:
        body = prepared.replace(b"NUMBER", str(next(names)).encode())
        return send("POST", maps, body, {"Content-Type": "application/json"})

    def patched(number: int) -> Awaitable[bytes]:
        body = msgspec.json.encode({"status": {"observedGeneration": next(names)}})
        return send("PATCH", f"{webs}/web-{number % SUBJECTS}/status", body, merge)

    return {
        "get": lambda _: send("GET", f"{maps}/subject"),
        "create": created,
        "apply": lambda number: send(
            "PATCH",
            f"{maps}/applied-{number % SUBJECTS}?fieldManager=bench&force=true",
            applied[number % SUBJECTS],
            apply,
        ),
        "status patch": patched,
    }


async def measure(requests: int, width: int, work: Work) -> Cost:
    started, used = time.perf_counter(), time.process_time()
    await at_once(requests, width, work)
    elapsed, cpu = time.perf_counter() - started, time.process_time() - used
    return Cost(requests / elapsed, cpu / requests * 1e6)


async def run(bench: Bench, plane: ControlPlane) -> None:
    config = await asyncio.to_thread(load_config, plane.kubeconfig)
    names = count(1)
    async with Client(config) as client:
        await client.create(config_map("subject"))
        for number in range(SUBJECTS):
            await client.create(deployment(number))
        tls = ssl.create_default_context(cadata=config.ca_data.decode())
        folder = Path(plane.directory)
        tls.load_cert_chain(folder / "kubernetes-admin.crt", folder / "kubernetes-admin.key")
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            contenders = {"kubewright": ours(client, names), BARE: bare(session, config.server, tls, names)}
            for work in contenders[BARE]:
                bench.progress(f"{work}: {bench.rounds} runs of {bench.options.requests} requests each")
                runs = await alternate_async(
                    bench.rounds,
                    {
                        name: lambda work=works[work]: measure(
                            bench.options.requests, bench.options.width, work
                        )
                        for name, works in contenders.items()
                    },
                )
                await client.delete_collection(core_v1.ConfigMap, namespace=NAMESPACE, labels="bench=client")
                await client.create(config_map("subject"))
                at = f"{work}, {bench.options.width} at once"
                rates = {name: [cost.rate for cost in costs] for name, costs in runs.items()}
                bench.row(at, "throughput", "requests/s", rates, goal=">= 0.85")
                cpus = {name: [cost.cpu for cost in costs] for name, costs in runs.items()}
                bench.row(at, "CPU", "us/request", cpus, goal="<= 1.3")


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=200, help="requests in each run (default 200)")
    parser.add_argument("--width", type=int, default=16, help="requests at once (default 16)")
    # Many short runs in turn: what else the machine does meanwhile then meets both sides alike.
    about = "our client against the HTTP library alone, on the real API server"
    bench = Bench("client", about, parser=parser, rounds=11)
    binaries = find_binaries()
    if binaries is None:
        missing = ", ".join(missing_binaries(binaries_folder(), SERVERS))
        bench.progress(f"the real API server is needed ({missing} missing): run scripts/control-plane build")
        return 1
    bench.progress("starting the API server")
    async with ControlPlane(binaries, controllers=False) as plane:
        await run(bench, plane)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
