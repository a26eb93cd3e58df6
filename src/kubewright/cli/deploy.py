"""`kubewright deploy`."""

import sys
from pathlib import Path

import click

from kubewright.cli.deployment import deploy, differences
from kubewright.cli.loops import run_program
from kubewright.cli.manifests import render
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@target_argument
@click.option("--image", required=True, help="Image of the operator.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@cluster_options
def command(target: str, image: str, dry_run: bool, kubeconfig: Path | None, context: str) -> None:
    """Bring TARGET to the cluster: CRDs, roles, webhooks and its Deployment, and wait until it runs."""
    documents = render(load_operator(target), image=image)
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            if not dry_run:
                await deploy(client, documents, click.echo)
                return
            lines = await differences(client, documents)
            for line in lines:
                click.echo(click.style(line, fg=_COLOURS.get(line[:1])) if sys.stdout.isatty() else line)
            if not lines:
                click.echo("nothing would change")

    run_program(work)
