"""The path of a request as verb, resource and name."""

from msgspec import Struct

from kubewright.api import SelectorError, names, parse_fields
from kubewright.http.server import Request

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})

FINGERPRINT = "fingerprint"
"""The key under which a peer certificate carries its SHA-256 digest."""


class RequestInfo(Struct):
    """A parsed path; `resource` is empty for non-resource paths."""

    verb: str
    path: str
    prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows the subresource, as in `pods/p/proxy/a/b`."""
    scoped: bool = False
    """The path names a namespace."""
    selected_name: str = ""
    """The one name that the field selector of a list or watch permits: rules for single names apply to it."""


def request_info(request: Request) -> RequestInfo:
    """Return the parsed path of a request, from its method, path and query."""
    path = request.path
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return _of_path(request)
    info = RequestInfo(_VERBS.get(request.method, ""), path, prefix=parts[0])
    rest = parts[1:]
    if parts[0] == "apis":
        if len(rest) < 3:
            return _of_path(request)
        info.group, rest = rest[0], rest[1:]
    info.version, rest = rest[0], rest[1:]
    watched = rest[0] == "watch"
    if watched:
        if len(rest) < 2:
            return _of_path(request)
        info.verb, rest = "watch", rest[1:]
    _read_parts(info, rest)
    if not watched and not info.name:
        if info.verb == "get":
            info.verb = "watch" if request.flag("watch") else "list"
            info.selected_name = _selected_name(request.one("fieldSelector"))
        elif info.verb == "delete":
            info.verb = "deletecollection"
    return info


def _of_path(request: Request) -> RequestInfo:
    """Return the information about a request whose path names no resource."""
    return RequestInfo(request.method.lower(), request.path)


def _selected_name(selector: str) -> str:
    if not selector:
        return ""
    try:
        name = parse_fields(selector).exact("metadata.name") or ""
    except SelectorError:
        # The list itself reports it, to users who may list.
        return ""
    return "" if names.path_segment(name) else name


def _read_parts(info: RequestInfo, parts: list[str]) -> None:
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
            info.scoped = True
    info.resource = parts[0]
    if len(parts) > 1:
        info.name = parts[1]
    if len(parts) > 2:
        info.subresource = parts[2]
        info.rest = tuple(parts[3:])
