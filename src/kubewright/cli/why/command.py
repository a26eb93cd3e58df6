"""`kubewright why`."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from msgspec import structs

from kubewright.api import NotFound
from kubewright.cli.documents import find_resource, requested_objects
from kubewright.cli.logs import escaped
from kubewright.cli.loops import run_program
from kubewright.cli.options import FILE, cluster_options, journal_options
from kubewright.cli.progress import reading_progress
from kubewright.cli.why.shown import explanation_lines
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.why import (
    Explanation,
    JournalQuery,
    RelatedObjects,
    SourceError,
    deployed_journals,
    explain,
    read_record,
    read_related,
    running_journals,
)

_RECORDED_NAMESPACE = "default"


@click.command()
@click.argument("words", metavar="KIND/NAME", nargs=-1, required=True)
@click.option("-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace; default: the context's.")
@click.option(
    "--record", type=FILE, default=None, help="Read this file of `run --record` instead of the cluster."
)
@click.option(
    "--reconciles",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of latest reconciles to show.",
)
@journal_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Show all values in full.")
@cluster_options
def command(
    words: tuple[str, ...],
    namespace: str,
    record: Path | None,
    reconciles: int,
    operator_namespace: str,
    service_account: str,
    output: str,
    verbose: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Explain the state of an object: its conditions, what it waits for, and what its reconciles did.

    The reconciles come from a record file, from an operator that you run on this machine, or from one that is deployed
    in the cluster: `why` forwards a port to its Pod, with several replicas to the one that holds the lease. Without
    any of them, the object, its children, field managers and Events are shown as the cluster has them.
    """
    requested = requested_objects(words)
    if len(requested) != 1 or len(requested[0].names) != 1:
        raise click.UsageError("name one object, as KIND/NAME")
    resource, name = requested[0].resource, requested[0].names[0]
    now = datetime.now(UTC)
    if record is not None:
        found = _from_record(record, resource, namespace or _RECORDED_NAMESPACE, name, now, reconciles)
    else:
        config = load_config(kubeconfig, context or None)
        found = run_program(
            lambda: _from_cluster(
                config,
                resource,
                namespace or config.namespace,
                name,
                now,
                reconciles,
                operator_namespace,
                service_account,
            )
        )
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    for line in explanation_lines(found, now=now, verbose=verbose):
        click.echo(escaped(line))


def _from_record(
    path: Path, resource: str, namespace: str, name: str, now: datetime, limit: int
) -> Explanation:
    with reading_progress(path, passes=2) as progress:
        recorded = read_record(path, resource, namespace, name, progress)
    last = recorded.journal.reconciles[-1]
    document = recorded.object or {
        "kind": last.kind,
        "metadata": {"namespace": last.namespace, "name": last.name, "uid": last.uid},
    }
    missing = [
        "Events of others, and field managers that the operator's cache does not keep: no record has them"
    ]
    related = RelatedObjects(children=recorded.children, unread=missing)
    # The reconcile of a deleted object has no object.
    return explain(document, related, [recorded.journal], now=now, limit=limit, exists=bool(last.uid))


async def _from_cluster(
    config: ClusterConfig,
    resource: str,
    namespace: str,
    name: str,
    now: datetime,
    limit: int,
    operator_namespace: str,
    service_account: str,
) -> Explanation:
    async with Client(config) as client:
        kind = (await find_resource(client, resource)).kind
        place = namespace if kind.namespaced else ""
        query = JournalQuery(kind.group, kind.kind, place, name)
        journals, unread = await running_journals(query), list[str]()
        if not journals:
            journals, unread = await deployed_journals(
                client, query, namespace=operator_namespace, service_account=service_account
            )
        try:
            document = await client.get(kind, name, place)
        except NotFound as error:
            if not any(journal.reconciles for journal in journals):
                raise SourceError(str(error)) from None
            document = {"kind": kind.kind, "metadata": {"namespace": place, "name": name}}
            related = RelatedObjects(unread=unread)
            return explain(document, related, journals, now=now, limit=limit, exists=False)
        related = await read_related(client, document)
        related = structs.replace(related, unread=[*unread, *related.unread])
    return explain(document, related, journals, now=now, limit=limit)
