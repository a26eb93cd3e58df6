"""`kubewright uninstall`."""

from pathlib import Path

import click

from kubewright.cli.definitions.removal import clear_url_webhooks, refuse_in_use, uninstall
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.generate import crds


@click.command()
@target_argument
@click.option("--with-resources", is_flag=True, help="Delete all objects of these kinds too.")
@cluster_options
def command(target: str, with_resources: bool, kubeconfig: Path | None, context: str) -> None:
    """Delete the CRDs of TARGET from the cluster, and webhook configurations left by a killed run.

    The command fails while objects of these kinds exist, because they would be deleted too.
    """
    operator = load_operator(target)
    definitions = crds(operator)
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            progress = Progress()
            if not with_resources:
                await refuse_in_use(client, definitions)
            # Conversion webhooks are needed until the last object is deleted.
            await clear_url_webhooks(client, operator, progress, conversions=False)
            await uninstall(client, definitions, progress)

    run_program(work)
