"""`kubewright dev`: an embedded cluster in the foreground."""

import asyncio
import logging
from pathlib import Path

import click

from kubewright.api import ConfigError
from kubewright.cli.kubeconfigs import write_kubeconfig
from kubewright.cli.logs import set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import FILE
from kubewright.devcluster import DevCluster

DEFAULT_KUBECONFIG = Path("~/.kube/kubewright-dev")


@click.command()
@click.option(
    "--kubeconfig", type=FILE, default=None, help=f"Where to write the kubeconfig. [{DEFAULT_KUBECONFIG}]"
)
@click.option("--data", type=FILE, default=None, help="Keep the cluster in this file over restarts.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the API server; 0 picks a free one."
)
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def command(kubeconfig: Path | None, data: Path | None, port: int, verbose: bool) -> None:
    """Run an embedded cluster: API server, workload controllers, one node.

    It needs nothing but Python, binds to loopback, and ends with Ctrl-C or SIGTERM.
    """
    # What its controllers say of their own doings interests only those who look for it.
    set_up("text", level=logging.INFO if verbose else logging.ERROR)
    path = kubeconfig or DEFAULT_KUBECONFIG.expanduser()
    run_program(lambda: until_signalled(_serve(path, data, port)))


async def _serve(path: Path, data: Path | None, port: int) -> None:
    try:
        async with DevCluster(data=data, port=port) as cluster:
            await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
            click.echo(f"kubewright dev is ready at {cluster.url}: export KUBECONFIG={path}")
            await asyncio.get_running_loop().create_future()
    except OSError as error:
        raise ConfigError(f"cannot listen on port {port}: {error.strerror or error}") from None
