"""A webhook server on loopback with nobody behind it, and a client that trusts it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from kubewright.metrics import Registry
from kubewright.serving import Address
from kubewright.webhook import Endpoints, Lifetimes
from kubewright.webhook.server.answers import answerers_for
from kubewright.webhook.server.authority import Bundle, begin, utc_now
from kubewright.webhook.server.context import FollowingContext
from kubewright.webhook.server.http import WebhookServer


@dataclass
class Called:
    server: WebhookServer
    session: aiohttp.ClientSession
    metrics: Registry
    context: FollowingContext
    bundle: Bundle

    def __post_init__(self) -> None:
        # One for all requests, so that they share a connection.
        self.trust = trust(self.bundle)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    async def post(self, path: str, body: Any, **options: Any) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        async with self.session.post(
            f"{self.url}{path}", data=body, headers=headers, ssl=self.trust, **options
        ) as response:
            return response.status, await response.read()

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(sample.labels.values()): sample.value
            for family in self.metrics.families()
            if family.name == name
            for sample in family.samples
        }


def trust(bundle: Bundle) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=bundle.ca_bundle.decode())


@asynccontextmanager
async def called(webhooks: Sequence[Any], context: FollowingContext | None = None) -> AsyncIterator[Called]:
    metrics, bundle = Registry(), begin(["127.0.0.1"], Lifetimes(), utc_now())
    chosen = context or FollowingContext()
    await asyncio.to_thread(chosen.load, bundle.certificate, bundle.key)
    server = WebhookServer(
        Address("127.0.0.1", 0), answerers_for(Endpoints(webhooks), metrics), chosen, metrics
    )
    async with server, aiohttp.ClientSession() as session:
        yield Called(server, session, metrics, chosen, bundle)
