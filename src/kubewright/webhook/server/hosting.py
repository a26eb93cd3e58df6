"""Serve an operator's webhooks from start to stop: certificate, server, registration, and all of it in reverse.

The start lasts until the webhooks are registered: temporary errors of the API server (409, 429, 5xx) and failed
connections are retried with backoff, and the readiness probe reports the reason. An error that a retry cannot fix, such
as a missing permission, stops the operator.
"""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from kubewright.api import ApiError, ConfigError, ConnectionFailed, KubewrightError
from kubewright.backoff import Backoff
from kubewright.certificates import FollowingContext
from kubewright.client import Client
from kubewright.metrics import Registry
from kubewright.serving import BindAddress, BindError
from kubewright.webhook import Endpoints, Reach, WebhookNames, WebhookOptions
from kubewright.webhook.certificates.sources import (
    CertificateSource,
    DirectorySource,
    OwnSource,
    source_of_service,
)
from kubewright.webhook.certificates.stores import FileStore, MemoryStore, SecretStore
from kubewright.webhook.configurations import ByService
from kubewright.webhook.server.by_url import UrlRegistration
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.reach import confirm_reach
from kubewright.webhook.server.registration import GivenRegistration, Registration, ServiceRegistration
from kubewright.webhook.server.reviewers import Reviewer, reviewers_for

SERVICE_DRAIN = 5.0
"""Seconds to continue serving after a stop: it takes a moment until a Pod is removed from the endpoints."""
URL_DRAIN = 0.3
TAKEN_AWAY_WITHIN = 15.0
"""Seconds that a stop waits for an API server that does not respond."""
RETRIES = Backoff(base=0.25, maximum=5.0, jitter=0.5)
"""Between attempts to register: short, because nothing is reconciled before it."""

R = TypeVar("R")

_log = logging.getLogger("kubewright.webhook")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """The caller's options, and how the API server reaches this process."""

    address: BindAddress
    namespace: str
    reach: Reach
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    service_port: int = 443
    standby: bool = False
    """Whether another replica that responds keeps the registration until `lead`."""


class WebhookHost:
    """Serve the webhooks of one operator and keep the cluster pointing at them."""

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
        self._problem = ""
        self.port: int = options.address.port

    def problem(self) -> str | None:
        """Return why the webhooks are not ready, or None."""
        if self._registered:
            return self._source.problem()
        return f"the webhooks are not registered yet{f': {self._problem}' if self._problem else ''}"

    async def confirm_reach(self) -> None:
        """Raise Unreachable if the API server cannot reach this process."""
        if self._options.reach == "url":
            await self._retried(lambda: confirm_reach(self._client, self._url_host))

    @asynccontextmanager
    async def serving(self, group: asyncio.TaskGroup) -> AsyncGenerator[None, None]:
        """Serve, registered and trusted, while the context is open; requests that arrive during the stop are answered."""
        ca_bundle = await self._retried(self._source.prepare)
        reviewers = reviewers_for(self._endpoints, self._metrics)
        async with AsyncExitStack() as stack:
            server = await self._listen(stack, reviewers)
            self.port = server.port
            self._registration = registration = self._make_registration()
            try:
                await self._retried(lambda: self._announce(ca_bundle))
            except BaseException:
                await self._take_away(registration)
                raise
            _log.info("Serving webhooks", extra={"fields": {"port": server.port, "paths": sorted(reviewers)}})
            for kind in self._endpoints.unvalidated_scales:
                _log.warning("No webhook validates scaling of %s: see `kubewright doctor`", kind.resource)
            following = group.create_task(self._source.follow(self._announce), name="webhook certificates")
            try:
                yield
            finally:
                following.cancel()
                await self._leave(registration, server)

    async def lead(self) -> None:
        """Take over the webhooks from the previous leader."""
        if isinstance(self._registration, UrlRegistration) and not self._registration.leading:
            self._registration.lead()
            await self._retried(lambda: self._announce(self._ca_bundle))

    async def _listen(self, stack: AsyncExitStack, reviewers: dict[str, Reviewer]) -> WebhookServer:
        async def listen(address: BindAddress) -> WebhookServer:
            server = WebhookServer(address, reviewers, self._context, self._metrics)
            return await stack.enter_async_context(server)

        if self._options.reach != "url":
            return await listen(self._options.address)
        try:
            return await listen(BindAddress(self._url_host, self._options.address.port))
        except BindError as error:
            # The registration contains the address, so any port can be used.
            _log.info("Serving webhooks on another port: %s", error)
            return await listen(BindAddress(self._url_host, 0))

    async def _announce(self, ca_bundle: bytes) -> None:
        self._ca_bundle = ca_bundle
        if self._registration is None:
            return
        # Once registered, a replica stays ready: a later failed write must not remove it from the Service.
        await self._registration.register(ca_bundle)
        self._registered = True

    async def _retried(self, attempt: Callable[[], Awaitable[R]]) -> R:
        """Retry until it succeeds; raise errors that a retry cannot fix."""
        for number in count():
            try:
                done = await attempt()
            except (ApiError, ConnectionFailed) as error:
                if not _passes(error):
                    raise
                if str(error) != self._problem:
                    self._problem = str(error)
                    _log.warning("Registering webhooks failed, trying again: %s", error)
                await asyncio.sleep(RETRIES.delay(number))
            else:
                self._problem = ""
                return done
        raise AssertionError("unreachable")

    async def _leave(self, registration: Registration, server: WebhookServer) -> None:
        server.drain()
        await self._take_away(registration)
        await asyncio.sleep(URL_DRAIN if self._options.reach == "url" else SERVICE_DRAIN)

    async def _take_away(self, registration: Registration) -> None:
        try:
            async with asyncio.timeout(TAKEN_AWAY_WITHIN):
                await registration.unregister()
        except TimeoutError:
            _log.error("The webhooks could not be taken away within %.0f s", TAKEN_AWAY_WITHIN)

    def _make_source(self) -> CertificateSource:
        options, chosen = self._options, self._options.webhooks
        if chosen.cert_dir is not None:
            return DirectorySource(self._context, self._metrics, chosen.cert_dir)
        if options.reach == "given":
            raise ConfigError(
                "webhooks with --webhook-reach given need a certificate that their registration trusts: --webhook-cert-dir"
            )
        if options.reach == "service":
            store = SecretStore(self._client, options.namespace, self._names.secret)
            service = self._names.service
            return source_of_service(store, service, self._metrics, self._context, chosen.lifetimes)
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
            ephemeral_cluster=options.webhooks.ephemeral_cluster,
            declared_policies=options.webhooks.declared_policies,
        )

    @property
    def _url_host(self) -> str:
        host = self._options.address.host
        return host if host and not _unspecified(host) else "127.0.0.1"


def _passes(error: KubewrightError) -> bool:
    """Return True if another attempt may succeed: after a conflict or a temporary failure of the server."""
    if isinstance(error, ApiError):
        return error.status.code in (409, 429) or error.status.code >= 500
    return isinstance(error, ConnectionFailed)


def _unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
