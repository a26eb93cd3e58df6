"""`kubewright dev`: an embedded cluster in the foreground."""

import asyncio
import gc
import logging
import os
import shlex
from contextlib import AsyncExitStack
from pathlib import Path

import click

from kubewright.api import ConfigError
from kubewright.cli.kubeconfigs import write_kubeconfig
from kubewright.cli.logs import set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import FILE
from kubewright.devcluster import DevCluster
from kubewright.processpods import ProcessPods

DEFAULT_KUBECONFIG = Path("~/.kube/kubewright-dev")
PROCESSES = (
    "Pods run as processes of this machine, with your rights: whoever has the kubeconfig runs commands as you"
)


@click.command()
@click.option(
    "--kubeconfig", type=FILE, default=None, help=f"Where to write the kubeconfig. [{DEFAULT_KUBECONFIG}]"
)
@click.option("--data", type=FILE, default=None, help="Keep the cluster in this file over restarts.")
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the API server; 0 picks a free one.",
)
@click.option(
    "--pods",
    type=click.Choice(["pretend", "process"]),
    default="pretend",
    show_default=True,
    help="Whether containers only pretend to run, or are processes of this machine, run with your rights.",
)
@click.option(
    "--run",
    "images",
    metavar="IMAGE=COMMAND",
    multiple=True,
    help="With --pods=process: the command that stands for an image here. Repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def command(
    kubeconfig: Path | None, data: Path | None, port: int, pods: str, images: tuple[str, ...], verbose: bool
) -> None:
    """Run an embedded cluster: API server, workload controllers, one node.

    It needs nothing but Python, binds to loopback, and ends with Ctrl-C or SIGTERM.
    """
    if images and pods != "process":
        raise click.UsageError("--run needs --pods=process: it gives the command that runs for an image")
    commands = _commands(images) if pods == "process" else None
    # What its controllers say of their own doings interests only those who look for it.
    set_up("text", level=logging.INFO if verbose else logging.ERROR)
    path = kubeconfig or DEFAULT_KUBECONFIG.expanduser()
    run_program(lambda: until_signalled(_serve(path, data, port, commands)))


def _commands(images: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in images:
        image, equals, words = text.partition("=")
        try:
            found[image] = shlex.split(words)
        except ValueError as error:
            raise click.UsageError(f"--run {text}: {error}") from None
        if not equals or not image or not found[image]:
            raise click.UsageError(f"--run {text}: expected IMAGE=COMMAND")
    return found


async def _serve(path: Path, data: Path | None, port: int, commands: dict[str, list[str]] | None) -> None:
    if commands is not None:
        click.echo(PROCESSES)
    async with AsyncExitStack() as stack:
        try:
            runner = ProcessPods(commands) if commands is not None else None
            dev = DevCluster(data=data, port=port, pod_runner=runner)
            cluster = await stack.enter_async_context(dev)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            raise ConfigError(f"cannot listen on port {port}: {why}; choose another with --port") from None
        await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
        # What is loaded and kept by now lives as long as the process: the garbage collector need not look again.
        gc.freeze()
        click.echo(f"kubewright dev is ready at {cluster.url}: export KUBECONFIG={path}")
        await asyncio.get_running_loop().create_future()
