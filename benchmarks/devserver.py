"""The embedded API server beside kube-apiserver with etcd: what starting, holding and asking it costs.

One load generator, in a process apart from both servers, sends prepared bytes over TLS and looks into nothing, so
that the servers are what is measured. The real server runs without controllers, as the embedded one does here.
"""

import argparse
import asyncio
import base64
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cold_cache import sample
from harness import OURS, Bench, alternate_async
from kubectl_share import first_get, own_start, waited
from kubewright_programs.coldcache import Sample
from kubewright_programs.connections import Load, prepared
from support.programs import environment

from kubewright.api import encode
from kubewright.schema import crd
from kubewright.testing.controlplane import ControlPlane, find_binaries

HERE = Path(__file__).parent
PROGRAM = HERE / "kubewright_programs" / "devserver.py"
REAL = "kube-apiserver"
KUBECTL = "kubectl"
KUBECTL_ROUNDS = 15
SAMPLES = "/apis/bench.kubewright.dev/v1/namespaces/default/samples"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Accept": "application/vnd.kubernetes.protobuf"}
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
WIDTH = 16
SAMPLED = 1000
PARTS = ("starting", "kubectl", "asking", "holding", "growing")


def load_of(kubeconfig: Path) -> Load:
    """Make the load generator for the administrator of a kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cadata=_pem(cluster, "certificate-authority").decode())
    with tempfile.NamedTemporaryFile() as file:
        file.write(_pem(user, "client-certificate") + _pem(user, "client-key"))
        file.flush()
        tls.load_cert_chain(file.name)
    address = urlsplit(cluster["server"])
    return Load(address.hostname or "", address.port or 443, tls)


def _pem(holder: dict[str, Any], name: str) -> bytes:
    if f"{name}-data" in holder:
        return base64.b64decode(holder[f"{name}-data"])
    return Path(holder[name]).read_bytes()


def resident(pids: Sequence[int]) -> float:
    """Sum the resident memory of processes, in MB."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def children(of: int, *names: str) -> list[int]:
    """Find the processes of these names that a process started."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            if int(fields[2].split()[1]) == of and fields[0].partition("(")[2] in names:
                found.append(int(entry.name))
    return found


@dataclass
class Contender:
    """A running server, how requests are sent to it, and its processes."""

    load: Load
    kubeconfig: Path
    pids: list[int]
    names: "count[int]" = field(default_factory=count)


@asynccontextmanager
async def embedded(folder: Path) -> AsyncGenerator[Contender, None]:
    """Run the embedded server as a process."""
    kubeconfig = folder / f"embedded-{time.monotonic_ns()}.json"
    async with running(kubeconfig, sys.executable, PROGRAM, kubeconfig) as server:
        yield server


@asynccontextmanager
async def dev_cluster(folder: Path) -> AsyncGenerator[Contender, None]:
    """Run `kubewright dev`, controllers and all."""
    kubeconfig = folder / f"dev-{time.monotonic_ns()}.json"
    command = Path(sys.executable).with_name("kubewright")
    async with running(kubeconfig, command, "dev", "--kubeconfig", kubeconfig) as server:
        yield server


@asynccontextmanager
async def running(kubeconfig: Path, *command: str | Path) -> AsyncGenerator[Contender, None]:
    """Run a program until it says in a line that it is ready, with compiled modules as an installation has them."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield Contender(load_of(kubeconfig), kubeconfig, [process.pid])
    finally:
        process.terminate()
        await process.wait()


Start = Callable[[Path], AbstractAsyncContextManager[Contender]]


async def first_answer(folder: Path, start: Start = embedded) -> float:
    """Start a server and send one request; return the seconds from the start of its process."""
    started = time.perf_counter()
    async with start(folder) as server:
        connection = await server.load.connect()
        status = await connection.send(prepared("GET", "/api/v1/namespaces/default"))
        elapsed = time.perf_counter() - started
        connection.close()
        assert status == 200, status
    return elapsed


async def first_answer_of_real(plane: ControlPlane) -> float:
    """Do the same with kube-apiserver; its etcd is there already."""
    await plane.stop_api_server()
    started = time.perf_counter()
    await plane.start_api_server()
    return time.perf_counter() - started


async def warm_starts(times: int) -> list[float]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, PROGRAM, "--warm", str(times)),
        stdout=asyncio.subprocess.PIPE,
        env=environment(),
    )
    output, _ = await process.communicate()
    return [seconds * 1000 for seconds in json.loads(output)]


async def install(server: Contender) -> None:
    """Install the kind the requests are about."""
    connection = await server.load.connect()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status = await connection.send(prepared("POST", path, json.dumps(crd(Sample)).encode(), JSON))
    assert status == 201, bytes(connection.body)
    async with asyncio.timeout(30):
        while await connection.send(prepared("GET", SAMPLES)) != 200:
            await asyncio.sleep(0.05)
    connection.close()


def deployment(number: int) -> bytes:
    """Return a Deployment as an operator applies it."""
    labels = {"app": f"app-{number}"}
    container = {
        "name": "main",
        "image": "example.com/image:1",
        "env": [{"name": f"KEY_{key}", "value": "value"} for key in range(8)],
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
    }
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return json.dumps({"metadata": {"name": f"app-{number:06}"}, "spec": spec}).encode()


def creates(server: Contender) -> Callable[[int], bytes]:
    template = encode(sample(0)).replace(b"sample-000000", b"NAME")
    return lambda _: prepared(
        "POST", SAMPLES, template.replace(b"NAME", f"made-{next(server.names):07}".encode()), JSON
    )


def requests(server: Contender) -> dict[str, tuple[int, Callable[[int], bytes], str]]:
    """Return each kind of request with how many to send and its goal."""
    applied = [encode(sample(number)) for number in range(64)]

    def status_patch(number: int) -> bytes:
        body = json.dumps({"status": {"ready": next(server.names)}}).encode()
        return prepared("PATCH", f"{SAMPLES}/sample-{number % 64:06}/status", body, MERGE)

    def apply(number: int) -> bytes:
        body = applied[number % 64].replace(b'"replicas":', f'"replicas":{next(server.names)}'.encode())
        path = f"{SAMPLES}/sample-{number % 64:06}?fieldManager=bench&force=true"
        return prepared("PATCH", path, body, APPLY)

    one = prepared("GET", f"{SAMPLES}/sample-000001")
    page = prepared("GET", f"{SAMPLES}?limit=500")
    deployments = prepared("GET", DEPLOYMENTS)
    messages = prepared("GET", DEPLOYMENTS, b"", PROTOBUF)
    return {
        "get": (2000, lambda _: one, ">= 1.2"),
        "list of 500": (40, lambda _: page, ">= 3"),
        "list of 500 Deployments in JSON": (40, lambda _: deployments, ""),
        "list of 500 Deployments in protobuf": (40, lambda _: messages, ""),
        "create": (1000, creates(server), ">= 1.2"),
        "status patch": (1000, status_patch, ">= 0.8"),
        "apply": (1000, apply, ">= 0.8"),
    }


async def latency(server: Contender, times: int) -> float:
    """Return the mean time of sequential GETs, in microseconds."""
    request = prepared("GET", f"{SAMPLES}/sample-000001")
    return 1e6 / await server.load.rate(times, 1, lambda _: request)


async def fan_out(server: Contender, watchers: int, events: int) -> float:
    """Return how many events per second reach the watchers, from the first write to the last line read."""
    connection = await server.load.connect()
    await connection.send(prepared("GET", f"{SAMPLES}?limit=1"))
    revision = json.loads(connection.body)["metadata"]["resourceVersion"]
    left = watchers * events
    done = asyncio.get_running_loop().create_future()

    def count_lines(lines: int) -> None:
        nonlocal left
        left -= lines
        if left <= 0 and not done.done():
            done.set_result(None)

    following = [await server.load.connect() for _ in range(watchers)]
    for follower in following:
        follower.follow(prepared("GET", f"{SAMPLES}?watch=1&resourceVersion={revision}"), count_lines)
    await asyncio.sleep(0.5)
    started = time.perf_counter()
    async with asyncio.timeout(120):
        await server.load.rate(events, WIDTH, requests(server)["status patch"][1])
        await done
    elapsed = time.perf_counter() - started
    for each in (connection, *following):
        each.close()
    return watchers * events / elapsed


Each = Callable[[Contender], Awaitable[float]]


async def compare(bench: Bench, servers: dict[str, Contender], run: Each) -> dict[str, list[float]]:
    return await alternate_async(
        bench.rounds, {name: lambda server=server: run(server) for name, server in servers.items()}
    )


async def starting(bench: Bench, plane: ControlPlane, folder: Path) -> None:
    bench.progress("starting")
    runs = await alternate_async(
        bench.rounds, {OURS: lambda: first_answer(folder), REAL: lambda: first_answer_of_real(plane)}
    )
    bench.row("process start to first response", "time", "s", runs, goal="<= 0.2")
    bench.row("process start to first response", "time", "s", {OURS: runs[OURS]}, goal="<= 0.5 s")
    whole = await alternate_async(bench.rounds, {OURS: lambda: first_answer(folder, dev_cluster)})
    bench.row("`kubewright dev` with its controllers", "time", "s", whole)
    bench.row("Server() in a warm interpreter", "time", "ms", {OURS: await warm_starts(10)}, goal="<= 60 ms")


async def asking(bench: Bench, servers: dict[str, Contender]) -> None:
    for server in servers.values():
        await install(server)
        objects = [encode(sample(number)) for number in range(500)]
        await server.load.rate(500, 8, lambda number: prepared("POST", SAMPLES, objects[number], JSON))  # noqa: B023 (used at once)
        await server.load.rate(500, 8, lambda number: prepared("POST", DEPLOYMENTS, deployment(number), JSON))
    bench.progress("one GET after the other")
    bench.row(
        "GET, one after the other",
        "time",
        "us",
        await compare(bench, servers, lambda server: latency(server, 500)),
    )
    for work, (_, _, goal) in requests(servers[OURS]).items():
        bench.progress(f"{work}, {WIDTH} at once")

        async def rate(server: Contender, work: str = work) -> float:
            number, request, _ = requests(server)[work]
            return await server.load.rate(number, WIDTH, request)

        bench.row(
            f"{work}, {WIDTH} at once",
            "throughput",
            "requests/s",
            await compare(bench, servers, rate),
            goal=goal,
        )
    bench.progress("watch fan-out")
    bench.row(
        "100 watchers, 1,000 events",
        "delivered",
        "events/s",
        await compare(bench, servers, lambda server: fan_out(server, 100, 1000)),
    )


async def holding(bench: Bench, plane: ControlPlane, folder: Path) -> None:
    bench.progress("memory with 10,000 custom resources")
    pids = children(plane_parent(), "etcd", "kube-apiserver")
    real = Contender(load_of(plane.kubeconfig), plane.kubeconfig, pids)
    empty: dict[str, list[float]] = {OURS: [], REAL: []}
    full: dict[str, list[float]] = {OURS: [], REAL: []}
    # The real server cannot be emptied, so that it is filled once; its figure is read as often as ours.
    for number in range(bench.rounds):
        async with embedded(folder) as ours:
            empty[OURS].append(resident(ours.pids))
            await install(ours)
            await ours.load.rate(10_000, WIDTH, creates(ours))
            full[OURS].append(resident(ours.pids))
        if number == 0:
            empty[REAL] = [resident(pids)] * bench.rounds
            await install(real)
            await real.load.rate(10_000, WIDTH, creates(real))
        full[REAL].append(resident(pids))
    bench.row("after the start", "RSS", "MB", empty)
    bench.row("after the start", "RSS", "MB", {OURS: empty[OURS]}, goal="< 80 MB")
    bench.row("10,000 custom resources of 2 KB", "RSS", "MB", full, goal="<= 0.6")


def plane_parent() -> int:
    return int(Path("/proc/self/stat").read_text().split()[0])


async def kubectl_asks(bench: Bench, kubectl: Path, servers: dict[str, Contender]) -> None:
    """Time kubectl's first `get`, what of it is kubectl's own on any server, and how long it waits for responses."""
    bench.progress("kubectl")
    rounds = max(bench.rounds, KUBECTL_ROUNDS)
    work: dict[str, Callable[[], Awaitable[float]]] = {KUBECTL: lambda: own_start(kubectl)}
    for name, server in servers.items():
        work[name] = lambda server=server: first_get(kubectl, server.kubeconfig)
        work[f"{name} waits"] = lambda server=server: waited(kubectl, server.kubeconfig)
    found = await alternate_async(rounds, work)
    whole = {name: found[name] for name in servers}
    bench.row("kubectl's first get, empty cache", "time", "ms", whole, goal="<= 0.5")
    bench.row("kubectl version --client, no server", "time", "ms", {KUBECTL: found[KUBECTL]})
    floor = statistics.median(found[KUBECTL])
    beyond = {name: [run - floor for run in runs] for name, runs in whole.items()}
    bench.row("the first get less kubectl alone", "time", "ms", beyond)
    waits = {name: found[f"{name} waits"] for name in servers}
    bench.row("time that it waits for responses, as a relay sees it", "time", "ms", waits, goal="<= 0.5")


def processor_time(pid: int) -> float:
    """Return the CPU time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def cost(server: Contender, number: int, request: Callable[[int], bytes]) -> float:
    """Return the server's CPU time for one request, in microseconds: load on the machine affects it least."""
    before = processor_time(server.pids[0])
    await server.load.rate(number, WIDTH, request)
    return (processor_time(server.pids[0]) - before) / number * 1e6


async def growing(bench: Bench, folder: Path) -> None:
    """Compare what creates and gets cost among 1,000 objects with what they cost among many."""
    many: int = bench.options.growth
    bench.progress(f"growth to {many:,} objects")
    async with embedded(folder) as server:
        await install(server)
        figures: dict[str, dict[str, list[float]]] = {"create": {}, "get": {}}
        made = 0
        for at, name in ((1000, "among 1,000"), (many, OURS)):
            await server.load.rate(at - made, WIDTH, creates(server))
            figures["get"][name] = []
            figures["create"][name] = []
            for _ in range(bench.rounds):
                read = prepared("GET", f"{SAMPLES}/made-{at // 2:07}")
                figures["get"][name].append(await cost(server, SAMPLED, lambda _, read=read: read))
                figures["create"][name].append(await cost(server, SAMPLED, creates(server)))
            made = at + bench.rounds * SAMPLED
    for work, measured in figures.items():
        bench.row(f"{work} among {many:,} objects", "processor time", "us", measured, goal="<= 1.3")


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--only", choices=PARTS, nargs="+", default=PARTS, help="measure only these parts (default all)"
    )
    parser.add_argument("--growth", type=int, default=100_000, help="objects to grow to (default 100,000)")
    bench = Bench("devserver", "the embedded API server beside kube-apiserver with etcd", parser=parser)
    binaries = await asyncio.to_thread(find_binaries)
    if binaries is None:
        bench.progress("the real API server is needed: run scripts/control-plane build")
        return 1
    only: list[str] = bench.options.only
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"starting", "kubectl", "asking"} & set(only):
            async with ControlPlane(binaries, controllers=False) as plane:
                if "starting" in only:
                    await starting(bench, plane, folder)
                async with embedded(folder) as ours:
                    servers = {OURS: ours, REAL: Contender(load_of(plane.kubeconfig), plane.kubeconfig, [])}
                    if "kubectl" in only:
                        await kubectl_asks(bench, binaries / "kubectl", servers)
                    if "asking" in only:
                        await asking(bench, servers)
        if "holding" in only:
            # A fresh one, so that neither holds what the requests above left behind.
            async with ControlPlane(binaries, controllers=False) as plane:
                await holding(bench, plane, folder)
        if "growing" in only:
            await growing(bench, folder)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
