"""`kubewright deploy`."""

from collections.abc import Sequence
from pathlib import Path

import click

from kubewright.api import JsonObject, KubewrightError
from kubewright.cli.definitions import (
    FIELD_MANAGER,
    clear_url_webhooks,
    converted_by_url,
    with_live_conversions,
)
from kubewright.cli.deployment.leftovers import leftovers
from kubewright.cli.deployment.rollout import AVAILABLE_WITHIN, deploy
from kubewright.cli.documents import (
    ApplyDiff,
    called,
    diff,
    differences,
    show_client_dry_run,
    show_diff,
)
from kubewright.cli.loops import run_program
from kubewright.cli.options import (
    DryRunCommand,
    apply_dry_run_option,
    cluster_options,
    namespaces_option,
    policies_option,
    target_argument,
    timeout_option,
)
from kubewright.cli.packages.manifests import NothingToRun, as_policies
from kubewright.cli.plan.command import check_external_systems, make_plan
from kubewright.cli.plan.outcome import summary
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.controller import Operator
from kubewright.generate import PARTS, USUAL_PARTS, Names, Settings, is_idle, manifests


class DeployRefused(KubewrightError):
    """A deployment was refused before anything was written."""


@click.command(cls=DryRunCommand)
@target_argument
@click.option("--image", metavar="IMAGE", required=True, help="Image of the operator.")
@namespaces_option("Namespace to which the operator is limited; repeatable.")
@click.option(
    "--with",
    "further",
    type=click.Choice([part for part in PARTS if part not in USUAL_PARTS]),
    multiple=True,
    help="Deploy this optional part too; repeatable.",
)
@policies_option
@apply_dry_run_option
@click.option("--force", is_flag=True, help="Update CRDs even if the change breaks stored objects.")
@click.option(
    "--plan",
    "limit",
    metavar="LIMIT",
    type=click.IntRange(min=0),
    default=None,
    help="Plan first; deploy nothing if this version would create, change or delete more than LIMIT objects.",
)
@timeout_option(AVAILABLE_WITHIN, "the Deployment is available")
@cluster_options
def command(
    target: str,
    image: str,
    namespaces: tuple[str, ...],
    further: tuple[str, ...],
    policies: bool,
    dry_run: str,
    force: bool,
    limit: int | None,
    timeout: float,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Deploy TARGET (CRDs, RBAC, webhooks and the Deployment) and wait until it is available.

    The command can be repeated: it completes an interrupted deployment and changes only what differs.
    """
    operator = load_operator(target)
    deployed, settings = operator, Settings(image=image, namespaces=namespaces)
    if policies:
        deployed, settings = as_policies(operator, settings)
        if is_idle(deployed):
            raise NothingToRun(deployed)
    documents = manifests(deployed, (*USUAL_PARTS, *further), settings)
    if dry_run == "client":
        return show_client_dry_run(documents)
    labels = Names(operator.name).labels
    config = load_config(kubeconfig, context or None)
    if limit is not None:
        check_external_systems(operator)

    async def work() -> int:
        if limit is not None:
            await _check_plan(operator, target, config, namespaces, limit)
        async with Client(config) as client:
            if dry_run == "none":
                await clear_url_webhooks(client, operator, Progress())
                await deploy(client, documents, labels, Progress(), force=force, timeout=timeout)
                return 0
            found = await _dry_run(client, operator, documents)
            left = await leftovers(client, labels, documents)
            for _, item in left.found:
                found.lines.extend(diff(called(item), item, None))
            code = show_diff(found)
            if left.note:
                Progress().note(left.note)
            return code

    return run_program(work)


async def _check_plan(
    operator: Operator, target: str, config: ClusterConfig, namespaces: Sequence[str], limit: int
) -> None:
    """Raise DeployRefused if the operator would change more objects than allowed, or fails on one."""
    result = await make_plan(operator, config, namespaces=namespaces)
    found = len(result.pending)
    advice = f"run `kubewright plan {target}` to see them; nothing was deployed"
    if result.failures:
        raise DeployRefused(f"this version fails on objects in the cluster: {result.failures[0]}; {advice}")
    if found > limit:
        raise DeployRefused(
            f"this version would change {found} objects ({summary(result.pending)}), more than --plan {limit}; {advice}"
        )
    Progress().note(f"plan: {summary(result.pending)}")


async def _dry_run(client: Client, operator: Operator, documents: Sequence[JsonObject]) -> ApplyDiff:
    """Compare with a dry run, in which CRDs keep conversion webhooks registered by `kubewright run`."""
    taken = await converted_by_url(client, operator)
    planned: list[JsonObject] = []
    for document in documents:
        by_url = document["kind"] == "CustomResourceDefinition" and document["metadata"]["name"] in taken
        planned += await with_live_conversions(client, [document]) if by_url else [document]
    found = await differences(client, planned, FIELD_MANAGER)
    found.notes.extend(
        f"the conversion webhook of {name}, registered by `kubewright run`, would be replaced"
        for name in sorted(taken)
    )
    return found
