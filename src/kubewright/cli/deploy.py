"""`kubewright deploy`."""

from pathlib import Path

import click

from kubewright.cli.deployment import AVAILABLE_WITHIN, deploy
from kubewright.cli.differences import differences, show
from kubewright.cli.installation import FIELD_MANAGER
from kubewright.cli.loops import run_program
from kubewright.cli.manifests import render
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config


@click.command()
@target_argument
@click.option("--image", required=True, help="Image of the operator.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--force", is_flag=True, help="Change CRDs even if stored objects break.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    default=AVAILABLE_WITHIN,
    show_default=True,
    help="Seconds to wait until the Deployment is available.",
)
@cluster_options
def command(
    target: str,
    image: str,
    dry_run: bool,
    force: bool,
    timeout: float,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Bring TARGET to the cluster: CRDs, roles, webhooks and its Deployment, and wait until it runs.

    Run again, it completes what was interrupted and changes only what differs.
    """
    documents = render(load_operator(target), image=image)
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            if not dry_run:
                await deploy(client, documents, Progress(), force=force, timeout=timeout)
                return
            lines = await differences(client, documents, FIELD_MANAGER)
            show(lines or ["nothing would change"])

    run_program(work)
