"""`kubewright get`: the server's own tables, for a machine without kubectl."""

from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options
from kubewright.cli.resources import find_resource
from kubewright.client import ApiResource, Client, load_config, requests

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
Wire = dict[str, Any]


@click.command()
@click.argument("resource", metavar="KIND")
@click.argument("name", required=False, default="")
@click.option("-n", "--namespace", default="", help="Namespace; default: the context's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look in all namespaces.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "yaml", "json"]), default="table", show_default=True
)
@cluster_options
def command(
    resource: str,
    name: str,
    namespace: str,
    all_namespaces: bool,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Show objects of a KIND: its plural, singular, short name or kind."""
    config = load_config(kubeconfig, context or None)
    place = "" if all_namespaces else namespace or config.namespace

    async def work() -> None:
        async with Client(config) as client:
            found = await find_resource(client, resource)
            where = place if found.kind.namespaced else ""
            answer = await _read(client, found, name, where, table=output in ("table", "wide"))
            click.echo(
                _shown(answer, output, with_namespace=all_namespaces and found.kind.namespaced), nl=False
            )

    run_program(work)


async def _read(client: Client, found: ApiResource, name: str, namespace: str, *, table: bool) -> Wire:
    kind = found.kind
    path = requests.object_path(kind, name, namespace) if name else requests.collection_path(kind, namespace)
    answer = await client.raw(requests.get_path(path, accept=TABLE if table else requests.JSON))
    return msgspec.json.decode(answer.body, type=dict[str, Any])


def _shown(answer: Wire, output: str, *, with_namespace: bool) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n"
    if output == "yaml":
        return yaml.safe_dump(answer, sort_keys=False)
    columns = [
        (index, column["name"].upper())
        for index, column in enumerate(answer["columnDefinitions"])
        if output == "wide" or not column["priority"]
    ]
    lines = [[title for _, title in columns]]
    lines += [[_cell(row["cells"][index]) for index, _ in columns] for row in answer["rows"] or ()]
    if with_namespace:
        spaces = [row["object"]["metadata"].get("namespace", "") for row in answer["rows"] or ()]
        lines = [[space, *line] for space, line in zip(["NAMESPACE", *spaces], lines, strict=True)]
    if len(lines) == 1:
        return "No resources found\n"
    widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in lines
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<none>"
    return str(value).lower() if isinstance(value, bool) else str(value)
