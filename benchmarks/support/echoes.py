"""The Echo operators: the programs, their resources, and a watch of what they did."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from kubewright_programs.echo import Echo, EchoSpec

from kubewright.api import Meta, Object, parse
from kubewright.api.builtin import core_v1
from kubewright.client import Client
from support.programs import (
    Command,
    Noting,
    Running,
    go_program,
    kopf_command,
    kubewright_command,
    rust_program,
)
from support.server import NAMESPACE, each

OURS = "kubewright"
CREATE_OR_UPDATE = "controller-runtime"
APPLY = "controller-runtime-apply"
CONSISTENT = "controller-runtime-read-your-writes"
KUBE_RS = "kube-rs"
KOPF = "kopf"
FRAMEWORKS = (CREATE_OR_UPDATE, KUBE_RS, KOPF)
"""Each peer once; PEERS has their variants too."""
PEERS = (*FRAMEWORKS, APPLY, CONSISTENT)
DEFAULT_TIMEOUT = 600.0


async def echo_operators(bench: Noting, kubeconfig: Path) -> dict[str, Command]:
    """Return how each chosen contender's operator is run; those that cannot be are noted and left out."""
    found: dict[str, Command] = {OURS: kubewright_command("echo", kubeconfig)}
    if any(bench.includes(name) for name in (CREATE_OR_UPDATE, APPLY, CONSISTENT)):
        go = await go_program(bench, "echo")
        if go is not None:
            found |= {
                CREATE_OR_UPDATE: [go, kubeconfig],
                APPLY: [go, kubeconfig, "apply"],
                CONSISTENT: [go, kubeconfig, "read-your-writes"],
            }
    if bench.includes(KUBE_RS):
        rust = await rust_program(bench, "echo")
        if rust is not None:
            found[KUBE_RS] = [rust, kubeconfig]
    if bench.includes(KOPF):
        kopf = kopf_command(bench, "echo", kubeconfig)
        if kopf is not None:
            found[KOPF] = kopf
    return {name: command for name, command in found.items() if bench.includes(name)}


def an_echo(name: str) -> Echo:
    """Make one resource."""
    return Echo(
        Meta(name, namespace=NAMESPACE, labels={"bench": "echo"}), spec=EchoSpec(message=f"I am {name}")
    )


async def create_echoes(client: Client, numbers: Iterable[int]) -> None:
    """Create numbered resources, many at a time."""
    await each((an_echo(f"echo-{number:06}") for number in numbers), client.create)


async def remove_echoes(client: Client) -> None:
    """Remove all resources and what was made for them; no operator runs meanwhile."""
    for kind in (Echo, core_v1.ConfigMap):
        await client.delete_collection(kind, namespace=NAMESPACE, labels="bench=echo")


class Observations:
    """When each object of a kind was first seen in the state that is waited for."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._changed = asyncio.Event()

    def add(self, name: str) -> None:
        """Note that an object is as it should be."""
        if name not in self.at:
            self.at[name] = time.perf_counter()
            self._changed.set()

    async def wait(self, *, count: int = 0, name: str = "", program: Running | None = None) -> None:
        """Wait until so many, or the one named, have been seen."""
        async with asyncio.timeout(DEFAULT_TIMEOUT):
            while len(self.at) < count or (name and name not in self.at):
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), 1.0)
                if program is not None:
                    program.check()


@contextlib.asynccontextmanager
async def observing(
    client: Client, kind: type[Object], *, echoed: bool
) -> AsyncGenerator[Observations, None]:
    """Watch a kind for the length of the block; with `echoed`, count only objects that have their status."""
    seen = Observations()
    ready = asyncio.Event()

    async def follow() -> None:
        events = client.watch(
            kind, namespace=NAMESPACE, labels="bench=echo", initial_events=True, timeout=3600.0
        )
        async for event in events:
            if event.type == "BOOKMARK":
                ready.set()
            elif event.type != "DELETED" and (
                not echoed or parse(event.object.raw).get("status", {}).get("echoed")
            ):
                seen.add(event.object.meta.name)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(follow())
        await ready.wait()
        yield seen
        watching.cancel()
