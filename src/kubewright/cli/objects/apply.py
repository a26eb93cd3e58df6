"""`kubewright apply`: server-side apply, for a machine without kubectl."""

from collections.abc import Sequence
from pathlib import Path

import click

from kubewright.api import GroupVersionKind, JsonObject, Kind, NotFound
from kubewright.cli.definitions import InstallError, wait_established
from kubewright.cli.documents import (
    called,
    defined_kinds,
    differences,
    read_documents,
    show_client_dry_run,
    show_diff,
)
from kubewright.cli.loops import run_program
from kubewright.cli.objects.refusals import Refusals
from kubewright.cli.options import DryRunCommand, apply_dry_run_option, cluster_options, filenames_option
from kubewright.cli.progress import Progress
from kubewright.client import Client, load_config

FIELD_MANAGER = "kubewright-cli"


@click.command(cls=DryRunCommand)
@filenames_option(
    "File or directory with YAML or JSON manifests, or - for standard input; repeatable.", required=True
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    default="",
    help="Namespace for objects without one; default: the context's.",
)
@click.option(
    "--force-conflicts", is_flag=True, help="Take ownership of fields that other field managers own."
)
@apply_dry_run_option
@cluster_options
def command(
    files: tuple[Path, ...],
    namespace: str,
    force_conflicts: bool,
    dry_run: str,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Apply manifests with server-side apply.

    The files may contain CRDs together with objects of their kinds. If the server rejects an object, the error is
    printed, the other objects are still applied, and the command exits with 1. With --dry-run=server, an object whose
    CRD is only in the files is validated against that CRD.
    """
    documents = read_documents(files)
    if dry_run == "client":
        return show_client_dry_run(documents)
    config = load_config(kubeconfig, context or None)

    place = namespace or config.namespace

    async def work() -> int:
        async with Client(config) as client:
            if dry_run == "server":
                return await _dry_run(client, documents, place)
            return await _apply(client, documents, place, force=force_conflicts)

    return run_program(work)


async def _apply(client: Client, documents: Sequence[JsonObject], namespace: str, *, force: bool) -> int:
    refusals = Refusals()
    for document in documents:
        with refusals.reported(InstallError):
            kind = await client.resolve(_gvk(document))
            _place(document, kind, namespace)
            await client.apply(document, field_manager=FIELD_MANAGER, force=force, kind=kind)
            if document["kind"] == "CustomResourceDefinition":
                await wait_established(client, document["metadata"]["name"], Progress())
            click.echo(f"{called(document)} serverside-applied")
    return refusals.exit_code


async def _dry_run(client: Client, documents: Sequence[JsonObject], namespace: str) -> int:
    defined = defined_kinds(documents)
    for document in documents:
        try:
            kind = await client.resolve(_gvk(document))
        except NotFound:
            if _gvk(document) not in defined:
                # The comparison reports it.
                continue
            kind = defined[_gvk(document)].kind
        _place(document, kind, namespace)
    return show_diff(await differences(client, documents, FIELD_MANAGER))


def _place(document: JsonObject, kind: Kind, namespace: str) -> None:
    if kind.namespaced:
        document["metadata"].setdefault("namespace", namespace)


def _gvk(document: JsonObject) -> GroupVersionKind:
    return GroupVersionKind.parse(document["apiVersion"], document["kind"])
