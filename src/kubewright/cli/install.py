"""`kubewright install`."""

from pathlib import Path

import click

from kubewright.cli.installation import install
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.generate import crds


@click.command()
@target_argument
@cluster_options
def command(target: str, kubeconfig: Path | None, context: str) -> None:
    """Install the CRDs of TARGET in the cluster and wait until they are served."""
    definitions = crds(load_operator(target))
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            await install(client, definitions, click.echo)

    run_program(work)
