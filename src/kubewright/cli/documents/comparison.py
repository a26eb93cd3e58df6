"""Changes that an apply would make in a cluster, as a diff of YAML."""

import copy
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import click
import yaml

from kubewright.api import (
    ApiError,
    Forbidden,
    GroupVersionKind,
    JsonObject,
    Kind,
    KubewrightError,
    NotFound,
    Unauthorized,
)
from kubewright.cli.colours import painted
from kubewright.cli.documents.brought import Brought, brought_kinds
from kubewright.cli.documents.resources import called
from kubewright.client import Client

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_SECRET_VALUES = (("data",), ("stringData",), ("metadata", "annotations"))
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class InvalidDocument(KubewrightError):
    """An object is not valid according to the CRD among the documents."""


class Comparison(NamedTuple):
    """The changes as lines of a diff, notes on objects without a server-side dry run, and errors of rejected objects."""

    lines: list[str]
    unrehearsed: list[str]
    refused: list[str]


async def differences(client: Client, documents: Sequence[JsonObject], field_manager: str) -> Comparison:
    """Compare the live objects with the result of a server-side dry run.

    The server cannot dry-run an object whose kind or namespace does not exist yet. An object of such a kind is
    validated against the CRD among the documents; both cases are noted.
    """
    brought, found = brought_kinds(documents), Comparison([], [], [])
    for document in documents:
        try:
            await _compare(client, document, field_manager, brought, found)
        except Unauthorized:
            # The same error would repeat for every object.
            raise
        except (ApiError, InvalidDocument) as error:
            found.refused.append(str(error))
    return found


async def _compare(
    client: Client,
    document: JsonObject,
    field_manager: str,
    brought: Mapping[GroupVersionKind, Brought],
    found: Comparison,
) -> None:
    gvk = GroupVersionKind.parse(document["apiVersion"], document["kind"])
    try:
        kind = await client.resolve(gvk)
    except NotFound:
        if gvk not in brought:
            raise
        _check(document, brought[gvk])
        found.lines.extend(diff(called(document), None, document))
        found.unrehearsed.append(f"{called(document)} was checked against the CRD beside it alone")
        return
    live = await _live(client, kind, document)
    try:
        planned = await client.apply(document, field_manager=field_manager, kind=kind, dry_run=True)
    except NotFound:
        planned = document
        found.unrehearsed.append(f"{called(document)} was not checked: its namespace is not there yet")
    except Forbidden as error:
        if not error.namespace_terminating:
            raise
        planned = document
        found.unrehearsed.append(f"{called(document)} was not checked: its namespace is on its way out")
    # Without a status subresource, an apply sets the status like any other field.
    found.lines.extend(diff(called(document), live, planned, status="status" in document))


async def _live(client: Client, kind: Kind, document: JsonObject) -> JsonObject | None:
    try:
        return await client.get(kind, document["metadata"]["name"], document["metadata"].get("namespace", ""))
    except NotFound:
        return None


def _check(document: JsonObject, brought: Brought) -> None:
    if troubles := brought.troubles(document):
        raise InvalidDocument(f"{called(document)} is invalid: {'; '.join(troubles)}")


def diff(
    name: str, before: JsonObject | None, after: JsonObject | None, *, status: bool = False
) -> Iterator[str]:
    """Yield the lines of the diff of an object; None means that it does not exist.

    The values of a Secret are masked as in `kubectl diff`: the diff shows that a value changes, not the value.
    """
    before, after = _shown(before, status), _shown(after, status)
    if "Secret" in (before.get("kind"), after.get("kind")):
        before, after = _masked(before, after)
    return difflib.unified_diff(_lines(before), _lines(after), f"live/{name}", f"planned/{name}", lineterm="")


def show_comparison(found: Comparison) -> int:
    """Print the differences, and on standard error notes and rejected objects; return the exit code."""
    show(found.lines or ([] if found.refused else ["nothing would change"]))
    for note in found.unrehearsed:
        click.echo(f"note: {note}", err=True)
    for refusal in found.refused:
        click.echo(f"Error: {refusal}", err=True)
    return int(bool(found.refused))


def show_client_dry_run(documents: Iterable[JsonObject]) -> int:
    """Print the objects that would be sent; return the exit code."""
    for document in documents:
        click.echo(f"{called(document)} serverside-applied (dry run)")
    return 0


def show(lines: Iterable[str]) -> None:
    """Print a diff, in colours on a terminal."""
    colour = painted(sys.stdout)
    for line in lines:
        click.echo(click.style(line, fg=_COLOURS.get(line[:1])) if colour else line)


def _shown(obj: JsonObject | None, status: bool) -> JsonObject:
    """Return the fields to compare, without those that only the server sets."""
    if obj is None:
        return {}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SIDE}
    fields = {name: value for name, value in obj.items() if status or name != "status"}
    return fields | {"metadata": metadata}


def _lines(fields: JsonObject) -> list[str]:
    return yaml.safe_dump(fields, sort_keys=True, allow_unicode=True).splitlines() if fields else []


def _masked(before: JsonObject, after: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Mask the values of two states of a Secret; values that differ still differ."""
    before, after = copy.deepcopy(before), copy.deepcopy(after)
    for path in _SECRET_VALUES:
        old, new = _values(before, path), _values(after, path)
        for key in old.keys() | new.keys():
            if path[0] == "metadata" and key != _LAST_APPLIED:
                continue
            differs = key in old and key in new and old[key] != new[key]
            for values, side in ((old, "before"), (new, "after")):
                if key in values:
                    values[key] = f"*** ({side})" if differs else "***"
    return before, after


def _values(obj: JsonObject, path: Sequence[str]) -> JsonObject:
    found: JsonObject = obj
    for name in path:
        found = found.get(name) or {}
    return found
