"""`kubewright get`: the server's own tables, for a machine without kubectl."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import msgspec
import yaml

from kubewright.api import JsonObject
from kubewright.cli.documents import find_resource, split_names
from kubewright.cli.loops import run_program
from kubewright.cli.objects.refusals import Refusals
from kubewright.cli.options import cluster_options
from kubewright.client import ApiResource, Client, load_config, requests

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
OUTPUTS = ("table", "wide", "name", "yaml", "json")


@click.command()
@click.argument("resource", metavar="KIND")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace; default: the context's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look in all namespaces.")
@click.option(
    "-l",
    "--selector",
    metavar="LABELS",
    default="",
    help="Show only objects with these labels, such as app=web.",
)
@click.option("-o", "--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
@cluster_options
def command(
    resource: str,
    names: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Show objects of a KIND: its plural, singular, short name or kind; also as KIND/NAME, or several as KIND,KIND."""
    resource, names = split_names(resource, names)
    kinds = [kind for kind in resource.split(",") if kind] or [resource]
    if names and (selector or all_namespaces):
        raise click.UsageError("names exclude --selector and --all-namespaces")
    if len(kinds) > 1 and (names or output in ("yaml", "json")):
        raise click.UsageError(f"several kinds exclude names and -o {output}: ask for them one by one")
    config = load_config(kubeconfig, context or None)
    place = "" if all_namespaces else namespace or config.namespace

    async def work() -> int:
        refusals = Refusals()
        async with Client(config) as client:
            for number, found in enumerate([await find_resource(client, kind) for kind in kinds]):
                answers, where = list[JsonObject](), place if found.kind.namespaced else ""
                table = output in ("table", "wide")
                for name in names or ("",):
                    with refusals.told():
                        answers.append(await _read(client, found, name, where, selector, table=table))
                if answers:
                    with_namespace = all_namespaces and found.kind.namespaced
                    shown = _shown(found, answers, output, with_namespace=with_namespace)
                    # Tables of several kinds stand apart, each under its own head.
                    click.echo(f"\n{shown}" if number and table else shown, nl=False)
        return refusals.exit_code

    return run_program(work)


async def _read(
    client: Client, found: ApiResource, name: str, namespace: str, selector: str, *, table: bool
) -> JsonObject:
    kind = found.kind
    path = requests.object_path(kind, name, namespace) if name else requests.collection_path(kind, namespace)
    query = urlencode({"labelSelector": selector}) if selector else ""
    request = requests.get_path(path, accept=TABLE if table else requests.JSON)
    answer = await client.raw(msgspec.structs.replace(request, query=query))
    return msgspec.json.decode(answer.body, type=dict[str, Any])


def _shown(found: ApiResource, answers: Sequence[JsonObject], output: str, *, with_namespace: bool) -> str:
    if output in ("table", "wide"):
        return _table(answers, wide=output == "wide", with_namespace=with_namespace)
    if output == "name":
        items = [item for answer in answers for item in answer.get("items", [answer])]
        kind = found.kind
        called = f"{kind.kind.lower()}.{kind.group}" if kind.group else kind.kind.lower()
        return "".join(f"{called}/{item['metadata']['name']}\n" for item in items)
    document = answers[0] if len(answers) == 1 else _list_of(answers)
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    return yaml.safe_dump(document, sort_keys=False)


def _list_of(answers: Sequence[JsonObject]) -> JsonObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(answers), "metadata": {}}


def _table(answers: Sequence[JsonObject], *, wide: bool, with_namespace: bool) -> str:
    columns = [
        (index, column["name"].upper())
        for index, column in enumerate(answers[0]["columnDefinitions"])
        if wide or not column["priority"]
    ]
    rows = [row for answer in answers for row in answer["rows"] or ()]
    lines = [[title for _, title in columns]]
    lines += [[_cell(row["cells"][index]) for index, _ in columns] for row in rows]
    if with_namespace:
        spaces = [row["object"]["metadata"].get("namespace", "") for row in rows]
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
