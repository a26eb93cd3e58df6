"""`kubewright delete`, for a machine without kubectl."""

from pathlib import Path

import click

from kubewright.api import NotFound
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options
from kubewright.cli.resources import find_resource
from kubewright.client import Client, load_config


@click.command()
@click.argument("resource", metavar="KIND")
@click.argument("names", metavar="NAME", nargs=-1, required=True)
@click.option("-n", "--namespace", default="", help="Namespace; default: the context's.")
@click.option("--ignore-not-found", is_flag=True, help="Count objects that are not there as deleted.")
@cluster_options
def command(
    resource: str,
    names: tuple[str, ...],
    namespace: str,
    ignore_not_found: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Delete objects of a KIND by name."""
    config = load_config(kubeconfig, context or None)

    async def work() -> None:
        async with Client(config) as client:
            kind = (await find_resource(client, resource)).kind
            place = (namespace or config.namespace) if kind.namespaced else ""
            for name in names:
                try:
                    await client.delete(kind, name, place, propagation="Background")
                except NotFound:
                    if not ignore_not_found:
                        raise
                    continue
                click.echo(f"{kind.singular}{f'.{kind.group}' if kind.group else ''}/{name} deleted")

    run_program(work)
