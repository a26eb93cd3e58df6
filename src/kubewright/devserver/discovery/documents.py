"""Non-resource paths: discovery, OpenAPI, health, version, and the keys of the token issuer."""

import hashlib
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any

from kubewright.devserver.data import KubernetesRelease
from kubewright.devserver.discovery.discovery import AGGREGATED, Discovery, Document
from kubewright.devserver.discovery.openapi import OpenApi
from kubewright.devserver.objects import JsonObject, encode
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.negotiation import (
    OFFERED,
    aggregated_version,
    check_accepted,
    negotiate_plain,
)
from kubewright.devserver.request.responses import COMPRESSED, compress, compressible, encode_body, prettify
from kubewright.http.server import JSON, TEXT, Request, Response, text

CHECKS = ("ping", "log", "etcd", "informer-sync", "poststarthook/start-apiextensions-controllers")
# The release in which /version began to show which version is emulated.
_FIRST_EMULATION = 33
_HEALTH = ("healthz", "livez", "readyz")
# Clients write either sign between name and version.
_SWAGGER_PROTOBUF = (
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
)
# kube-apiserver indents these documents for all clients, not for browsers alone.
_MEDIA_TYPES = {"/openid/v1/jwks": "application/jwk-set+json"}
_INDENTED = ("/", "/version")
_IMMUTABLE = ("Cache-Control", "public, immutable")


def version_document(release: KubernetesRelease) -> JsonObject:
    """Return what /version shows."""
    emulated: JsonObject = {
        "emulationMajor": "1",
        "emulationMinor": str(release.minor),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(release.minor - 1),
    }
    return {
        "major": "1",
        "minor": str(release.minor),
        **(emulated if release.minor >= _FIRST_EMULATION else {}),
        "gitVersion": f"v{release.version}+kubewright",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


class Documents:
    """Respond to GET requests for non-resource paths."""

    def __init__(
        self,
        release: KubernetesRelease,
        discovery: Discovery,
        openapi: OpenApi,
        key_set: Callable[[], JsonObject],
        issuer: Callable[[], JsonObject],
    ) -> None:
        self._discovery = discovery
        self._openapi = openapi
        self._modified = ("Last-Modified", formatdate(usegmt=True))
        version = version_document(release)
        self._pages: dict[str, Callable[[], JsonObject]] = {
            "/version": lambda: version,
            "/openid/v1/jwks": key_set,
            "/.well-known/openid-configuration": issuer,
            "/": self._root,
        }

    def respond(self, request: Request) -> Response | Coroutine[Any, Any, Response]:
        """Respond by path."""
        path = request.path.rstrip("/") or "/"
        if request.method not in ("GET", "HEAD"):
            raise StatusError.method_not_allowed()
        parts = path.strip("/").split("/")
        if request.method != "GET" and parts[0] in ("version", "api", "apis"):
            raise StatusError.method_not_allowed()
        if path == "/version":
            check_accepted(request.headers.get("accept", ""), (JSON,))
        if path in self._pages:
            body = encode(self._pages[path]())
            return Response(200, prettify(body) if path in _INDENTED else body, _MEDIA_TYPES.get(path, JSON))
        if parts[0] in _HEALTH:
            return self._health(request, parts[0], "/".join(parts[1:]))
        if parts[0] == "openapi":
            return self._openapi_document(request, parts[1:])
        if parts[0] in ("api", "apis"):
            return self._discover(request, parts)
        return _missing()

    def _root(self) -> JsonObject:
        known = [*self._discovery.paths(), "/openapi/v2", "/openapi/v3", *(f"/{name}" for name in _HEALTH)]
        return {"paths": sorted([*known, *(path for path in self._pages if path != "/")])}

    def _discover(self, request: Request, parts: list[str]) -> Response:
        version = aggregated_version(request.headers.get("accept", ""))
        if len(parts) == 1:
            core = parts[0] == "api"
            if version:
                document = self._discovery.aggregated(version, core=core)
                return _tagged(request, document, AGGREGATED.format(version))
            found = self._discovery.versions() if core else self._discovery.groups()
            return Response(*_written(request, found.body))
        found = None
        if parts[0] == "api" and len(parts) == 2:
            found = self._discovery.resources("", parts[1])
        elif parts[0] == "apis" and len(parts) == 2:
            found = self._discovery.group(parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = self._discovery.resources(parts[1], parts[2])
        if found is not None:
            return Response(*_written(request, found.body))
        if parts[0] == "api" or (len(parts) == 3 and self._discovery.group(parts[1]) is not None):
            raise StatusError.no_such_path()
        return _missing()

    async def _openapi_document(self, request: Request, parts: list[str]) -> Response:
        accept = request.headers.get("accept", "*/*")
        if parts == ["v2"] and any(name in accept for name in _SWAGGER_PROTOBUF):
            return Response(200, await self._openapi.version2(protobuf=True), _SWAGGER_PROTOBUF[0])
        if "json" not in accept and "*" not in accept:
            return text(406, "406 Not Acceptable\n")
        if parts == ["v2"]:
            body = await self._openapi.version2()
            tag = hashlib.sha512(body).hexdigest().upper()
            return self._tagged_document(request, body, tag, "Accept-Encoding, Accept")
        if parts == ["v3"]:
            return Response(200, await self._openapi.index(), TEXT, [self._modified])
        path = "/".join(parts[1:])
        found = await self._openapi.document(path) if parts[:1] == ["v3"] else None
        if found is None:
            return Response(404, b"", "")
        tag, requested = await self._openapi.tag(path), request.one("hash")
        if requested and requested != tag:
            location = f"/openapi/v3/{path}?hash={tag}"
            headers = [("Location", location), ("ETag", f'"{tag}"'), ("Vary", "Accept")]
            return Response(301, b"", JSON, headers)
        if requested:
            headers = [_IMMUTABLE, ("ETag", f'"{tag}"'), ("Vary", "Accept")]
            return Response(200, found, JSON, headers)
        return self._tagged_document(request, found, tag, "Accept")

    def _tagged_document(self, request: Request, body: bytes, tag: str, vary: str) -> Response:
        headers = [("ETag", f'"{tag}"'), ("Vary", vary), self._modified]
        if request.headers.get("if-none-match") == f'"{tag}"':
            return Response(304, b"", JSON, headers)
        if compressible(request, body):
            headers.append(COMPRESSED[0])
            body = compress(body)
        return Response(200, body, JSON, headers)

    def _health(self, request: Request, kind: str, name: str) -> Response:
        if name:
            return text(200, "ok") if name in CHECKS else _missing()
        if "verbose" not in request.query:
            return text(200, "ok")
        lines = "".join(f"[+]{check} ok\n" for check in CHECKS)
        return text(200, f"{lines}{kind} check passed\n")


def _written(request: Request, body: bytes) -> tuple[int, bytes, str]:
    accept = request.headers.get("accept", "")
    check_accepted(accept, OFFERED)
    media = negotiate_plain(accept)
    if media is None:
        raise StatusError.not_acceptable(OFFERED)
    return 200, *encode_body(request, body, media)


def _missing() -> Response:
    return text(404, "404 page not found\n")


def _tagged(request: Request, document: Document, content_type: str) -> Response:
    headers = [("ETag", document.etag), ("Vary", "Accept"), ("Cache-Control", "public")]
    if request.headers.get("if-none-match") == document.etag:
        return Response(304, b"", content_type, headers)
    return Response(200, document.body + b"\n", content_type, headers)
