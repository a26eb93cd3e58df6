"""Discovery: aggregated if the server supports it, otherwise group by group; cached."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec

from kubewright.api import (
    ApiError,
    GroupVersionKind,
    Kind,
    NotFound,
    Status,
    UnexpectedResponse,
)
from kubewright.client.requests import JSON, ApiRequest, get_path
from kubewright.http.client import ClientResponse

T = TypeVar("T")
_AGGREGATED = "as=APIGroupDiscoveryList"
_ACCEPT = ",".join(
    (*(f"{JSON};g=apidiscovery.k8s.io;v={version};{_AGGREGATED}" for version in ("v2", "v2beta1")), JSON)
)


class ApiResource(msgspec.Struct, frozen=True):
    """One resource of one group version, with its verbs."""

    kind: Kind
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()


class ServerVersion(msgspec.Struct, frozen=True, rename="camel"):
    """The version of a server."""

    major: str = ""
    minor: str = ""
    git_version: str = ""
    platform: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """Return major and minor as numbers; a provider's suffix such as `31+` is left out."""
        major, minor = ("".join(filter(str.isdigit, part)) for part in (self.major, self.minor))
        return int(major or 0), int(minor or 0)


class _ResponseKind(msgspec.Struct):
    kind: str = ""
    group: str = ""
    version: str = ""


class _Subresource(msgspec.Struct):
    subresource: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str = ""
    response_kind: _ResponseKind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource] | None = None


class _Name(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Name
    versions: list[_Version] | None = None


class _Aggregated(msgspec.Struct):
    items: list[_Group] | None = None


class _LegacyResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _LegacyResources(msgspec.Struct):
    resources: list[_LegacyResource] | None = None


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _LegacyGroup(msgspec.Struct):
    name: str
    versions: list[_GroupVersion] | None = None


class _LegacyGroups(msgspec.Struct):
    groups: list[_LegacyGroup] | None = None


class _LegacyVersions(msgspec.Struct):
    versions: list[str] | None = None


class DiscoveryClient:
    """Discover the resources of a server; found kinds are cached, missing ones are requested again."""

    def __init__(self, send: Callable[[ApiRequest], Awaitable[ClientResponse]]) -> None:
        self._send = send
        self._kinds: dict[GroupVersionKind, Kind] = {}
        self._aggregated: dict[str, tuple[str, list[ApiResource]]] = {}

    async def resolve(self, gvk: GroupVersionKind) -> Kind:
        """Return the resource of a kind; only its group version is requested."""
        known = self._kinds.get(gvk)
        if known is None:
            try:
                found = await self._group_version(gvk.group, gvk.version)
            except NotFound:
                found = []
            for resource in found:
                self._kinds.setdefault(resource.kind.gvk, resource.kind)
            known = self._kinds.get(gvk)
        if known is None:
            status = Status(message="the server does not serve it", reason="NotFound", code=404)
            raise NotFound(status, verb="discover", object=str(gvk))
        return known

    async def api_resources(self) -> list[ApiResource]:
        """Return every resource of every group version."""
        found = [resource for path in ("/api", "/apis") for resource in await self._below(path)]
        self._kinds = {resource.kind.gvk: resource.kind for resource in reversed(found)}
        return found

    async def server_version(self) -> ServerVersion:
        """Return the version of the server."""
        return _read(ServerVersion, await self._send(get_path("/version")), "/version")

    async def _below(self, path: str) -> list[ApiResource]:
        etag, known = self._aggregated.get(path, ("", []))
        headers = (("If-None-Match", etag),) if etag else ()
        response = await self._send(get_path(path, accept=_ACCEPT, headers=headers))
        if response.status == 304:
            return known
        if _AGGREGATED not in response.headers.get("Content-Type", ""):
            return await self._legacy(path, response)
        found = list(_from_aggregated(_read(_Aggregated, response, path)))
        self._aggregated[path] = (response.headers.get("ETag", ""), found)
        return found

    async def _legacy(self, path: str, response: ClientResponse) -> list[ApiResource]:
        if path == "/api":
            versions = [("", version) for version in _read(_LegacyVersions, response, path).versions or ()]
        else:
            versions = [
                (group.name, version.group_version.rpartition("/")[2])
                for group in _read(_LegacyGroups, response, path).groups or ()
                for version in group.versions or ()
            ]
        found: list[ApiResource] = []
        for group, version in versions:
            try:
                found.extend(await self._group_version(group, version))
            except ApiError as error:
                # An extension server that is down must not hide what the others serve.
                if error.status.code not in (404, 503):
                    raise
        return found

    async def _group_version(self, group: str, version: str) -> list[ApiResource]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        response = await self._send(get_path(path))
        return list(_from_legacy(group, version, _read(_LegacyResources, response, path)))


def _from_aggregated(document: _Aggregated) -> Iterator[ApiResource]:
    for group in document.items or ():
        for version in group.versions or ():
            for resource in version.resources or ():
                if resource.response_kind is None:
                    continue
                subresources = tuple(sub.subresource for sub in resource.subresources or ())
                kind = Kind(
                    group=group.metadata.name,
                    version=version.version,
                    kind=resource.response_kind.kind,
                    plural=resource.resource,
                    singular=resource.singular_resource,
                    namespaced=resource.scope == "Namespaced",
                    short_names=tuple(resource.short_names or ()),
                    categories=tuple(resource.categories or ()),
                    status="status" in subresources,
                )
                yield ApiResource(kind, tuple(resource.verbs or ()), subresources)


def _from_legacy(group: str, version: str, document: _LegacyResources) -> Iterator[ApiResource]:
    resources = document.resources or []
    for resource in resources:
        if "/" in resource.name:
            continue
        subresources = tuple(
            other.name.partition("/")[2] for other in resources if other.name.startswith(f"{resource.name}/")
        )
        kind = Kind(
            group=group,
            version=version,
            kind=resource.kind,
            plural=resource.name,
            singular=resource.singular_name,
            namespaced=resource.namespaced,
            short_names=tuple(resource.short_names or ()),
            categories=tuple(resource.categories or ()),
            status="status" in subresources,
        )
        yield ApiResource(kind, tuple(resource.verbs or ()), subresources)


def _read(model: type[T], response: ClientResponse, path: str) -> T:
    try:
        return msgspec.json.decode(response.body, type=model)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UnexpectedResponse(f"{path} is not the response of a Kubernetes API server") from None
