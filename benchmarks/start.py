"""The start of an operator: CPU and memory until it has reconciled one resource, with nothing in the cluster and with 1,000 in place.

kubewright runs as in a Pod: with the packages of an image and nothing else, with a ServiceAccount's token, and with the
command of the image. Metrics and probes are off, as the peers' are. Each start gets one more resource, the probe, which is
created before it; CPU is counted from the start of the process until the probe's status is seen from outside.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness import OURS, Bench, alternate_async
from kubewright_programs.echo import Echo
from support.echoes import (
    CREATE_OR_UPDATE,
    FRAMEWORKS,
    an_echo,
    create_echoes,
    echo_operators,
    observing,
    remove_echoes,
)
from support.image import RUN, add_python_option, image_python, interpreters
from support.programs import KUBEWRIGHT, Command, column, running
from support.server import NAMESPACE, install, real_server

from kubewright.api import Meta
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.client import Client, ClusterConfig
from kubewright.client.kubeconfig import SERVICE_ACCOUNT

WITH_KUBECONFIG = "kubewright-with-kubeconfig"
PROBE = "the-probe"
ACCOUNT = "bench"
OPTIONS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
GOAL = "<= 0.15 s"


class Figures(NamedTuple):
    """What one start came to."""

    cpu: float
    seconds: float
    peak: float


async def mount_account(client: Client, config: ClusterConfig, folder: Path) -> dict[str, str]:
    """Create a ServiceAccount with all rights, write what a Pod finds of it, and return the Pod's environment."""
    await client.create(core_v1.ServiceAccount(Meta(ACCOUNT, namespace=NAMESPACE)))
    subject = rbac_v1.Subject(kind="ServiceAccount", name=ACCOUNT, namespace=NAMESPACE)
    role = rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin")
    await client.create(rbac_v1.ClusterRoleBinding(Meta(ACCOUNT), role_ref=role, subjects=[subject]))
    token = await client.token_request(ACCOUNT, NAMESPACE)
    mounted = folder / SERVICE_ACCOUNT
    mounted.mkdir(parents=True)
    (mounted / "token").write_text(token.token)
    (mounted / "ca.crt").write_bytes(config.ca_data)
    (mounted / "namespace").write_text(NAMESPACE)
    host, _, port = config.server.removeprefix("https://").rpartition(":")
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "CONTAINER_SANDBOX_MOUNT_POINT": str(folder),
        "KUBECONFIG": "",
        "HOME": str(folder),
    }


def in_a_pod(python: Path, variables: dict[str, str]) -> Command:
    """Return the command of an image's entry point, with the environment of a Pod."""
    program = KUBEWRIGHT / "echo.py"
    settings = [f"{name}={value}" for name, value in variables.items()]
    return ["env", *settings, python, *RUN, "run", program, *OPTIONS]


def starting(client: Client, command: Command, log: Path, *, again: bool) -> Callable[[], Awaitable[Figures]]:
    """Return a measured start; with `again`, one that follows a start of the same program, which puts all resources in place."""

    async def start() -> Figures:
        for kind in (Echo, core_v1.ConfigMap):
            await client.delete_collection(kind, namespace=NAMESPACE, fields=f"metadata.name={PROBE}")
        await client.create(an_echo(PROBE))
        async with observing(client, Echo, echoed=True) as echoed, running(command, log) as program:
            await echoed.wait(name=PROBE, program=program)
            usage = program.usage
            return Figures(usage.cpu, echoed.at[PROBE] - program.began, usage.peak)

    async def run() -> Figures:
        if again:
            await start()
        return await start()

    return run


async def put_in_place(client: Client, count: int, command: Command, log: Path) -> None:
    """Create resources, and let one operator put their ConfigMaps and statuses in place."""
    await remove_echoes(client)
    if count:
        await create_echoes(client, range(count))
        async with observing(client, Echo, echoed=True) as echoed, running(command, log) as program:
            await echoed.wait(count=count, program=program)


def rows(bench: Bench, count: int, runs: dict[str, list[Figures]]) -> None:
    work = f"a start with {count:,} resources in place" if count else "a start without resources"
    for metric, unit, name, goal in (
        ("CPU", "s", "cpu", GOAL),
        ("time", "s", "seconds", ""),
        ("RSS", "MB", "peak", ""),
    ):
        figures = {peer: column(taken, name) for peer, taken in runs.items()}
        bench.row(work, metric, unit, figures, goal=goal, against=CREATE_OR_UPDATE)


async def contenders(bench: Bench, plane: Any, client: Client) -> dict[str, Command]:
    found = await echo_operators(bench, plane.kubeconfig)
    variables = await mount_account(client, client.config, plane.directory / "pod")
    python = await image_python(bench, Path(sys.executable))
    ordered: dict[str, Command] = {OURS: in_a_pod(python, variables)}
    if bench.includes(WITH_KUBECONFIG):
        ordered[WITH_KUBECONFIG] = found[OURS]
    for name, interpreter in (await interpreters(bench, bench.options.python)).items():
        ordered[name] = in_a_pod(interpreter, variables)
    return {**ordered, **{name: command for name, command in found.items() if name != OURS}}


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=1000, help="resources in place (default 1000)")
    add_python_option(parser)
    peers = (*FRAMEWORKS, WITH_KUBECONFIG)
    bench = Bench(
        "start", "an operator's start, on the real API server", parser=parser, rounds=10, peers=peers
    )
    async with real_server(bench) as (plane, client):
        await install(client, Echo)
        commands = await contenders(bench, plane, client)
        log = plane.directory / "operator.log"
        for count in dict.fromkeys((0, bench.options.objects)):
            bench.progress(f"{bench.rounds} starts of {', '.join(commands)} with {count:,} in place")
            await put_in_place(client, count, commands[OURS], log)
            runs = await alternate_async(
                bench.rounds,
                {name: starting(client, command, log, again=count > 0) for name, command in commands.items()},
            )
            rows(bench, count, runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
