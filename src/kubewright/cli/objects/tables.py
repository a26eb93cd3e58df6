"""Tables of objects as the server prints them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from kubewright.api import JsonObject
from kubewright.client import ApiResource, Client, requests

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

_LINE_END = re.compile(r"[\n\r\f]")


async def read_objects(
    client: Client, found: ApiResource, name: str, namespace: str, selector: str = "", *, table: bool
) -> JsonObject:
    """Read one object, or all objects of a kind that match the selector, as they are or as a table."""
    kind = found.kind
    path = requests.object_path(kind, name, namespace) if name else requests.collection_path(kind, namespace)
    query = urlencode({"labelSelector": selector}) if selector else ""
    request = requests.get_path(path, accept=TABLE if table else requests.JSON)
    response = await client.raw(msgspec.structs.replace(request, query=query))
    return msgspec.json.decode(response.body, type=dict[str, Any])


def name_of(found: ApiResource, name: str) -> str:
    """Return an object's name with its kind: `deployment.apps/web`."""
    kind = found.kind
    return f"{kind.kind.lower()}.{kind.group}/{name}" if kind.group else f"{kind.kind.lower()}/{name}"


class Table:
    """Format rows of one kind; rows that are added later use the column widths of the first ones."""

    def __init__(self, found: ApiResource, *, wide: bool, with_namespace: bool, with_kind: bool) -> None:
        self._found = found
        self._wide = wide
        self._with_namespace = with_namespace
        self._with_kind = with_kind
        self._columns: list[tuple[int, str]] = []
        self._widths: list[int] = []

    def text(self, responses: Sequence[JsonObject]) -> str:
        """Return the rows of responses, after the header if these are the first; empty if there are no rows."""
        rows = [row for response in responses for row in response["rows"] or ()]
        if not rows:
            return ""
        lines: list[list[str]] = []
        if not self._columns:
            definitions = enumerate(responses[0]["columnDefinitions"])
            self._columns = [
                (index, item["name"].upper())
                for index, item in definitions
                if self._wide or not item["priority"]
            ]
            lines.append(
                [*(["NAMESPACE"] if self._with_namespace else []), *(title for _, title in self._columns)]
            )
        lines += [self._line(row) for row in rows]
        widths = [max(len(line[index]) for line in lines) for index in range(len(lines[0]))]
        self._widths = [max(pair) for pair in zip(widths, self._widths or widths, strict=True)]
        return "".join(self._laid_out(lines))

    def _line(self, row: JsonObject) -> list[str]:
        metadata = row["object"]["metadata"]
        cells = [_cell(row["cells"][index]) for index, _ in self._columns]
        if self._with_kind and cells:
            cells[0] = name_of(self._found, metadata["name"])
        return [metadata.get("namespace", ""), *cells] if self._with_namespace else cells

    def _laid_out(self, lines: Iterable[Sequence[str]]) -> Iterable[str]:
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, self._widths, strict=True))
            yield "   ".join(cells).rstrip() + "\n"


def _cell(value: Any) -> str:
    """Return a cell as kubectl prints it: nothing for a missing value, the first line of a text, escapes made visible."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    # Line breaks would break the table, and escape sequences could change the terminal.
    first = _LINE_END.split(text, maxsplit=1)[0]
    return f"{first}{'...' if first != text else ''}".replace("\x1b", "^[")
