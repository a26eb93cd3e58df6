"""A way to the API server that writes down every request, and can be broken in each way a network can."""

import contextlib
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import aiohttp
import yaml
from aiohttp import web

from kubewright.client import ClusterConfig
from kubewright.testing import Cluster

GONE = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}}\n'
)
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive", "host"}
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    """What RBAC asks of whoever sends a request."""

    group: str
    resource: str
    verb: str


@dataclass
class Exchange:
    """One request and its answer; a watch that lasts has the code it began with."""

    method: str
    path: str
    watch: bool
    code: int = 0

    @property
    def right(self) -> Right | None:
        """The right it takes; paths that are no objects take none of a role's resources."""
        found = _PATH.fullmatch(self.path)
        if found is None:
            return None
        resource = "/".join(part for part in (found["resource"], found["subresource"]) if part)
        reading = "watch" if self.watch else "get" if found["name"] else "list"
        return Right(found["group"] or "", resource, _VERBS.get(self.method, reading))

    @property
    def is_write(self) -> bool:
        """Tell whether it asks for a change of an object, Events and Leases aside."""
        right = self.right
        return self.method in _VERBS and right is not None and right.resource not in ("events", "leases")


@dataclass
class Gateway:
    """Stands between an operator and its API server."""

    server: str
    session: aiohttp.ClientSession
    port: int = 0
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    _runner: web.AppRunner | None = None
    _site: web.TCPSite | None = None
    _open: dict[int, web.Request] = field(default_factory=dict[int, web.Request])
    _expired: int = 0

    @classmethod
    @asynccontextmanager
    async def to(cls, config: ClusterConfig) -> AsyncGenerator[Self, None]:
        """Open a way to a cluster; who takes it shows credentials of his own."""
        trust = ssl.create_default_context(cadata=config.ca_data.decode())
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout()
        ) as session:
            gateway = cls(config.server, session)
            application = web.Application(client_max_size=1 << 24)
            application.router.add_route("*", "/{path:.*}", gateway._pass_on)
            gateway._runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
            await gateway._runner.setup()
            await gateway.restore()
            try:
                yield gateway
            finally:
                gateway.cut()
                await gateway._runner.cleanup()

    @property
    def url(self) -> str:
        """Where operators find it."""
        return f"http://127.0.0.1:{self.port}"

    def seen_from(self, cluster: Cluster) -> Cluster:
        """The same cluster, for operators that take this way; its own client still takes the straight one."""
        config = replace(cluster.config, server=self.url)
        return Cluster(cluster.server, cluster.client, config, cluster.kubeconfig, cluster.namespace)

    def kubeconfig(self, token: str, namespace: str) -> str:
        """Describe the way for a process."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "way", "cluster": {"server": self.url}}],
            "users": [{"name": "account", "user": {"token": token}}],
            "contexts": [
                {"name": "way", "context": {"cluster": "way", "user": "account", "namespace": namespace}}
            ],
            "current-context": "way",
        }
        return yaml.safe_dump(document)

    def cut(self) -> None:
        """Break every connection that is in use."""
        for request in list(self._open.values()):
            if request.transport is not None:
                request.transport.abort()

    async def take_away(self) -> None:
        """Let the server be gone: nobody listens any more."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        self.cut()

    async def restore(self) -> None:
        """Let the server be back where it was."""
        assert self._runner is not None
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        if not self.port:
            self.port = self._runner.addresses[0][1]

    def expire(self, watches: int) -> None:
        """Have the next watches told that their place is too old, and end those that run."""
        self._expired = watches
        for request in list(self._open.values()):
            if _is_watch(request) and request.transport is not None:
                request.transport.abort()

    @property
    def unanswered_expiries(self) -> int:
        """How many watches have yet to be told."""
        return self._expired

    def forbidden(self) -> list[Exchange]:
        """Return what was asked for without the right to it.

        Where an API server lives is asked on the chance of an answer, before webhooks are registered by URL.
        """
        return [
            exchange
            for exchange in self.exchanges
            if exchange.code == 403 and not exchange.path.endswith("/endpointslices")
        ]

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        exchange = Exchange(request.method, request.path, _is_watch(request))
        self.exchanges.append(exchange)
        self._open[id(request)] = request
        try:
            if exchange.watch and self._expired and "resourceVersion" in request.query:
                self._expired -= 1
                exchange.code = 200
                return web.Response(body=GONE, content_type="application/json")
            return await self._answer(request, exchange)
        finally:
            del self._open[id(request)]

    async def _answer(self, request: web.Request, exchange: Exchange) -> web.StreamResponse:
        body = await request.read()
        async with self.session.request(
            request.method,
            self.server + request.raw_path,
            data=body or None,
            headers=_kept(request.headers),
            allow_redirects=False,
        ) as answer:
            exchange.code = answer.status
            response = web.StreamResponse(status=answer.status, headers=_kept(answer.headers))
            if encoding := answer.headers.get("Content-Encoding"):
                response.headers["Content-Encoding"] = encoding
            await response.prepare(request)
            # Whoever went away, the answer ends here.
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
            return response


def _is_watch(request: web.Request) -> bool:
    return request.query.get("watch") in ("1", "true")


def _kept(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
