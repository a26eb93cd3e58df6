"""A webhook server on loopback without a cluster, and a client that trusts it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from http_wire import HttpConnection, Reply, connected

from kubewright.certificates import FollowingContext
from kubewright.metrics import Registry
from kubewright.serving import BindAddress
from kubewright.webhook import Endpoints, Lifetimes
from kubewright.webhook.certificates.authority import CertificateBundle, begin, utc_now
from kubewright.webhook.server.http import WebhookServer
from kubewright.webhook.server.reviewers import reviewers_for


@dataclass
class Called:
    server: WebhookServer
    wire: HttpConnection
    """A connection that requests share, as those of an API server do."""
    metrics: Registry
    context: FollowingContext
    bundle: CertificateBundle

    async def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        reply = await asked(self.wire, path, body, **headers)
        return reply.status, reply.body

    def connect(self, bundle: CertificateBundle | None = None) -> AbstractAsyncContextManager[HttpConnection]:
        """Open another connection, which trusts the authority of a bundle."""
        return connected(self.server.port, trust(bundle or self.bundle))

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(sample.labels.values()): sample.value
            for family in self.metrics.families()
            if family.name == name
            for sample in family.samples
        }


async def asked(wire: HttpConnection, path: str, body: bytes, **headers: str) -> Reply:
    """Post a review."""
    return await wire.ask("POST", path, body, {"Content-Type": "application/json", **headers})


def trust(bundle: CertificateBundle) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=bundle.ca_bundle.decode())


@asynccontextmanager
async def called(webhooks: Sequence[Any], context: FollowingContext | None = None) -> AsyncIterator[Called]:
    metrics, bundle = Registry(), begin(["127.0.0.1"], Lifetimes(), utc_now())
    chosen = context or FollowingContext()
    await asyncio.to_thread(chosen.load, bundle.certificate, bundle.key)
    server = WebhookServer(
        BindAddress("127.0.0.1", 0), reviewers_for(Endpoints(webhooks), metrics), chosen, metrics
    )
    async with server, connected(server.port, trust(bundle)) as wire:
        yield Called(server, wire, metrics, chosen, bundle)
