"""`kubewright install`."""

from pathlib import Path

import click

from kubewright.cli.definitions.installation import FIELD_MANAGER, install, with_live_conversions
from kubewright.cli.documents import differences, show_comparison
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.generate import Names, crds


@click.command()
@target_argument
@click.option("--force", is_flag=True, help="Install CRDs even if stored objects break.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@cluster_options
def command(target: str, force: bool, dry_run: bool, kubeconfig: Path | None, context: str) -> None:
    """Install the CRDs of TARGET in the cluster and wait until they are served.

    A change that breaks objects which are stored is refused, with the list of what breaks. Versions are
    converted by the operator: until it runs, requests in another version than the stored one fail.
    """
    operator = load_operator(target)
    definitions = crds(operator, Names(operator.name))
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            if not dry_run:
                progress = Progress()
                for note in await install(client, definitions, progress, force=force):
                    progress.note(note)
                return
            planned = await with_live_conversions(client, definitions)
            show_comparison(await differences(client, planned, FIELD_MANAGER))

    run_program(work)
