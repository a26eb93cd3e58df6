"""What a client asks for: one HTTP request."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

from msgspec import Struct


class Request(Struct):
    """One HTTP request; names of fields are in small letters, repeated ones are joined as HTTP allows."""

    method: str
    path: str
    query: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""
    peer: Mapping[str, Any] | None = None
    """What the handler knows of who is connected, such as a verified certificate."""
    upgrade: bool = False
    fields: Sequence[tuple[str, str]] = ()
    """Every field as it came, for those that may repeat."""
    keep_alive: bool = True
    chunks: bool = True
    """Whether the client understands a body in chunks: those of HTTP/1.0 do not."""

    def every(self, name: str) -> list[str]:
        """Give the values of a field that may repeat."""
        return [value for key, value in self.fields if key == name]

    def one(self, name: str, default: str = "") -> str:
        """Give the first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Read a boolean query parameter: present, and neither 0 nor false."""
        values = self.query.get(name)
        return bool(values) and values[0].lower() not in ("false", "0")


def split_target(target: str) -> tuple[str, Mapping[str, list[str]]]:
    """Split a request target into its decoded path and query."""
    path, mark, query = target.partition("?")
    if not path.startswith("/"):
        # As proxies ask: with the server before the path.
        scheme, named, rest = path.partition("://")
        if named and scheme.lower() in ("http", "https"):
            path = f"/{rest.partition('/')[2]}"
    if "%" in path:
        path = unquote(path)
    if not mark or not query:
        return path, {}
    return path, parse_qs(query, keep_blank_values=True)
