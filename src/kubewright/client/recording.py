"""Recorded API requests, as RBAC verbs and resources, to check which rules were used."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import parse_qs

import msgspec

from kubewright.api import ApiError, Forbidden
from kubewright.client.requests import ApiRequest

VARIABLE = "KUBEWRIGHT_RECORD_ACCESS"
"""Environment variable with the file to which the test kit writes the requests of operators under test."""
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class RecordedAccess(msgspec.Struct, frozen=True, order=True):
    """One permission that was used; a subresource follows its resource after a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    denied: bool = False


class Recorded(msgspec.Struct):
    """The permissions that one run of an operator used."""

    operator: str
    accesses: list[RecordedAccess]


class Recording:
    """Collect accesses: pass `observe` to a `ClusterConfig` as its observer."""

    def __init__(self) -> None:
        self.accesses: Counter[RecordedAccess] = Counter()

    def observe(self, request: ApiRequest, code: int, refusal: ApiError | None) -> None:
        """Record a request; paths that are not resources are ignored."""
        access = access_of(request)
        if access is None:
            return
        # A refusal without a rule comes from admission, such as in a terminating namespace. One with a rule may
        # name another verb: an apply that creates the object needs `create` too.
        if isinstance(refusal, Forbidden) and refusal.rule is not None:
            access = msgspec.structs.replace(access, verb=refusal.rule.verb, denied=True)
        self.accesses[access] += 1
        if code == 201 and access.verb == "patch":
            # An apply that creates is authorized as both.
            self.accesses[msgspec.structs.replace(access, verb="create")] += 1

    def append_to(self, path: Path, operator: str) -> None:
        """Append the recorded permissions to a file, as one line of JSON."""
        line = msgspec.json.encode(Recorded(operator, sorted(self.accesses)))
        with path.open("ab") as file:
            file.write(line + b"\n")


def read_recordings(path: Path) -> Iterable[Recorded]:
    """Read the recordings of all runs."""
    decoder = msgspec.json.Decoder(Recorded)
    return [decoder.decode(line) for line in path.read_bytes().splitlines() if line.strip()]


def access_of(request: ApiRequest) -> RecordedAccess | None:
    """Return the permission that a request needs, or None if the path is not a resource."""
    parts = request.path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return None
    namespace = ""
    # In /namespaces/x itself, and in its subresources, the resource is the namespace.
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    name = rest[1] if len(rest) > 1 else ""
    resource = "/".join([rest[0], *rest[2:3]])
    return RecordedAccess(_verb(request, name), group, resource, namespace, name)


def _verb(request: ApiRequest, name: str) -> str:
    if request.method == "GET":
        watching = parse_qs(request.query).get("watch") == ["true"]
        return "watch" if watching else "get" if name else "list"
    if request.method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS[request.method]
