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
from kubewright.cli.documents.defined_kinds import DefinedKind, defined_kinds
from kubewright.cli.documents.resources import called
from kubewright.cli.logs import painted
from kubewright.client import Client

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_SERVER_SIDE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_SECRET_VALUES = (("data",), ("stringData",), ("metadata", "annotations"))
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class InvalidDocument(KubewrightError):
    """An object is not valid according to the CRD among the documents."""


class ApplyDiff(NamedTuple):
    """What an apply would do: a diff, notes on objects without a server-side dry run, errors of rejected objects."""

    lines: list[str]
    notes: list[str]
    errors: list[str]


async def differences(client: Client, documents: Sequence[JsonObject], field_manager: str) -> ApplyDiff:
    """Compare the live objects with the result of a server-side dry run.

    The server cannot dry-run an object whose kind or namespace does not exist yet. An object of such a kind is
    validated against the CRD among the documents; both cases are noted.
    """
    defined, found = defined_kinds(documents), ApplyDiff([], [], [])
    for document in documents:
        try:
            await _compare(client, document, field_manager, defined, found)
        except Unauthorized:
            # The same error would repeat for every object.
            raise
        except (ApiError, InvalidDocument) as error:
            found.errors.append(str(error))
    return found


async def _compare(
    client: Client,
    document: JsonObject,
    field_manager: str,
    defined: Mapping[GroupVersionKind, DefinedKind],
    found: ApplyDiff,
) -> None:
    gvk = GroupVersionKind.parse(document["apiVersion"], document["kind"])
    try:
        kind = await client.resolve(gvk)
    except NotFound:
        if gvk not in defined:
            raise
        _validate(document, defined[gvk])
        found.lines.extend(diff(called(document), None, document))
        found.notes.append(f"{called(document)} was validated only against its CRD in the files")
        return
    live = await _live(client, kind, document)
    try:
        planned = await client.apply(document, field_manager=field_manager, kind=kind, dry_run=True)
    except NotFound:
        planned = document
        found.notes.append(f"{called(document)} was not checked: its namespace does not exist yet")
    except Forbidden as error:
        if not error.namespace_terminating:
            raise
        planned = document
        found.notes.append(f"{called(document)} was not checked: its namespace is being terminated")
    # Without a status subresource, an apply sets the status like any other field.
    found.lines.extend(diff(called(document), live, planned, status="status" in document))


async def _live(client: Client, kind: Kind, document: JsonObject) -> JsonObject | None:
    try:
        return await client.get(kind, document["metadata"]["name"], document["metadata"].get("namespace", ""))
    except NotFound:
        return None


def _validate(document: JsonObject, defined: DefinedKind) -> None:
    if errors := defined.validation_errors(document):
        raise InvalidDocument(f"{called(document)} is invalid: {'; '.join(errors)}")


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


def show_diff(found: ApplyDiff) -> int:
    """Print the differences, and on standard error notes and rejected objects; return the exit code."""
    show(found.lines or ([] if found.errors else ["nothing would change"]))
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    for error in found.errors:
        click.echo(f"Error: {error}", err=True)
    return int(bool(found.errors))


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
