"""One HTTP request as a server receives it."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

from msgspec import Struct


class Request(Struct):
    """One HTTP request; header names are in lower case, repeated headers are joined with commas."""

    method: str
    path: str
    query: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    peer: Mapping[str, Any] | None = None
    """What the handler knows about the client, such as a verified certificate."""
    upgrade: bool = False
    fields: Sequence[tuple[str, str]] = ()
    """All header fields in order, for those that may repeat."""
    keep_alive: bool = True
    chunks: bool = True
    """Whether the client understands chunked bodies: HTTP/1.0 does not."""

    def every(self, name: str) -> list[str]:
        """Return all values of a header field that may repeat."""
        return [value for key, value in self.fields if key == name]

    def one(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Return True if a query parameter is present and neither 0 nor false."""
        values = self.query.get(name)
        return bool(values) and values[0].lower() not in ("false", "0")


def split_target(target: str) -> tuple[str, Mapping[str, list[str]]]:
    """Split a request target into its decoded path and query."""
    path, mark, query = target.partition("?")
    if not path.startswith("/"):
        # The absolute form, with scheme and server before the path, is what proxies receive.
        scheme, named, rest = path.partition("://")
        if named and scheme.lower() in ("http", "https"):
            path = f"/{rest.partition('/')[2]}"
    if "%" in path:
        path = unquote(path)
    if not mark or not query:
        return path, {}
    return path, parse_qs(query, keep_blank_values=True)
