"""An operator's webhooks at work: where they are reached, with which certificate, from start to stop."""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from kubewright.api import ConfigError
from kubewright.certificates import FollowingContext
from kubewright.client import Client
from kubewright.metrics import Registry
from kubewright.serving import Address, BindError
from kubewright.webhook import Endpoints, Reach, WebhookNames, WebhookOptions
from kubewright.webhook.configurations import ByService
from kubewright.webhook.server.answers import Answerer, answerers_for
from kubewright.webhook.server.by_url import UrlRegistration
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.reach import confirm_reach
from kubewright.webhook.server.registration import GivenRegistration, Registration, ServiceRegistration
from kubewright.webhook.server.sources import DirectorySource, OwnSource, Source
from kubewright.webhook.server.stores import FileStore, MemoryStore, SecretStore

SERVICE_DRAIN = 5.0
"""Seconds to go on serving after a stop: endpoints take a moment to forget a Pod."""
URL_DRAIN = 0.3
TAKEN_AWAY_WITHIN = 15.0
"""Seconds that a stop waits for an API server that does not answer."""

_log = logging.getLogger("kubewright.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What was asked for, and what was found out about where this is."""

    address: Address
    namespace: str
    reach: Reach
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    service_port: int = 443
    standby: bool = False
    """Whether another replica that answers is left to it until `lead`."""


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
        self._context = FollowingContext(options.webhooks.client_ca)
        self._source = self._make_source()
        self._registration: Registration | None = None
        self._ca_bundle = b""
        self._registered = False
        self.port: int = options.address.port

    def problem(self) -> str | None:
        """Return why the webhooks cannot be relied on."""
        return self._source.problem() or (None if self._registered else "the webhooks are not registered yet")

    async def confirm_reach(self) -> None:
        """Raise Unreachable where the API server could not get here."""
        if self._options.reach == "url":
            await confirm_reach(self._client, self._url_host)

    @asynccontextmanager
    async def serving(self, group: asyncio.TaskGroup) -> AsyncGenerator[None, None]:
        """Serve, registered and trusted, until left; requests that come meanwhile are still answered."""
        ca_bundle = await self._source.prepare()
        answerers = answerers_for(self._endpoints, self._metrics)
        async with AsyncExitStack() as stack:
            server = await self._listen(stack, answerers)
            self.port = server.port
            self._registration = registration = self._make_registration()
            try:
                await self._announce(ca_bundle)
            except BaseException:
                await self._take_away(registration)
                raise
            _log.info("Serving webhooks", extra={"fields": {"port": server.port, "paths": sorted(answerers)}})
            for kind in self._endpoints.unjudged_scales:
                _log.warning("Nobody judges the scaling of %s: `kubewright doctor` says how", kind.resource)
            following = group.create_task(self._source.follow(self._announce), name="webhook certificates")
            try:
                yield
            finally:
                following.cancel()
                await self._leave(registration, server)

    async def lead(self) -> None:
        """Take the webhooks over from the replica that led before."""
        if isinstance(self._registration, UrlRegistration) and not self._registration.leading:
            self._registration.lead()
            await self._announce(self._ca_bundle)

    async def _listen(self, stack: AsyncExitStack, answerers: dict[str, Answerer]) -> WebhookServer:
        async def listen(address: Address) -> WebhookServer:
            server = WebhookServer(address, answerers, self._context, self._metrics)
            return await stack.enter_async_context(server)

        if self._options.reach != "url":
            return await listen(self._options.address)
        try:
            return await listen(Address(self._url_host, self._options.address.port))
        except BindError as error:
            # The API server is told the address, so any port will do.
            _log.info("Webhooks go to another port: %s", error)
            return await listen(Address(self._url_host, 0))

    async def _announce(self, ca_bundle: bytes) -> None:
        self._ca_bundle = ca_bundle
        if self._registration is None:
            return
        # Who was registered once goes on answering: it is no reason to be taken out of a Service that this fails.
        await self._registration.put_right(ca_bundle)
        self._registered = True

    async def _leave(self, registration: Registration, server: WebhookServer) -> None:
        server.drain()
        await self._take_away(registration)
        await asyncio.sleep(URL_DRAIN if self._options.reach == "url" else SERVICE_DRAIN)

    async def _take_away(self, registration: Registration) -> None:
        try:
            async with asyncio.timeout(TAKEN_AWAY_WITHIN):
                await registration.take_away()
        except TimeoutError:
            _log.error("The webhooks could not be taken away within %.0f s", TAKEN_AWAY_WITHIN)

    def _make_source(self) -> Source:
        options, chosen = self._options, self._options.webhooks
        if chosen.cert_dir is not None:
            return DirectorySource(self._context, self._metrics, chosen.cert_dir)
        if options.reach == "given":
            raise ConfigError(
                "webhooks that somebody else registers need that one's certificate: --webhook-cert-dir"
            )
        if options.reach == "service":
            store = SecretStore(self._client, options.namespace, self._names.secret)
            name = f"{self._names.service}.{options.namespace}"
            hosts = (f"{name}.svc", f"{name}.svc.cluster.local", name)
            return OwnSource(self._context, self._metrics, store, hosts, chosen.lifetimes)
        hosts = (self._url_host, "localhost")
        store = MemoryStore() if chosen.state is None else FileStore(chosen.state)
        return OwnSource(self._context, self._metrics, store, hosts, chosen.lifetimes)

    def _make_registration(self) -> Registration:
        options = self._options
        if options.reach == "given":
            return GivenRegistration(self._client, self._endpoints, self._names)
        if options.reach == "service":
            service = ByService(options.namespace, self._names.service, port=options.service_port)
            return ServiceRegistration(self._client, self._endpoints, self._names, service)
        host = f"[{self._url_host}]" if ":" in self._url_host else self._url_host
        base = f"https://{host}:{self.port}"
        return UrlRegistration(
            self._client,
            self._endpoints,
            self._names,
            base,
            leading=not options.standby,
            passing=options.webhooks.passing,
        )

    @property
    def _url_host(self) -> str:
        host = self._options.address.host
        return host if host and not _unspecified(host) else "127.0.0.1"


def _unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
