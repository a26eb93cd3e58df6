"""`kubewright install`."""

from pathlib import Path

import click

from kubewright.cli.definitions.installation import FIELD_MANAGER, install, with_live_conversions
from kubewright.cli.documents import differences, show_client_dry_run, show_diff
from kubewright.cli.loops import run_program
from kubewright.cli.options import DryRunCommand, apply_dry_run_option, cluster_options, target_argument
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.generate import Names, crds


@click.command(cls=DryRunCommand)
@target_argument
@click.option("--force", is_flag=True, help="Install CRDs even if the change breaks stored objects.")
@apply_dry_run_option
@cluster_options
def command(target: str, force: bool, dry_run: str, kubeconfig: Path | None, context: str) -> int:
    """Install the CRDs of TARGET in the cluster and wait until they are served.

    A change that would break stored objects is rejected with a list of the breaking changes. The operator serves the
    conversion webhook: until it runs, requests for versions other than the storage version fail.
    """
    operator = load_operator(target)
    definitions = crds(operator, Names(operator.name))
    if dry_run == "client":
        return show_client_dry_run(definitions)
    config = load_config(kubeconfig, context or None)

    async def work() -> int:
        async with Client(config) as client:
            if dry_run == "server":
                planned = await with_live_conversions(client, definitions)
                return show_diff(await differences(client, planned, FIELD_MANAGER))
            progress = Progress()
            for note in await install(client, definitions, progress, force=force):
                progress.note(note)
            return 0

    return run_program(work)
