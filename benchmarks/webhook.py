"""Admission through a real API server: our webhook server against one written on controller-runtime.

Each create passes one defaulting webhook, which changes the object, and one validating webhook. Creates are dry runs:
nothing is stored, so what differs between two runs is the webhook server alone.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from cold_cache import sample
from harness import OURS, Bench, alternate_async, at_once
from kubewright_programs.coldcache import Sample
from kubewright_programs.webhook import completed, sensible
from support.programs import KUBEWRIGHT, Command, Running, go_program, running
from support.server import install, real_server

from kubewright.api import NotFound
from kubewright.api.builtin import admissionregistration_v1
from kubewright.client import Client
from kubewright.testing import free_port
from kubewright.webhook import Endpoints, Lifetimes, WebhookNames
from kubewright.webhook.certificates.authority import begin, utc_now
from kubewright.webhook.configurations import ByUrl, configurations

GO = "controller-runtime"
NAMES = WebhookNames("bench")


class Figures(NamedTuple):
    """What one run came to."""

    rate: float
    p50: float
    p99: float
    cpu: float


class Contender(NamedTuple):
    """A webhook server at work."""

    program: Running
    port: int


async def listening(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.05)


async def register(client: Client, port: int, ca_bundle: bytes) -> None:
    """Make the API server call this port, and wait until it does."""
    place = ByUrl(f"https://127.0.0.1:{port}", ca_bundle)
    for document in configurations(Endpoints([sensible, completed]), NAMES, place):
        await client.apply(document, field_manager="bench")
    async with asyncio.timeout(30):
        while (await create(client, 0)).spec.settings.get("tier") != "standard":
            pass
    # The configuration of the contender before may be called for a moment longer.
    await asyncio.sleep(0.5)


async def unregister(client: Client) -> None:
    for kind, name in (
        (admissionregistration_v1.MutatingWebhookConfiguration, NAMES.mutating),
        (admissionregistration_v1.ValidatingWebhookConfiguration, NAMES.validating),
    ):
        try:
            await client.delete(kind, name)
        except NotFound:
            continue


async def create(client: Client, number: int) -> Sample:
    return await client.create(sample(number), dry_run=True)


async def measure(client: Client, contender: Contender, requests: int, width: int) -> Figures:
    taken: list[float] = []

    async def one(number: int) -> None:
        began = time.perf_counter()
        await create(client, number)
        taken.append(time.perf_counter() - began)

    await at_once(width * 4, width, one)
    taken.clear()
    before, began = contender.program.usage.cpu, time.perf_counter()
    await at_once(requests, width, one)
    elapsed, used = time.perf_counter() - began, contender.program.usage.cpu - before
    cuts = statistics.quantiles(taken, n=100)
    return Figures(requests / elapsed, cuts[49] * 1e3, cuts[98] * 1e3, used / requests * 1e6)


async def start(bench: Bench, stack: AsyncExitStack, certificates: Path, logs: Path) -> dict[str, Contender]:
    go = await go_program(bench, "webhook")
    commands: dict[str, Callable[[int], Command]] = {
        OURS: lambda port: [
            "env",
            f"PYTHONPATH={KUBEWRIGHT.parent}",
            sys.executable,
            KUBEWRIGHT / "webhook.py",
            str(port),
            certificates,
        ]
    }
    if go is not None:
        commands[GO] = lambda port: [go, str(port), certificates]
    found: dict[str, Contender] = {}
    for name, command in commands.items():
        port = free_port()
        program = await stack.enter_async_context(running(command(port), logs / f"{name}.log"))
        await listening(port)
        found[name] = Contender(program, port)
    return found


async def run(bench: Bench, client: Client, folder: Path) -> None:
    bundle = begin(["127.0.0.1"], Lifetimes(), utc_now())
    for name, content in (("tls.crt", bundle.certificate), ("tls.key", bundle.key)):
        (folder / name).write_bytes(content)
    async with AsyncExitStack() as stack:
        contenders = await start(bench, stack, folder, folder)
        await install(client, Sample)

        def at_work(contender: Contender, width: int) -> Callable[[], Awaitable[Figures]]:
            async def work() -> Figures:
                await register(client, contender.port, bundle.ca_bundle)
                return await measure(client, contender, bench.options.requests, width)

            return work

        for width in (1, bench.options.width):
            bench.progress(f"{bench.rounds} runs of {bench.options.requests} creates each, {width} at once")
            runs = await alternate_async(
                bench.rounds, {name: at_work(each, width) for name, each in contenders.items()}
            )
            rows(bench, f"create of 2 KB through two webhooks, {width} at once", runs)
        await unregister(client)


def rows(bench: Bench, work: str, runs: dict[str, list[Figures]]) -> None:
    def row(metric: str, unit: str, name: str, goal: str = "") -> None:
        taken: dict[str, Any] = {
            contender: [getattr(each, name) for each in found] for contender, found in runs.items()
        }
        bench.row(work, metric, unit, taken, goal=goal)

    row("throughput", "creates/s", "rate")
    row("p50", "ms", "p50", "<= 1.3")
    row("p99", "ms", "p99")
    row("CPU of the webhook server", "us/create", "cpu", "<= 1.5")


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=1500, help="creates in each run (default 1500)")
    parser.add_argument("--width", type=int, default=8, help="creates at once in the second part (default 8)")
    bench = Bench("webhook", "admission through webhooks on the real API server", parser=parser)
    with TemporaryDirectory() as folder:
        async with real_server(bench) as (_, client):
            await run(bench, client, Path(folder))
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
