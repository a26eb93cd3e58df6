"""`kubewright plan`: what an operator would do, now or after a change, from a run on a copy of the cluster's state."""

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
from kubewright.cli.plan.changes import changes
from kubewright.cli.plan.outcome import PlanResult, as_json, as_markdown, as_text
from kubewright.cli.plan.rehearsal import Rehearsal, RehearsalError, Writes, copy_state, rehearsing
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.controller import Operator

SETTLED_WITHIN = 30.0
EXIT_CHANGES = 3
FIELD_MANAGER = "kubewright-cli"


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
@click.option(
    "-o", "--output", type=click.Choice(["diff", "json", "markdown"]), default="diff", show_default=True
)
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
    """Show what TARGET would create, change and delete, now or after a change.

    Without -f and --delete, plan shows what this version of the operator would do to the objects in the cluster, for
    example before an upgrade. It runs your reconcilers and finalizers on this machine, on an in-memory copy of the
    cluster's objects; nothing is written to the cluster. Calls to external systems are carried out unless planning= of the
    Operator replaces them, so an operator with a lifespan or a finalizer needs it. Workloads do not run in the copy, so
    actions that depend on running Pods are not shown.

    Exits with 0 if nothing would change, 3 if something would, and 1 if a reconcile fails.
    """
    operator = load_operator(target)
    check_external_systems(operator)
    documents = read_documents(files)
    config = load_config(kubeconfig, context or None)
    result = run_program(
        lambda: make_plan(
            operator, config, documents=documents, deletions=deletions, namespaces=namespaces, timeout=timeout
        )
    )
    if output == "json":
        click.echo(as_json(result))
    elif output == "markdown":
        for line in as_markdown(result):
            click.echo(line)
    else:
        show(as_text(result))
    for failure in result.failures:
        click.echo(f"failed: {failure}", err=True)
    if result.failures:
        return 1
    return EXIT_CHANGES if result.all_changes else 0


def check_external_systems(operator: Operator) -> None:
    """Raise RehearsalError if the operator may change an external system and has no `planning=`."""
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


async def make_plan(
    operator: Operator,
    config: ClusterConfig,
    *,
    documents: Sequence[JsonObject] = (),
    deletions: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    timeout: float = SETTLED_WITHIN,
) -> PlanResult:
    """Run the operator on a copy of the cluster's state, before and after a change if there is one."""
    place = (*namespaces, config.namespace)[0]
    with Progress().waiting("copying the cluster's state") as update:
        async with Client(config) as client:
            kinds = [await _kind(client, operator, document) for document in documents]
            deleted_kinds = [(await find_resource(client, item.partition("/")[0])).kind for item in deletions]
            copied = await copy_state(client, operator, (*kinds, *deleted_kinds), namespaces)
        writes = Writes()
        async with rehearsing(operator, copied, writes, namespaces) as rehearsal:
            update("running the operator")
            before = await rehearsal.state()
            await rehearsal.settle(writes, timeout)
            settled = await rehearsal.state()
            if not documents and not deletions:
                return PlanResult(changes(before, settled), None, list(rehearsal.failures))
            update("running the operator with the change")
            for document, kind in zip(documents, kinds, strict=True):
                await _apply(rehearsal, document, kind, place)
            for kind, item in zip(deleted_kinds, deletions, strict=True):
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
