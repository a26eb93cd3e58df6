"""`kubewright plan`: what an operator would do after a change, from a run on a copy of the cluster's state."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from kubewright.api import GroupVersionKind, JsonObject, Kind, NotFound, kind_of
from kubewright.cli.documents import find_resource, read_documents, show
from kubewright.cli.loops import run_program
from kubewright.cli.options import (
    cluster_options,
    filenames_option,
    namespaces_option,
    target_argument,
    timeout_option,
)
from kubewright.cli.plan.changes import PlannedChange, changes
from kubewright.cli.plan.rehearsal import Rehearsal, RehearsalError, Writes, copy_state, rehearsing
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.controller import Operator

SETTLED_WITHIN = 30.0
FIELD_MANAGER = "kubewright-cli"


class PlanResult:
    """The result of a plan."""

    def __init__(
        self, pending: list[PlannedChange], changes: list[PlannedChange], failures: list[str]
    ) -> None:
        self.pending = pending
        """Changes that the operator would make without the change."""
        self.changes = changes
        self.failures = failures


def _deletions(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> Sequence[str]:
    for item in value:
        kind, slash, name = item.partition("/")
        if not (kind and slash and name):
            raise click.BadParameter(f"{item!r} is not of the form KIND/NAME")
    return value


@click.command()
@target_argument
@filenames_option("File or directory with the manifests to apply, or - for standard input; repeatable.")
@click.option(
    "--delete",
    "deletions",
    metavar="KIND/NAME",
    multiple=True,
    callback=_deletions,
    help="Object to delete; repeatable.",
)
@namespaces_option(
    "Namespace to copy; repeatable. Objects without a namespace are created in the first. Default: all."
)
@click.option("-o", "--output", type=click.Choice(["diff", "json"]), default="diff", show_default=True)
@timeout_option(SETTLED_WITHIN, "the operator is done")
@cluster_options
def command(
    target: str,
    files: tuple[Path, ...],
    deletions: tuple[str, ...],
    namespaces: tuple[str, ...],
    output: str,
    timeout: float,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Show what TARGET would create, change and delete if a change were applied.

    plan runs your reconcilers and finalizers on this machine, against an in-memory copy of the cluster's objects; only
    writes to the cluster are held back. Without planning= of the Operator, calls to other systems are carried out, so
    an operator with a lifespan or a finalizer needs it. Workloads do not run in the copy, so actions that depend on
    running Pods are not shown. Exits with 1 if a reconcile fails.
    """
    operator = load_operator(target)
    _check_external_systems(operator)
    if not files and not deletions:
        raise click.UsageError("specify a change with -f FILE or --delete KIND/NAME")
    documents = read_documents(files)
    config = load_config(kubeconfig, context or None)
    outcome = run_program(lambda: _plan(operator, config, documents, deletions, namespaces, timeout))
    _print_outcome(outcome, output)
    return int(bool(outcome.failures))


def _check_external_systems(operator: Operator) -> None:
    """Raise RehearsalError if the operator may change an external system and does not say how to plan that."""
    if operator.planning is not None:
        return
    if operator.lifespan is not None:
        raise RehearsalError(
            f"operator {operator.name!r} has a lifespan, which may access an external system: "
            "pass Operator(..., planning=...) with a lifespan that does not change that system"
        )
    for controller in operator.controllers:
        if controller.finalizer_name:
            raise RehearsalError(
                f"controller {controller.name!r} has a finalizer, so it may change an external system: "
                "pass Operator(..., planning=...) with a lifespan that replaces the calls to that system; "
                "if the operator changes only the cluster, pass Operator(..., planning=contextlib.nullcontext)"
            )


async def _plan(
    operator: Operator,
    config: ClusterConfig,
    documents: Sequence[JsonObject],
    deletions: Sequence[str],
    namespaces: Sequence[str],
    timeout: float,
) -> PlanResult:
    place = (*namespaces, config.namespace)[0]
    with Progress().waiting("copying the cluster's state") as update:
        async with Client(config) as client:
            kinds = [await _kind(client, operator, document) for document in documents]
            doomed = [(await find_resource(client, item.partition("/")[0])).kind for item in deletions]
            copied = await copy_state(client, operator, (*kinds, *doomed), namespaces)
        writes = Writes()
        async with rehearsing(operator, copied, writes, namespaces) as rehearsal:
            update("running the operator without the change")
            before = await rehearsal.state()
            await rehearsal.settle(writes, timeout)
            settled = await rehearsal.state()
            update("running the operator with the change")
            for document, kind in zip(documents, kinds, strict=True):
                await _apply(rehearsal, document, kind, place)
            for kind, item in zip(doomed, deletions, strict=True):
                await rehearsal.client.delete(kind, item.partition("/")[2], place if kind.namespaced else "")
            await rehearsal.settle(writes, timeout)
            after = await rehearsal.state()
            return PlanResult(changes(before, settled), changes(settled, after), list(rehearsal.failures))


async def _kind(client: Client, operator: Operator, document: JsonObject) -> Kind:
    gvk = GroupVersionKind.parse(document["apiVersion"], document["kind"])
    try:
        return await client.resolve(gvk)
    except NotFound:
        # The operator's own kinds need not be installed in the cluster.
        for declared in operator.kinds:
            kind = kind_of(declared)
            if (kind.group, kind.version, kind.kind) == (gvk.group, gvk.version, gvk.kind):
                return kind
        raise


async def _apply(rehearsal: Rehearsal, document: JsonObject, kind: Kind, namespace: str) -> None:
    if kind.namespaced:
        document["metadata"].setdefault("namespace", namespace)
    await rehearsal.client.apply(document, field_manager=FIELD_MANAGER, kind=kind)


def _print_outcome(outcome: PlanResult, output: str) -> None:
    if output == "json":
        document = {
            "pending": [_wire(change) for change in outcome.pending],
            "changes": [_wire(change) for change in outcome.changes],
            "failures": outcome.failures,
        }
        click.echo(json.dumps(document, indent=2))
        return
    if outcome.pending:
        click.echo("# changes that the operator would make without the change")
        show(line for change in outcome.pending for line in change.lines)
        click.echo("# changes caused by the change")
    show(line for change in outcome.changes for line in change.lines)
    for failure in outcome.failures:
        click.echo(f"failed: {failure}", err=True)
    counts = {
        action: sum(change.action == action for change in outcome.changes)
        for action in ("create", "change", "delete")
    }
    summary = ", ".join(f"{count} to {action}" for action, count in counts.items())
    click.echo(f"plan: {summary}; nothing was written to the cluster")


def _wire(change: PlannedChange) -> JsonObject:
    return {
        "action": change.action,
        "object": change.name,
        "namespace": change.namespace,
        "diff": list(change.lines),
    }
