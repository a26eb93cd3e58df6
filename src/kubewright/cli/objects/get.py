"""`kubewright get`: the server's own tables, for a machine without kubectl."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
import yaml

from kubewright.api import JsonObject, NotFound, ObjectKey, RawObject, parse
from kubewright.cache import Applied, Deleted, Failed, Restarted, Selection, Synced, watch_forever
from kubewright.cli.documents import Requested, find_resources, requested_objects
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.objects.refusals import Refusals
from kubewright.cli.objects.tables import Table, name_of, read_objects
from kubewright.cli.options import cluster_options
from kubewright.client import ApiResource, Client, load_config

OUTPUTS = ("table", "wide", "name", "yaml", "json")


class _View(NamedTuple):
    """Which objects to show, and the output format."""

    namespace: str
    all_namespaces: bool
    selector: str
    output: str

    @property
    def as_table(self) -> bool:
        return self.output in ("table", "wide")

    def place_of(self, found: ApiResource) -> str:
        return self.namespace if found.kind.namespaced else ""

    def table(self, found: ApiResource, *, with_kind: bool = False) -> Table:
        return Table(
            found,
            wide=self.output == "wide",
            with_namespace=self.all_namespaces and found.kind.namespaced,
            with_kind=with_kind,
        )


@click.command()
@click.argument("words", metavar="KIND [NAME]... | KIND/NAME...", nargs=-1, required=True)
@click.option("-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace; default: the context's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@click.option(
    "-l",
    "--selector",
    metavar="LABELS",
    default="",
    help="Label selector, for example app=web.",
)
@click.option("-o", "--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
@click.option("-w", "--watch", is_flag=True, help="After listing the objects, watch for changes.")
@cluster_options
def command(
    words: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    output: str,
    watch: bool,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Display one or many objects.

    KIND is a plural, singular, short name or kind, several of them separated by commas, or a category such as
    all. Objects are named after their KIND, or as KIND/NAME.
    """
    requested = requested_objects(words)
    named = any(item.names for item in requested)
    if named and (selector or all_namespaces):
        raise click.UsageError("names cannot be combined with --selector or --all-namespaces")
    if watch and (len(requested) > 1 or len(requested[0].names) > 1):
        raise click.UsageError("--watch takes one KIND, or one object")
    config = load_config(kubeconfig, context or None)
    view = _View("" if all_namespaces else namespace or config.namespace, all_namespaces, selector, output)

    async def work() -> int:
        async with Client(config) as client:
            found = [
                (resource, item)
                for item in requested
                for resource in await find_resources(client, item.resource)
            ]
            if not watch:
                return await _show(client, found, view)
            if len(found) > 1:
                raise click.UsageError(
                    f"--watch takes one KIND: {requested[0].resource} is a category of several"
                )
            [(resource, item)] = found
            await until_signalled(_Watch(client, resource, view).run(item.names[0] if item.names else ""))
            return 0

    return run_program(work)


async def _show(client: Client, requested: Sequence[tuple[ApiResource, Requested]], view: _View) -> int:
    refusals, shown = Refusals(), list[str]()
    items: list[JsonObject] = []
    for found, item in requested:
        responses: list[JsonObject] = []
        for name in item.names or ("",):
            with refusals.reported():
                responses.append(
                    await read_objects(
                        client, found, name, view.place_of(found), view.selector, table=view.as_table
                    )
                )
        if view.as_table:
            shown.append(view.table(found, with_kind=len(requested) > 1).text(responses))
            continue
        single = [part for response in responses for part in _items(found, response)]
        items += single
        if view.output == "name":
            shown.append("".join(f"{name_of(found, part['metadata']['name'])}\n" for part in single))
    if view.output in ("yaml", "json"):
        one = len(requested) == 1 and len(requested[0][1].names) == 1
        if items or not one:
            shown.append(_document(items[0] if one else _list_of(items), view.output))
    # Tables of several kinds are separated, each with its own header.
    text = ("\n" if view.as_table else "").join(part for part in shown if part)
    if text or not view.as_table:
        click.echo(text, nl=False)
    elif not refusals.exit_code:
        click.echo("No resources found", err=True)
    return refusals.exit_code


def _items(found: ApiResource, response: JsonObject) -> list[JsonObject]:
    """Return the objects of a response, with apiVersion and kind, which the items of a list omit."""
    named = {"apiVersion": found.kind.api_version, "kind": found.kind.kind}
    return [{**named, **item} for item in response["items"]] if "items" in response else [response]


def _list_of(items: Sequence[JsonObject]) -> JsonObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(items), "metadata": {"resourceVersion": ""}}


def _document(value: JsonObject, output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
    return yaml.safe_dump(value, sort_keys=False)


class _Watch:
    """Print the objects of a kind, and each again whenever it changes."""

    def __init__(self, client: Client, found: ApiResource, view: _View) -> None:
        self._client = client
        self._found = found
        self._view = view
        self._table = view.table(found)
        self._versions: dict[ObjectKey, str] = {}
        self._rows: dict[ObjectKey, JsonObject] = {}
        self._unseen: set[ObjectKey] = set()
        self._failure = ""

    async def run(self, name: str) -> None:
        """Watch until cancelled; raise if the server rejects the watch."""
        selection = Selection(
            self._found.kind,
            namespace=self._view.place_of(self._found),
            labels=self._view.selector,
            fields=f"metadata.name={name}" if name else "",
        )
        if self._view.as_table:
            await self._list(name)
        async for events in watch_forever(self._client, selection):
            for event in events:
                match event:
                    case Restarted():
                        self._unseen = set(self._versions)
                    case Applied(obj):
                        await self._applied(obj)
                    case Deleted(obj):
                        self._deleted(obj.meta.key, obj)
                    case Synced():
                        for key in sorted(self._unseen):
                            self._deleted(key, None)
                        self._unseen = set()
                    case Failed():
                        self._failed(event)
                    case _:
                        pass

    async def _list(self, name: str) -> None:
        """Print the current table; the watch sends these objects again, and they are not printed twice."""
        place = self._view.place_of(self._found)
        response = await read_objects(
            self._client, self._found, name, place, "" if name else self._view.selector, table=True
        )
        click.echo(self._table.text([response]), nl=False)
        for row in response["rows"] or ():
            metadata = row["object"]["metadata"]
            key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
            self._versions[key] = metadata["resourceVersion"]
            self._rows[key] = {**response, "rows": [row]}

    async def _applied(self, obj: RawObject) -> None:
        key, version = obj.meta.key, obj.meta.resource_version
        self._unseen.discard(key)
        # After a relist all objects are received again, most of them unchanged.
        if self._versions.get(key) == version:
            return
        self._versions[key] = version
        if not self._view.as_table:
            self._print_object(obj)
            return
        try:
            response = await read_objects(self._client, self._found, key.name, key.namespace, table=True)
        except NotFound:
            return
        self._rows[key] = response
        click.echo(self._table.text([response]), nl=False)

    def _deleted(self, key: ObjectKey, obj: RawObject | None) -> None:
        self._versions.pop(key, None)
        row = self._rows.pop(key, None)
        if row is not None:
            click.echo(self._table.text([row]), nl=False)
        elif obj is not None and not self._view.as_table:
            self._print_object(obj)

    def _print_object(self, obj: RawObject) -> None:
        if self._view.output == "name":
            click.echo(name_of(self._found, obj.meta.name))
            return
        kind = self._found.kind
        value = {"apiVersion": kind.api_version, "kind": kind.kind, **parse(obj.raw)}
        click.echo(
            ("---\n" if self._view.output == "yaml" else "") + _document(value, self._view.output), nl=False
        )

    def _failed(self, failed: Failed) -> None:
        if failed.refused:
            raise failed.error
        text = str(failed.error)
        if not failed.ordinary and text != self._failure:
            click.echo(f"Error: {text}; retrying", err=True)
            self._failure = text
