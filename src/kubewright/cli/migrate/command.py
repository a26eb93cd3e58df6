"""`kubewright migrate`."""

from pathlib import Path

import click

from kubewright.cli.loops import run_program
from kubewright.cli.migrate.storage import migrate_storage
from kubewright.cli.options import cluster_options, optional_target_argument, target_or_project
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.generate import crds


@click.group()
def command() -> None:
    """Migrate stored objects of a cluster."""


@command.command()
@optional_target_argument
@click.option(
    "--crd",
    "names",
    metavar="NAME",
    multiple=True,
    help="CRD to migrate instead of those of TARGET; repeatable.",
)
@cluster_options
def storage(target: str | None, names: tuple[str, ...], kubeconfig: Path | None, context: str) -> None:
    """Store the objects of TARGET's kinds in the storage version of their CRDs.

    Each object is patched without a change, and the API server stores it in the storage version. Other versions are then
    removed from status.storedVersions, so that you can remove them from the CRD. An interrupted migration continues
    when you run the command again.
    """
    if names and target is not None:
        raise click.UsageError("specify a TARGET or --crd, not both")
    if not names:
        operator = load_operator(target_or_project(target))
        names = tuple(definition["metadata"]["name"] for definition in crds(operator))
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            for name in names:
                await migrate_storage(client, name, Progress())

    run_program(work)
