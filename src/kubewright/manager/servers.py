"""The HTTP servers of an operator: probes, metrics and webhooks."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Protocol

from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.http.server import Router
from kubewright.manager.options import ManagerOptions
from kubewright.manager.parts import Part
from kubewright.metrics import Registry
from kubewright.serving import PROBE_LIMITS, BindError, BoundHttpServer, Checks, Guard, parse_address

_log = logging.getLogger("kubewright.manager")


class ServedWebhooks(Protocol):
    """Webhooks that are being served."""

    port: int

    async def lead(self) -> None:
        """Take over the webhooks from the previous leader."""
        ...


async def serve_probes(stack: AsyncExitStack, options: ManagerOptions, *checks: Checks) -> int:
    """Serve probes, and return the port."""
    address = parse_address(options.health_probe_bind_address)
    if address is None:
        return 0
    routes = [route for each in checks for route in each.routes]
    server = BoundHttpServer(address, Router(routes), limits=PROBE_LIMITS)
    with _naming("--health-probe-bind-address"):
        return (await stack.enter_async_context(server)).port


async def serve_metrics(
    stack: AsyncExitStack,
    group: asyncio.TaskGroup,
    client: Client,
    options: ManagerOptions,
    metrics: Registry,
) -> int:
    """Serve metrics, and return the port."""
    address = parse_address(options.metrics_bind_address)
    if address is None:
        return 0
    page_type = (await Part.METRICS_PAGE.load()).MetricsPage
    if not options.metrics_secure:
        server = BoundHttpServer(address, Router(page_type(metrics).routes))
    else:
        serving = await Part.SERVING_CERTIFICATES.load()
        certificate = await asyncio.to_thread(serving.ServingCertificate, options.metrics_cert_dir)
        stack.callback(group.create_task(certificate.follow(), name="certificate").cancel)
        page = page_type(metrics, Guard(client))
        server = BoundHttpServer(address, Router(page.routes), tls=certificate.context)
    with _naming("--metrics-bind-address"):
        return (await stack.enter_async_context(server)).port


async def serve_webhooks(
    stack: AsyncExitStack,
    group: asyncio.TaskGroup,
    client: Client,
    operator: Operator,
    options: ManagerOptions,
    metrics: Registry,
    readiness: Checks,
) -> ServedWebhooks | None:
    """Serve an operator's webhooks if it has any and the API server can reach them."""
    if not operator.webhooks:
        return None
    chosen = options.webhooks
    address = parse_address(chosen.bind_address)
    if address is None:
        _log.warning("Webhooks are off: objects are not validated, defaulted or converted")
        return None
    server = await Part.WEBHOOK_SERVER.load()
    try:
        host_options = server.HostOptions(
            address=address,
            namespace=client.config.namespace,
            reach=chosen.reach or server.reach_of(client.config),
            webhooks=chosen,
            standby=options.election is not None,
        )
        host = server.WebhookHost(operator.name, operator.webhooks, client, host_options, metrics)
        if chosen.reach is None:
            await host.confirm_reach()
    except server.Unreachable as error:
        if operator.webhooks.conversions:
            raise
        _log.warning("Webhooks are not served: %s", error)
        return None
    readiness.add("webhooks", host.problem)
    with _naming("--webhook-bind-address"):
        await stack.enter_async_context(host.serving(group))
    return host


@contextmanager
def _naming(option: str) -> Generator[None, None, None]:
    """Add the option that sets the address to a BindError."""
    try:
        yield
    except BindError as error:
        raise BindError(f"{error}; choose another with {option}, 0 is off") from error
