"""`kubewright undeploy`."""

from pathlib import Path
from typing import Any

import click

from kubewright.api import Forbidden, NotFound, kind_of
from kubewright.cli.definitions import unconverted
from kubewright.cli.deployment.rollout import undeploy
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options, target_argument
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, load_config
from kubewright.controller import Controller
from kubewright.generate import PARTS, Names, crds, manifests

STAYING = ("crds", "samples")
"""Parts that contain users' data."""


@click.command()
@target_argument
@cluster_options
def command(target: str, kubeconfig: Path | None, context: str) -> None:
    """Delete the deployment of TARGET from the cluster.

    CRDs and their objects are kept: delete them with `kubewright uninstall`."""
    operator = load_operator(target)
    documents = manifests(operator, [part for part in PARTS if part not in STAYING])
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            progress = Progress()
            if not await undeploy(client, documents, Names(operator.name).labels, progress):
                progress.done(f"{operator.name} is not deployed")
            for definition in crds(operator):
                if definition["metadata"]["name"] in operator.webhooks.converted:
                    progress.note(unconverted(definition))
            for controller in operator.controllers:
                if held := await _held(client, controller):
                    progress.note(held)

    run_program(work)


async def _held(client: Client, controller: Controller[Any]) -> str:
    """Return a note on objects with the controller's finalizer, which now stays on them."""
    kind, finalizer = kind_of(controller.kind), controller.finalizer_name
    if not finalizer:
        return ""
    try:
        found = await client.list(kind)
    except (Forbidden, NotFound):
        # Without permission to list them, or without the CRD, there is nothing to report.
        return ""
    count = sum(finalizer in (item["metadata"].get("finalizers") or ()) for item in found)
    return (
        f"note: {count} {kind.resource} have the finalizer {finalizer}: they can only be deleted while the operator runs"
        if count
        else ""
    )
