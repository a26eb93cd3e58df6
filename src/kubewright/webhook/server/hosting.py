"""An operator's webhooks at work: where they are reached, with which certificate, from start to stop."""

import asyncio
import ipaddress
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from kubewright.api import ApiError, ConnectionFailed, KubewrightError
from kubewright.client import Client, ClusterConfig
from kubewright.metrics import Registry
from kubewright.serving import Address
from kubewright.webhook import Endpoints, WebhookNames
from kubewright.webhook.configurations import ByService
from kubewright.webhook.server.answers import answerers_for
from kubewright.webhook.server.authority import Lifetimes
from kubewright.webhook.server.context import FollowingContext
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.registration import Registration, ServiceRegistration, UrlRegistration
from kubewright.webhook.server.sources import DirectorySource, OwnSource, Source
from kubewright.webhook.server.stores import MemoryStore, SecretStore

Reach = Literal["service", "url"]

SERVICE_DRAIN = 5.0
"""Seconds to go on serving after a stop: endpoints take a moment to forget a Pod."""
URL_DRAIN = 0.3

_log = logging.getLogger("kubewright.webhook")


class Unreachable(KubewrightError):
    """The API server could not reach the webhooks from where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """Where to serve, how to be reached, and which certificates to show."""

    address: Address
    namespace: str
    reach: Reach
    cert_dir: Path | None = None
    client_ca: Path | None = None
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    service_port: int = 443


def reach_of(config: ClusterConfig) -> Reach:
    """Find out how the API server reaches this process: on this machine by URL, from a Pod by its Service."""
    host = urlsplit(config.server).hostname or ""
    if _loopback(host):
        return "url"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "service"
    raise Unreachable(
        f"the API server at {host} cannot reach webhooks on this machine. Run the operator in the cluster "
        "(`kubewright deploy`), run it on a local one (`--dev`), or run it here without webhooks "
        "(`--webhook-bind-address 0`)"
    )


class WebhookHost:
    """Serves the webhooks of one operator and keeps the cluster pointing at them."""

    def __init__(
        self,
        name: str,
        endpoints: Endpoints,
        client: Client,
        options: HostOptions,
        metrics: Registry,
    ) -> None:
        self._endpoints = endpoints
        self._names = WebhookNames(name)
        self._client = client
        self._options = options
        self._metrics = metrics
        self._context = FollowingContext(options.client_ca)
        self._source = self._make_source()
        self._registered = False
        self._trouble = "the webhooks are not registered yet"
        self.port = options.address.port

    def problem(self) -> str | None:
        """Return why the webhooks cannot be relied on."""
        return self._source.problem() or (None if self._registered else self._trouble)

    @asynccontextmanager
    async def serving(self, group: asyncio.TaskGroup) -> AsyncGenerator[None, None]:
        """Serve, registered and trusted, until left; requests that come meanwhile are still answered."""
        ca_bundle = await self._source.prepare()
        answerers = answerers_for(self._endpoints, self._metrics)
        async with WebhookServer(self._options.address, answerers, self._context, self._metrics) as server:
            self.port = server.port
            registration = self._make_registration()
            await self._announce(registration, ca_bundle)
            _log.info("Serving webhooks", extra={"fields": {"port": server.port, "paths": sorted(answerers)}})

            async def announce(bundle: bytes) -> None:
                await self._announce(registration, bundle)

            following = group.create_task(self._source.follow(announce), name="webhook certificates")
            try:
                yield
            finally:
                following.cancel()
                await self._leave(registration, server)

    async def _announce(self, registration: Registration, ca_bundle: bytes) -> None:
        try:
            await registration.put_right(ca_bundle)
        except KubewrightError as error:
            self._registered, self._trouble = False, str(error)
            raise
        self._registered = True

    async def _leave(self, registration: Registration, server: WebhookServer) -> None:
        server.drain()
        try:
            await registration.take_away()
        except (ApiError, ConnectionFailed) as error:
            _log.error("The webhooks could not be taken away, writes may fail until they are: %s", error)
        await asyncio.sleep(SERVICE_DRAIN if self._options.reach == "service" else URL_DRAIN)

    def _make_source(self) -> Source:
        options = self._options
        if options.cert_dir is not None:
            return DirectorySource(self._context, self._metrics, options.cert_dir)
        if options.reach == "service":
            store = SecretStore(self._client, options.namespace, self._names.secret)
            name = f"{self._names.service}.{options.namespace}"
            hosts = (f"{name}.svc", f"{name}.svc.cluster.local", name)
            return OwnSource(self._context, self._metrics, store, hosts, options.lifetimes)
        hosts = (self._url_host, "localhost")
        return OwnSource(self._context, self._metrics, MemoryStore(), hosts, options.lifetimes)

    def _make_registration(self) -> Registration:
        options = self._options
        if options.reach == "service":
            service = ByService(options.namespace, self._names.service, port=options.service_port)
            return ServiceRegistration(self._client, self._endpoints, self._names, service)
        host = f"[{self._url_host}]" if ":" in self._url_host else self._url_host
        base = f"https://{host}:{self.port}"
        return UrlRegistration(self._client, self._endpoints, self._names, base)

    @property
    def _url_host(self) -> str:
        host = self._options.address.host
        return host if host and not _unspecified(host) else "127.0.0.1"


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
