"""Kinds by plural, singular or short name, and documents from files."""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from kubewright.api import JsonObject, KubewrightError
from kubewright.client import ApiResource, Client
from kubewright.documents import DocumentError, read_json, read_yaml


class ResourceError(KubewrightError):
    """An unknown kind, or a file without objects."""


class Requested(NamedTuple):
    """Objects selected on the command line: a kind or a category as typed, and names; no names select all."""

    resource: str
    names: tuple[str, ...] = ()


def requested_objects(words: Sequence[str]) -> list[Requested]:
    """Parse KIND[,KIND]... [NAME]... or KIND/NAME..., as kubectl does; raise UsageError for a mixture of both."""
    if not any("/" in word for word in words):
        kinds = [kind for kind in words[0].split(",") if kind] if words else []
        if not kinds:
            raise click.UsageError("name a KIND, or objects as KIND/NAME")
        return [Requested(kind, tuple(words[1:])) for kind in kinds]
    found: dict[str, list[str]] = {}
    for word in words:
        kind, _, name = word.partition("/")
        if not kind or not name or "/" in name or "," in word:
            raise click.UsageError(f"{word!r} is not KIND/NAME: either all arguments are, or none is")
        found.setdefault(kind, []).append(name)
    return [Requested(kind, tuple(names)) for kind, names in found.items()]


async def find_resource(client: Client, name: str) -> ApiResource:
    """Find a kind by plural, singular, short name or kind, with or without its group: `vg`, `deployments.apps`."""
    plain, _, group = name.lower().partition(".")
    for resource in await client.api_resources():
        kind = resource.kind
        called = {kind.plural, kind.singular, kind.kind.lower(), *kind.short_names}
        if plain in called and (not group or kind.group == group):
            return resource
    raise ResourceError(f'the server doesn\'t have a resource type "{name}"')


async def find_resources(client: Client, name: str) -> list[ApiResource]:
    """Find the kinds of a category such as `all` that can be listed, or the one kind of this name."""
    found: dict[tuple[str, str], ApiResource] = {}
    for resource in await client.api_resources():
        if name in resource.kind.categories and "list" in resource.verbs:
            found.setdefault((resource.kind.group, resource.kind.plural), resource)
    return list(found.values()) or [await find_resource(client, name)]


def read_documents(paths: Sequence[Path]) -> list[JsonObject]:
    """Read the objects of YAML or JSON files; `-` is standard input, and of a folder all files are read."""
    documents = [document for path in paths for source in _sources(path) for document in _parse(source)]
    if paths and not documents:
        raise ResourceError(f"{', '.join(map(str, paths))}: there are no objects in it")
    return documents


def _sources(path: Path) -> Iterable[Path]:
    try:
        if not path.is_dir():
            return [path]
        return sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
    except OSError as error:
        raise ResourceError(f"cannot read {path}: {error.strerror}") from None


def _parse(path: Path) -> list[JsonObject]:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ResourceError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ResourceError(f"{path}:{line} is not valid UTF-8") from None
    return [
        document
        for value in read_values(text, str(path))
        if value is not None
        for document in _unpacked(value, path)
    ]


def read_values(text: str, source: str) -> list[Any]:
    """Return the values of a JSON or YAML text; raise ResourceError if it is invalid or repeats a key."""
    if text.lstrip().startswith("{"):
        # Invalid JSON may be YAML in flow style, so errors are reported as those of YAML.
        with suppress(DocumentError):
            return [read_json(text)]
    try:
        documents = list(read_yaml(text))
    except DocumentError as error:
        raise ResourceError(f"{source} is not valid YAML: {error}") from None
    if repeated := [problem for document in documents for problem in document.repeated]:
        raise ResourceError(f"{source} is not valid YAML: {'; '.join(repeated)}")
    return [document.value for document in documents]


def _unpacked(found: object, path: Path) -> list[JsonObject]:
    """Return the object, or the items of a List; raise ResourceError if a name is missing."""
    document = cast("JsonObject", found) if isinstance(found, dict) else {}
    if not all(isinstance(document.get(name), str) for name in ("apiVersion", "kind")):
        raise ResourceError(f"{path} contains a document without apiVersion and kind")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        return [item for part in document["items"] for item in _unpacked(part, path)]
    metadata = document.get("metadata")
    name = cast("JsonObject", metadata).get("name") if isinstance(metadata, dict) else None
    if name is None or name == "":
        raise ResourceError(f"{path} contains a {document['kind']} without metadata.name")
    if not isinstance(name, str):
        raise ResourceError(
            f"{path} contains a {document['kind']} whose metadata.name is {json.dumps(name)}: put it in quotes"
        )
    return [document]


def called(document: JsonObject) -> str:
    """Return an object's name as shown in messages: `deployment.apps/web`."""
    group = document["apiVersion"].rpartition("/")[0]
    kind = document["kind"].lower()
    return (
        f"{kind}.{group}/{document['metadata']['name']}"
        if group
        else f"{kind}/{document['metadata']['name']}"
    )
