"""Write response bodies: JSON, YAML, protobuf, warnings and Status errors."""

import gzip
from typing import Any

import msgspec
import yaml

from kubewright.devserver.objects import JsonObject, decode, encode
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.negotiation import PROTOBUF, YAML, negotiate_plain
from kubewright.devserver.wire import TypeTable, load_types
from kubewright.http.server import JSON, Request, Response

MIN_COMPRESSED = 128 * 1024
COMPRESSED = [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
"""Headers of a body that is sent with gzip."""
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


def warning_header(message: str) -> tuple[str, str]:
    """Make a Warning header as kubectl prints it."""
    clean = "".join(char for char in message if char >= " " and char != "\x7f")
    quoted = clean.replace("\\", "\\\\").replace('"', '\\"')
    return ("Warning", f'299 - "{quoted}"')


_STR = "tag:yaml.org,2002:str"
_NOT_PLAIN = frozenset("yYnN")


class _Dumper(yaml.SafeDumper):
    """Quote strings that YAML 1.1 would read as another type, always with double quotes."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif text in _NOT_PLAIN or _resolve(dumper, text) != _STR:
        style = '"'
    return yaml.ScalarNode(_STR, text, style=style)


def _resolve(dumper: yaml.SafeDumper, text: str) -> str:
    resolver: Any = dumper
    return resolver.resolve(yaml.ScalarNode, text, (True, False))


_Dumper.add_representer(str, _represent_text)


def dump_yaml(document: JsonObject) -> bytes:
    """Write a document with sorted keys."""
    return yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True).encode()


def encode_body(
    request: Request, data: bytes, media: str, types: TypeTable | None = None
) -> tuple[bytes, str]:
    """Write JSON bytes as YAML, as protobuf or indented, if the client requests it.

    `types` has the kind of the document; kinds that all releases have need none.
    """
    if media == PROTOBUF:
        return (types or load_types()).encode_protobuf(decode(data)), PROTOBUF
    if media == YAML:
        return dump_yaml(decode(data)), YAML
    if _pretty(request):
        return prettify(data), JSON
    # Go's encoder ends what it writes with a newline, unless it is indented.
    return data + b"\n", JSON


def compressible(request: Request, body: bytes) -> bool:
    """Return True if a body is sent with gzip: as in kube-apiserver, from 128 KiB on, for clients that name just gzip."""
    if len(body) < MIN_COMPRESSED:
        return False
    return "gzip" in [part.strip() for part in request.headers.get("accept-encoding", "").split(",")]


def compress(body: bytes) -> bytes:
    """Compress a body with gzip, quickly rather than well."""
    return gzip.compress(body, compresslevel=1, mtime=0)


def _pretty(request: Request) -> bool:
    if "pretty" in request.query:
        return request.flag("pretty")
    return request.headers.get("user-agent", "").startswith(_BROWSERS)


def prettify(data: bytes) -> bytes:
    """Indent JSON by two spaces."""
    return msgspec.json.format(data, indent=2)


def refuse(request: Request, error: StatusError, warnings: list[str]) -> Response:
    """Return the response with the Status of an error."""
    headers = [warning_header(text) for text in dict.fromkeys(warnings)]
    if error.retry_after:
        headers.append(("Retry-After", str(error.retry_after)))
    data = encode(error.wire())
    accepted = negotiate_plain(request.headers.get("accept", ""))
    if accepted is None:
        # kube-apiserver does not encode it as any other response then: it is always indented.
        return Response(error.code, prettify(data), JSON, headers)
    body, media = encode_body(request, data, accepted)
    return Response(error.code, body, media, headers)
