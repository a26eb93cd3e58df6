"""`kubewright apply`: server-side apply, for a machine without kubectl."""

from pathlib import Path

import click

from kubewright.api import GroupVersionKind
from kubewright.cli.definitions import wait_established
from kubewright.cli.documents import called, differences, read_documents, show
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options
from kubewright.cli.progress import Progress
from kubewright.client import Client, load_config

FIELD_MANAGER = "kubewright-cli"


@click.command()
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    required=True,
    help="File or folder of YAML or JSON; - is standard input; repeatable.",
)
@click.option(
    "-n", "--namespace", default="", help="Namespace of objects that name none; default: the context's."
)
@click.option("--force-conflicts", is_flag=True, help="Take fields over that other managers own.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@cluster_options
def command(
    files: tuple[Path, ...],
    namespace: str,
    force_conflicts: bool,
    dry_run: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Make the objects of files so, by server-side apply; a kind that a file brings may be used after it."""
    documents = read_documents(files)
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            for document in documents:
                kind = await client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))
                if kind.namespaced:
                    document["metadata"].setdefault("namespace", namespace or config.namespace)
                if not dry_run:
                    await client.apply(
                        document, field_manager=FIELD_MANAGER, force=force_conflicts, kind=kind
                    )
                    if document["kind"] == "CustomResourceDefinition":
                        await wait_established(client, document["metadata"]["name"], Progress())
                    click.echo(f"{called(document)} serverside-applied")
            if dry_run:
                lines = await differences(client, documents, FIELD_MANAGER)
                show(lines or ["nothing would change"])

    run_program(work)
