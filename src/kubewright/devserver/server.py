"""The embedded API server: its parts put together, listening on loopback inside the current event loop."""

import asyncio
import base64
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from msgspec.structs import replace

from kubewright.api import GroupVersionKind, Kind
from kubewright.certificates import Authority, KeyPair, private_key
from kubewright.devserver.admission import standard_admission
from kubewright.devserver.auth import (
    AuthorizationMode,
    AuthorizationObserver,
    RequestAuthenticator,
    Reviews,
    RoleAuthorizer,
    TokenAuthenticator,
    read_token_file,
)
from kubewright.devserver.bootstrap import first_objects, seed, store_copies
from kubewright.devserver.builtin import strategy_for, strategy_in_release
from kubewright.devserver.core import Core
from kubewright.devserver.credentials import ServerCredentials
from kubewright.devserver.data import KubernetesRelease
from kubewright.devserver.definitions import DefinitionController, definition_strategy
from kubewright.devserver.discovery import Discovery, Documents, OpenApi
from kubewright.devserver.faults import Faults
from kubewright.devserver.feature_gates import FeatureGates
from kubewright.devserver.handlers import RequestPipeline, ResourceRouter, StoreAccess
from kubewright.devserver.listener import LIMITS, ApiServerHandler, server_context
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.registry import ResourceRegistry, Strategies, builtin_resources
from kubewright.devserver.request.identity import MASTERS, UserInfo
from kubewright.devserver.storage import EVENT_SECONDS, DataFile, Expiry, ObjectStore
from kubewright.devserver.strategy import Strategy, SubresourceEndpoint
from kubewright.devserver.webhook_client import Caller
from kubewright.devserver.wire import TypeTable, load_types
from kubewright.http.server import HttpServer, PendingResponse, Request

Timing = Literal["fast", "realistic"]

ADMIN = "kubernetes-admin"
PORT = 6443
"""The address of a server that listens on no socket."""
TIDY_SECONDS = 5.0
_AUTHORIZER_NAMED = 37
# Since this minor version, the users of client certificates have the fingerprint of the certificate.
_CERTIFICATES_NAMED = 32
"""The minor version since which errors of authorizers begin with the authorizer's name."""


@dataclass(slots=True)
class _Parts:
    """Parts that are read from files or take long to create; loaded in a thread before the server starts."""

    journal: DataFile | None
    authority: Authority
    token_key: bytes
    types: TypeTable
    roles: list[JsonObject]
    static_tokens: dict[str, UserInfo]

    @classmethod
    def load(cls, release: KubernetesRelease, data: Path | None, token_file: Path | None) -> "_Parts":
        static_tokens = read_token_file(token_file) if token_file is not None else {}
        journal = DataFile(data, f"1.{release.minor}") if data is not None else None
        authority, token_key = _keys(journal)
        release.load()
        types = load_types(release)
        types.discovery()
        return cls(journal, authority, token_key, types, release.bootstrap, static_tokens)


def _keys(journal: DataFile | None) -> tuple[Authority, bytes]:
    """Return the certificate authority and the token key: stored with the data, else new."""
    if journal is None:
        return Authority.create(), private_key()
    certificate, key = journal.setting("ca.crt"), journal.setting("ca.key")
    token_key = journal.setting("sa.key")
    if certificate is not None and key is not None and token_key is not None:
        return Authority(KeyPair(certificate, key)), token_key
    authority, token_key = Authority.create(), private_key()
    journal.keep_setting("ca.crt", authority.pair.certificate)
    journal.keep_setting("ca.key", authority.pair.key)
    journal.keep_setting("sa.key", token_key)
    return authority, token_key


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a server holds: open connections, running tasks, readers that do not keep up, bytes waiting for them."""

    connections: int
    tasks: int
    blocked: int
    buffered: int


class _Tasks:
    """The tasks of a server that listens on no socket, from `async with` to its end."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *failure: object) -> None:
        for task in list(self._running):
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work until it ends or the server does."""
        task = self._group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


class Server:
    """Serve the Kubernetes API while the context is open.

    `kubernetes` is the version that is served, such as `"1.33"` (`KubernetesRelease.find`; by default the newest). With
    `listen=False` only clients in this process reach it, through `handle`. `data` names a file that keeps the
    cluster between runs; with `timing="realistic"` it takes as long as kube-apiserver for work that is done after the
    response; admission plugins (`ADMISSION_PLUGINS`) are enabled and disabled by their Kubernetes names, and so are
    `feature_gates` (`FEATURE_GATES`). `credentials` replace generated certificates and keys. Requests are allowed by any of the `authorization_modes`, without credentials only if `anonymous`.
    `authorization_observer` is called with each permission that a request uses or lacks.
    `pod_endpoints` are subresources of Pods that a kubelet would serve (log, exec, attach, portforward).
    """

    def __init__(
        self,
        *,
        kubernetes: str = "",
        data: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        listen: bool = True,
        timing: Timing = "fast",
        anonymous: bool = False,
        enable_admission_plugins: Collection[str] = (),
        disable_admission_plugins: Collection[str] = (),
        feature_gates: Mapping[str, bool] | None = None,
        credentials: ServerCredentials | None = None,
        authorization_modes: Collection[AuthorizationMode] = ("RBAC",),
        authorization_observer: AuthorizationObserver | None = None,
        pod_endpoints: Mapping[str, SubresourceEndpoint] | None = None,
    ) -> None:
        self._release = KubernetesRelease.find(kubernetes)
        self._data = data
        self._host = host
        self._listen = listen
        self._timing = timing
        self._anonymous = anonymous
        self._enabled, self._disabled = enable_admission_plugins, disable_admission_plugins
        self._gates = FeatureGates(self._release, feature_gates or {})
        self._credentials = credentials or ServerCredentials()
        self._authorization_modes = authorization_modes
        self._authorization_observer = authorization_observer
        self._pod_endpoints = pod_endpoints or {}
        self._stack = AsyncExitStack()
        self._http: HttpServer | None = None
        self._spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
        self.port: int = port

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            parts = await asyncio.to_thread(
                _Parts.load, self._release, self._data, self._credentials.token_file
            )
            self._authority = parts.authority
            self._assemble(loop, parts)
            stack.callback(self._core.store.close)
            stack.push_async_callback(self._caller.close)
            if self._listen:
                self._http = await stack.enter_async_context(await self._listening(parts.authority))
                self.port, self._spawn = self._http.port, self._http.spawn
            else:
                self.port = self.port or PORT
                self._spawn = (await stack.enter_async_context(_Tasks())).spawn
            self._discovery.address = f"{self._host}:{self.port}"
            client_ca = self._credentials.client_ca or self._authority.pair.certificate
            first = first_objects(self._host, self.port, client_ca.decode(), self._core.clock.stamp())
            seed(self._core, [*first, *parts.roles])
            events = self._core.registry.find("", "v1", "events")
            assert events is not None
            self._events = Expiry(
                self._core.store, events.collection.name, EVENT_SECONDS, self._core.clock.seconds
            )
            self._definitions.restore()
            self.spawn(self._definitions.run())
            self.spawn(self._tidy())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _listening(self, authority: Authority) -> HttpServer:
        given = self._credentials
        context = await asyncio.to_thread(
            server_context, authority, self._host, given.serving, given.client_ca
        )
        handler = ApiServerHandler(self.handle, self._core.clock.seconds)
        return HttpServer(handler, self._host, self.port, tls=context, limits=LIMITS, grace=0.0)

    def _assemble(self, loop: asyncio.AbstractEventLoop, parts: _Parts) -> None:
        clock, types, registry = Clock(loop), parts.types, ResourceRegistry()
        store = ObjectStore(parts.journal, clock.seconds)
        self.faults: Faults = Faults(store)
        self._issuer = issuer = self._credentials.issuer(parts.token_key, clock.seconds)
        self._core = core = Core(
            store, registry, types, clock, self._gates, realistic=self._timing == "realistic"
        )
        core.api = api = StoreAccess(core)
        core.authorizer = authorizer = RoleAuthorizer(
            store,
            api,
            self._authorization_modes,
            self._authorization_observer,
            names_authorizer=self._release.minor >= _AUTHORIZER_NAMED,
        )
        self._caller = Caller(api)
        core.admission = standard_admission(
            core, self._caller, enabled=self._enabled, disabled=self._disabled
        )
        self._tokens = TokenAuthenticator(issuer, api)
        for token, user in parts.static_tokens.items():
            self._tokens.add_user(token, user)
        authenticator = RequestAuthenticator(
            self._tokens,
            anonymous=self._anonymous,
            names_certificates=self._release.minor >= _CERTIFICATES_NAMED,
        )
        reviews = Reviews(authorizer, self._tokens, issuer)
        strategies = _strategies(types, clock, reviews, self._pod_endpoints)
        for resource in builtin_resources(types, store, strategies):
            registry.add(resource)
        self._discovery = Discovery(registry)
        documents = Documents(
            self._release,
            self._discovery,
            OpenApi(registry, types),
            issuer.key_set,
            lambda: issuer.document(self.url),
        )
        route = ResourceRouter(core, documents).route
        self._pipeline = RequestPipeline(authenticator, authorizer, self.faults, route)
        self._definitions = DefinitionController(core, api, self._caller, self.spawn)

    @property
    def kubernetes(self) -> str:
        """Return the Kubernetes release that is served, such as `1.33.13`."""
        return self._release.version

    def serves(self, kind: Kind) -> bool:
        """Return True if a kind is served now."""
        return self._core.registry.find(kind.group, kind.version, kind.plural) is not None

    @property
    def url(self) -> str:
        """Return the address clients connect to."""
        return f"https://{self._host}:{self.port}"

    @property
    def ca_pem(self) -> bytes:
        """Return the certificates by which clients recognize the server."""
        serving = self._credentials.serving
        return self._authority.pair.certificate if serving is None else serving.certificate

    def kubeconfig(self) -> JsonObject:
        """Return a kubeconfig of the administrator, with a new client certificate."""
        pair = self._authority.client(ADMIN, (MASTERS,))
        user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.ca_pem)}
        name = "kubewright"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": ADMIN, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": ADMIN}}],
            "current-context": name,
            "preferences": {},
        }

    def sign(self, request: bytes, usages: Sequence[str], span: timedelta) -> bytes:
        """Sign a certificate request with the cluster's own authority; raise ValueError where it is not one."""
        return self._authority.sign(request, usages, span)

    def issue_for_secret(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """Return a token of a ServiceAccount that is valid while the Secret holds it."""
        return self._issuer.issue_for_secret(namespace=namespace, account=account, uid=uid, secret=secret)

    def add_user(self, name: str, groups: Sequence[str] = ()) -> str:
        """Make a bearer token for a user."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token, name, groups)
        return token

    def statistics(self) -> "Statistics":
        """Return the current counts of connections, tasks and buffered bytes."""
        if self._http is None:
            return Statistics(0, 0, 0, 0)
        connections = self._http.connections
        blocked = [item for item in connections if item.blocked_since is not None]
        buffered = sum(item.buffered for item in connections)
        return Statistics(len(connections), self._http.tasks, len(blocked), buffered)

    def load(self, objects: Iterable[JsonObject]) -> None:
        """Store copies of another cluster's objects, as they are; their kinds must be served."""
        store_copies(self._core, objects)

    @property
    def store(self) -> ObjectStore:
        """The objects that are served."""
        return self._core.store

    def compact(self) -> None:
        """Drop all history, so that older revisions are expired."""
        self._core.store.compact()

    def handle(self, request: Request) -> PendingResponse:
        """Return the response to a request, at once or as a coroutine."""
        return self._pipeline.handle(request)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work for a client in this process until it ends or the server does."""
        return self._spawn(work)

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            self._core.store.tidy()
            self._events.run()


def _strategies(
    types: TypeTable, clock: Clock, reviews: Reviews, pod_endpoints: Mapping[str, SubresourceEndpoint]
) -> Strategies:
    special = {
        **reviews.strategies(),
        ("apiextensions.k8s.io", "CustomResourceDefinition"): definition_strategy(clock),
    }

    def find(gvk: GroupVersionKind) -> Strategy:
        group, kind = gvk.group, gvk.kind
        strategy = special.get((group, kind)) or strategy_for(group, kind)
        strategy = strategy_in_release(strategy, gvk, types)
        if (group, kind) == ("", "ServiceAccount"):
            return replace(strategy, endpoints={**strategy.endpoints, "token": reviews.issue_token})
        if (group, kind) == ("", "Pod"):
            return replace(strategy, endpoints={**strategy.endpoints, **pod_endpoints})
        return strategy

    return find


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
