"""`kubewright ui`: the live page of a cluster or of a record file."""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import click

from kubewright.cli.logs import set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import FILE, cluster_options, journal_options, parse_size
from kubewright.cli.project import find_project
from kubewright.client import ClusterConfig, load_config
from kubewright.ui import PageOptions, cluster_page, record_page


@click.command()
@click.option(
    "--record", type=FILE, default=None, help="Show this file of `run --record` instead of a cluster."
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the page on 127.0.0.1; 0 selects a free port.",
)
@click.option(
    "--history",
    metavar="SIZE",
    default="64Mi",
    show_default=True,
    callback=parse_size,
    help="Memory for earlier versions of objects, for the slider back in time.",
)
@click.option(
    "--allow-writes",
    is_flag=True,
    help="Allow changes of objects: apply, edit, delete, scale, pause. A dev cluster always allows them.",
)
@journal_options
@cluster_options
def command(
    record: Path | None,
    port: int,
    history: int,
    allow_writes: bool,
    operator_namespace: str,
    service_account: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Show a cluster and its operators on a page in the browser.

    The page is served on the loopback interface only, to browsers that open the printed link. It shows the objects as
    a graph, and what operators do with them: those that you run on this machine, and those in the cluster.
    """
    set_up("text", level=logging.ERROR)
    if record is not None:
        if kubeconfig or context or allow_writes:
            raise click.UsageError(
                "--record cannot be combined with --kubeconfig, --context or --allow-writes: it needs no cluster"
            )
        run_program(
            lambda: until_signalled(_show(record_page(record, PageOptions(port=port, history=history))))
        )
        return
    config = load_config(kubeconfig, context or None)
    options = PageOptions(
        port=port,
        history=history,
        allow_writes=allow_writes,
        operator_namespace=operator_namespace,
        service_account=service_account,
        samples=project_samples(),
    )
    title = context or config.server
    run_program(lambda: until_signalled(_show(cluster_page(config, title, options))))


async def _show(page: AbstractAsyncContextManager[str]) -> None:
    async with page as link:
        click.echo(f"live page: {link}")
        await asyncio.get_running_loop().create_future()


def live_page(config: ClusterConfig, *, title: str, port: int) -> AbstractAsyncContextManager[str]:
    """Return the page of a cluster for a command with `--ui`."""
    options = PageOptions(port=port, port_option="--ui-port", samples=project_samples())
    return cluster_page(config, title, options)


def project_samples() -> tuple[Path, ...]:
    """Return the folder with the samples of the project around the current directory, if there is one."""
    project = find_project()
    folder = None if project is None else project.root / "samples"
    return (folder,) if folder is not None and folder.is_dir() else ()
