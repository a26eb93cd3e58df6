"""What would change in a cluster, as a diff of YAML."""

import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
import yaml

from kubewright.api import GroupVersionKind, Kind, NotFound
from kubewright.cli.documents.resources import called
from kubewright.client import Client

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
Wire = dict[str, Any]


async def differences(client: Client, documents: Sequence[Wire], field_manager: str) -> list[str]:
    """Give the lines of a diff between what is there and what would be, by the server's own dry run."""
    lines: list[str] = []
    for document in documents:
        kind = await client.resolve(GroupVersionKind.parse(document["apiVersion"], document["kind"]))
        name, namespace = document["metadata"]["name"], document["metadata"].get("namespace", "")
        try:
            live = await client.get(kind, name, namespace)
        except NotFound:
            live = None
        lines += diff(called(document), live, await _planned(client, document, kind, field_manager))
    return lines


async def _planned(client: Client, document: Wire, kind: Kind, field_manager: str) -> Wire:
    try:
        return await client.apply(document, field_manager=field_manager, kind=kind, dry_run=True)
    except NotFound:
        # Its namespace would be made by the same deployment: the server cannot rehearse what comes after.
        return document


def diff(name: str, before: Wire | None, after: Wire | None, *, status: bool = False) -> Iterator[str]:
    """Give the lines by which an object differs; None stands for one that is not there."""
    return difflib.unified_diff(
        _lines(before, status), _lines(after, status), f"live/{name}", f"planned/{name}", lineterm=""
    )


def show(lines: Iterable[str]) -> None:
    """Print a diff, in colours on a terminal."""
    for line in lines:
        click.echo(click.style(line, fg=_COLOURS.get(line[:1])) if sys.stdout.isatty() else line)


def _lines(obj: Wire | None, status: bool) -> list[str]:
    if obj is None:
        return []
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SIDE}
    plain = {name: value for name, value in obj.items() if status or name != "status"} | {
        "metadata": metadata
    }
    if plain["kind"] == "Secret":
        plain = _veiled(plain)
    return yaml.safe_dump(plain, sort_keys=True, allow_unicode=True).splitlines()


def _veiled(secret: Wire) -> Wire:
    """Keep what a Secret holds out of terminals and logs; that it changes is seen by its length."""
    for field in ("data", "stringData"):
        if values := secret.get(field):
            hidden = {key: f"<{len(str(value))} characters>" for key, value in values.items()}
            secret = secret | {field: hidden}
    return secret
