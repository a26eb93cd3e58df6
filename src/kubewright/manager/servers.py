"""The HTTP servers of an operator: probes, metrics and webhooks."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

from kubewright.client import Client
from kubewright.controller import Operator
from kubewright.http.server import Router
from kubewright.journal import Journal, Redactor
from kubewright.manager.options import ManagerOptions, metrics_secret
from kubewright.manager.parts import OptionalModule
from kubewright.metrics import Registry
from kubewright.serving import PROBE_LIMITS, BindError, BoundHttpServer, Checks, Guard, parse_address

_log = logging.getLogger("kubewright.manager")


class ServedWebhooks(Protocol):
    """Webhooks that are being served: `WebhookHost`, which is only imported for operators that have webhooks."""

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


class JournalSource(NamedTuple):
    """The journal of an operator, what removes sensitive values from it, and what else is known of the operator."""

    journal: Journal
    redactor: Callable[[], Redactor]
    describe: Callable[[], dict[str, Any]]


async def serve_journal(stack: AsyncExitStack, options: ManagerOptions, source: JournalSource) -> None:
    """Serve the journal on the loopback interface, if a file for its address is given."""
    if options.journal_file is None or not source.journal.enabled:
        return
    page = await OptionalModule.JOURNAL_PAGE.load()
    local = page.LocalJournal(options.journal_file, *source)
    await stack.enter_async_context(local.server)
    try:
        await asyncio.to_thread(local.publish)
    except OSError as error:
        _log.warning("`kubewright why` cannot ask this operator: %s", error)
    else:
        stack.push_async_callback(asyncio.to_thread, local.withdraw)


async def serve_metrics(
    stack: AsyncExitStack,
    group: asyncio.TaskGroup,
    client: Client,
    options: ManagerOptions,
    metrics: Registry,
    source: JournalSource,
) -> int:
    """Serve metrics, with TLS the journal as well, and return the port."""
    address = parse_address(options.metrics_bind_address)
    if address is None:
        return 0
    page_type = (await OptionalModule.METRICS_PAGE.load()).MetricsPage
    if not options.metrics_secure:
        server = BoundHttpServer(address, Router(page_type(metrics).routes))
    else:
        context = await _metrics_certificate(stack, group, client, options, metrics)
        guard = Guard(client)
        routes = page_type(metrics, guard).routes
        if source.journal.enabled:
            journal_page = (await OptionalModule.JOURNAL_PAGE.load()).JournalPage
            routes += journal_page(*source, guard=guard).routes
        server = BoundHttpServer(address, Router(routes), tls=context)
    with _naming("--metrics-bind-address"):
        return (await stack.enter_async_context(server)).port


async def _metrics_certificate(
    stack: AsyncExitStack,
    group: asyncio.TaskGroup,
    client: Client,
    options: ManagerOptions,
    metrics: Registry,
) -> Any:
    """Return the TLS context of the metrics, whose certificate is kept up to date while they are served."""
    if options.metrics_service and options.metrics_cert_dir is None:
        certificates = await OptionalModule.SERVICE_CERTIFICATES.load()
        secret = metrics_secret(options.metrics_service)
        store = certificates.SecretStore(client, client.config.namespace, secret)
        source = certificates.source_of_service(store, options.metrics_service, metrics)
        await source.prepare()
        following: Coroutine[Any, Any, None] = source.follow(_nothing_to_announce)
    else:
        serving = await OptionalModule.SERVING_CERTIFICATES.load()
        source = await asyncio.to_thread(serving.ServingCertificate, options.metrics_cert_dir)
        following = source.follow()
    stack.callback(group.create_task(following, name="certificate").cancel)
    return source.context


async def _nothing_to_announce(authorities: bytes) -> None:
    """Do nothing: Prometheus reads the authorities from the Secret."""


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
    server = await OptionalModule.WEBHOOK_SERVER.load()
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
    except server.WebhookUnreachable as error:
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
