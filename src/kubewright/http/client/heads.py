"""The bytes before a body: headers, made once for all requests that share them (pure)."""

from collections.abc import Iterable


def encode_headers(fields: Iterable[tuple[str, str]]) -> bytes:
    """Write headers out; a value that would begin another header is refused, unseen."""
    lines: list[str] = []
    for name, value in fields:
        if "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f"the header {name} would hold a line break")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


def encode_request(method: str, target: str, head: bytes, body: bytes) -> bytes:
    """Return all of a request that comes before its body."""
    if not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError("the request's target is not quoted")
    if body or method not in ("GET", "DELETE"):
        return b"%b %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (
            method.encode(),
            target.encode(),
            head,
            len(body),
        )
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method.encode(), target.encode(), head)
