"""A way to the API server that writes down every request, and can be broken in each way a network can."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self, cast
from urllib.parse import quote, urlencode

import yaml
from acceptance_ports import lasting_port

from kubewright.client import ClusterConfig
from kubewright.http.client import Body, ExchangeFailed, Origin, Pool, Route, encode_headers, encode_request
from kubewright.http.server import (
    BodyWriter,
    Handler,
    HangUp,
    HttpServer,
    Request,
    Response,
    ServerConnection,
    ServerResponse,
    Stream,
)
from kubewright.testing import Cluster, eventually

GONE = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}}\n'
)
DEFAULT_TIMEOUT = 3600.0
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive", "host"}
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    """The RBAC attributes of a request."""

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
    cut: bool = False
    """It has to end, answered or not."""
    connection: ServerConnection | None = None

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
        """Return True if it asks for a change of an object, Events and Leases aside."""
        right = self.right
        return self.method in _VERBS and right is not None and right.resource not in ("events", "leases")


class Gateway(Handler):
    """Stands between an operator and its API server."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._server: HttpServer | None = None
        self._open: list[Exchange] = []
        self._expired = 0
        self.port = lasting_port()
        self.exchanges: list[Exchange] = []

    @classmethod
    @asynccontextmanager
    async def to(cls, config: ClusterConfig) -> AsyncGenerator[Self, None]:
        """Open a way to a cluster; its clients send credentials of their own."""
        trust = ssl.create_default_context(cadata=config.ca_data.decode())
        pool = Pool(Route(Origin.of(config.server), tls=trust))
        gateway = cls(pool)
        await gateway.restore()
        try:
            yield gateway
        finally:
            await gateway.disconnect()
            await pool.close()

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
        if self._server is not None:
            for connection in list(self._server.connections):
                if connection.idle_since is None:
                    connection.abort()

    async def disconnect(self) -> None:
        """Stop listening, as if the server were gone."""
        if self._server is not None:
            await self._server.__aexit__(None, None, None)
            self._server = None

    async def turn_away(self, attempts: int) -> None:
        """Let the server be gone until so many have tried to reach it in vain."""
        await self.disconnect()
        left, enough = attempts, asyncio.Event()

        def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal left
            writer.transport.abort()
            left -= 1
            if left <= 0:
                enough.set()

        async with await asyncio.start_server(hang_up, "127.0.0.1", self.port):
            await enough.wait()
        await self.restore()

    async def restore(self) -> None:
        """Let the server be back where it was."""
        self._server = HttpServer(self, "127.0.0.1", self.port, grace=0.0)
        await self._server.__aenter__()

    def expire(self, watches: int) -> None:
        """Answer the next watches with 410 Gone, and end the open ones."""
        self._expired = watches
        for exchange in self._open:
            exchange.cut = exchange.watch
            if exchange.watch and exchange.connection is not None:
                exchange.connection.abort()

    @property
    def unanswered_expiries(self) -> int:
        """How many watches are still to be answered with 410 Gone."""
        return self._expired

    async def asked_for(self, part: str, by: int) -> None:
        """Wait until so many paths with this part are asked for, from now on."""
        begun = len(self.exchanges)
        await eventually(
            lambda: len({found.path for found in self.exchanges[begun:] if part in found.path}) >= by
        )

    def forbidden(self) -> list[Exchange]:
        """Return what was asked for without the right to it.

        Where an API server lives is asked on the chance of an answer, before webhooks are registered by URL.
        """
        return [
            exchange
            for exchange in self.exchanges
            if exchange.code == 403 and not exchange.path.endswith("/endpointslices")
        ]

    def admit(self, request: Request) -> int:
        """Take what the API server takes, and more: it is for that one to say."""
        return 1 << 24

    async def handle(self, request: Request) -> ServerResponse:
        """Pass a request on, and its answer back."""
        exchange = Exchange(request.method, request.path, request.one("watch") in ("1", "true"))
        self.exchanges.append(exchange)
        if exchange.watch and self._expired and "resourceVersion" in request.query:
            self._expired -= 1
            exchange.code = 200
            return Response(200, GONE)
        self._open.append(exchange)
        try:
            answer, body = await self._pool.stream(*self._forwarded(request), DEFAULT_TIMEOUT)
        except BaseException as error:
            self._open.remove(exchange)
            if isinstance(error, ExchangeFailed):
                raise HangUp from error
            raise
        exchange.code = answer.status
        kept = [(name, value) for name in answer.headers for value in answer.headers.all(name)]
        fields = [(name, value) for name, value in kept if name.lower() not in _HOP_BY_HOP]
        return Stream(partial(self._stream, exchange, body), "", answer.status, fields)

    async def _stream(self, exchange: Exchange, body: Body, writer: BodyWriter) -> None:
        exchange.connection = cast(ServerConnection, writer)
        try:
            while not exchange.cut and (piece := await body.read(DEFAULT_TIMEOUT)):
                await writer.write(piece)
        except ExchangeFailed as error:
            raise HangUp from error
        finally:
            self._open.remove(exchange)
            body.release()
        if exchange.cut:
            raise HangUp

    def _forwarded(self, request: Request) -> tuple[bytes, bytes]:
        target = quote(request.path) + (f"?{urlencode(request.query, doseq=True)}" if request.query else "")
        fields = [(name, value) for name, value in request.fields if name not in _HOP_BY_HOP]
        head = encode_headers([*self._pool.route.head(), *fields])
        return encode_request(request.method, target, head, request.body), request.body
