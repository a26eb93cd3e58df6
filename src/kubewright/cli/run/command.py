"""`kubewright run` with all of its options; see `kubewright.cli.entry` for those of a Deployment."""

import asyncio
import logging
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from msgspec import structs

from kubewright.api import ConfigError
from kubewright.api.sharding import Shards, parse_shards
from kubewright.cli.kubeconfigs import write_kubeconfig
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import (
    FILE,
    cluster_options,
    namespace_selector_option,
    namespaces_option,
    page_port,
    parse_size,
    parse_size_or_off,
    selector_option,
    target_argument,
    ui_options,
)
from kubewright.cli.progress import Progress
from kubewright.cli.run.arguments import RunOptions
from kubewright.cli.run.operator import ShutdownLog, load_checked, manager_options, run_manager, set_up_log
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.client.recording import Recording
from kubewright.controller import Operator
from kubewright.manager import ManagerOptions

# Loaded only for options that need them.
DEVCLUSTER = "kubewright.devcluster"
GENERATE = "kubewright.generate"
INSTALLATION = "kubewright.cli.definitions.installation"
PAGE = "kubewright.cli.ui"
RELOAD = "kubewright.cli.run.reload"


# Any free port: several operators may run at the same time, each on its own dev cluster.
DEV_ADDRESSES = dict.fromkeys(
    ("metrics_bind_address", "health_probe_bind_address", "webhook_bind_address"), "127.0.0.1:0"
)


def _parse_shards(ctx: click.Context, param: click.Parameter, value: str | None) -> Shards | None:
    return None if value is None else parse_shards(value)


@click.command()
@target_argument
@click.option(
    "--dev",
    is_flag=True,
    help="Start an embedded cluster, install the CRDs and run there, on free ports.",
)
@click.option("--install", "installing", is_flag=True, help="Install the CRDs before starting.")
@click.option("--reload", "reloading", is_flag=True, help="Restart when a Python file of TARGET changes.")
@click.option(
    "--record-access",
    type=FILE,
    default=None,
    help="Append the API requests made to this file, for `kubewright rbac verify`.",
)
@click.option(
    "--journal-limit",
    metavar="SIZE",
    default="16Mi",
    show_default=True,
    callback=parse_size_or_off,
    help="Memory for the journal of the latest reconciles, which `kubewright why` reads; 0 turns it off.",
)
@click.option(
    "--record",
    type=FILE,
    default=None,
    help="Append all reconciles to this file, for `kubewright why --record`; without the data of Secrets.",
)
@click.option(
    "--record-limit",
    metavar="SIZE",
    default="200Mi",
    show_default=True,
    callback=parse_size,
    help="Maximum size of the record file and the rotated file FILE.1 together.",
)
@cluster_options
@namespaces_option("Namespace to watch, or several separated by commas; repeatable. Default: all.")
@namespace_selector_option(
    "Watch the namespaces with these labels, such as team=a, and follow changes of the labels."
)
@selector_option(
    "Reconcile only the objects with these labels, such as track=canary; each selector has its own Lease."
)
@click.option("--leader-elect", is_flag=True, help="Enable leader election.")
@click.option(
    "--leader-election-id",
    metavar="NAME",
    default="",
    help="Name of the leader election Lease; default: the operator's name.",
)
@click.option(
    "--leader-election-namespace",
    metavar="NAMESPACE",
    default="",
    help="Namespace of the leader election Lease; default: the operator's own.",
)
@click.option(
    "--shards",
    metavar="NUMBER[,namespace]",
    default=None,
    callback=_parse_shards,
    help="Divide the objects over all replicas by uid, or by namespace: each shard has a Lease. Implies --leader-elect.",
)
@click.option(
    "--metrics-bind-address",
    metavar="ADDRESS",
    default=":8080",
    show_default=True,
    help="Address to serve /metrics on; 0 disables it.",
)
@click.option(
    "--metrics-secure",
    is_flag=True,
    help="Serve /metrics over TLS, with authentication and authorization by the API server.",
)
@click.option(
    "--metrics-service",
    metavar="NAME",
    default="",
    help="Service of the secure metrics: sign a certificate for it, and keep it with its CA in the Secret NAME-cert.",
)
@click.option(
    "--health-probe-bind-address",
    metavar="ADDRESS",
    default=":8081",
    show_default=True,
    help="Address to serve /healthz and /readyz on; 0 disables them.",
)
@click.option(
    "--webhook-bind-address",
    metavar="ADDRESS",
    default=":9443",
    show_default=True,
    help="Address to serve webhooks on; 0 disables them.",
)
@click.option(
    "--webhook-reach",
    type=click.Choice(["service", "url", "given"]),
    default=None,
    help="How the API server reaches the webhooks; given: they are registered by another tool. Default: detected.",
)
@click.option(
    "--without-webhook",
    "replaced_webhooks",
    metavar="NAME",
    multiple=True,
    help="Do not serve this admission webhook: a policy of `kubewright manifests --policies` replaces it; repeatable.",
)
@click.option(
    "--webhook-cert-dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=None,
    help="Directory with tls.crt and tls.key for the webhook server; default: self-managed certificates.",
)
@click.option(
    "--webhook-client-ca",
    type=FILE,
    default=None,
    help="CA bundle to verify webhook clients with; default: client certificates are not required.",
)
@ui_options
@click.option(
    "--ephemeral-cluster", is_flag=True, hidden=True, help="The cluster stops with the parent process."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Enable debug logging.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    dev: bool,
    installing: bool,
    reloading: bool,
    record_access: Path | None,
    ui: bool,
    ui_port: int,
    **options: Any,
) -> None:
    """Run the operator TARGET until SIGTERM or Ctrl-C.

    The first signal waits for running reconciles to finish; the second one stops immediately.
    """
    given = RunOptions(target=target, **options)
    log = set_up_log(given)
    if dev and (given.kubeconfig or given.context):
        raise click.UsageError(
            "--dev cannot be combined with --kubeconfig or --context: it starts its own cluster"
        )
    if given.namespaces and given.namespace_selector is not None:
        raise click.UsageError(
            "--namespace cannot be combined with --namespace-selector: choose namespaces by name or by label"
        )
    live_port = page_port(ui, ui_port)
    if dev and record_access:
        raise click.UsageError(
            "--record-access cannot be combined with --dev, which runs as cluster admin: record on a cluster where the roles are bound"
        )
    if reloading:
        # The child process writes its own log; of the dev cluster only errors are shown.
        log.setLevel(logging.ERROR)
        page = None if live_port is None else _Page(target, live_port)
        config = None if dev or page is None else load_config(given.kubeconfig, given.context or None)
        run_program(lambda: until_signalled(_reload(ctx, target, page, config, dev=dev)))
        return
    operator = load_checked(given, log)
    if dev:
        given = structs.replace(given, webhook_reach="url", ephemeral_cluster=True, **_free_ports(ctx))
    chosen, shutdown = manager_options(operator, given, dev=dev), ShutdownLog()
    page = None if live_port is None else _Page(operator.name, live_port)
    if dev:
        with tempfile.TemporaryDirectory(prefix="kubewright-dev-") as folder:
            path = Path(folder, "kubeconfig")
            work = partial(_run_on_dev_cluster, operator, chosen, path, shutdown, page)
            run_program(lambda: until_signalled(work(), on_stop=shutdown.begin))
        return
    config, recording = load_config(given.kubeconfig, given.context or None), Recording()
    if record_access is not None:
        _try_to_write(record_access)
        config = replace(config, observer=recording.observe)
    try:
        work = partial(_run, operator, config, chosen, shutdown, page, installing=installing)
        run_program(lambda: until_signalled(work(), on_stop=shutdown.begin))
    finally:
        if record_access is not None:
            recording.append_to(record_access, operator.name)


def _free_ports(ctx: click.Context) -> Mapping[str, str]:
    """Return addresses with free ports for those that the command line does not set."""
    return {
        name: address
        for name, address in DEV_ADDRESSES.items()
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
    }


def _try_to_write(path: Path) -> None:
    """Raise ConfigError if the recording cannot be written; it is written at the end of the run, maybe after days."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror}; choose another with --record-access"
        ) from None


class _Page(NamedTuple):
    """The live page that is served while the operator runs."""

    title: str
    port: int

    async def enter(self, stack: AsyncExitStack, config: ClusterConfig) -> None:
        """Serve the page until the stack is closed, and print the link to it."""
        module = await asyncio.to_thread(import_module, PAGE)
        page = module.live_page(config, title=self.title, port=self.port)
        click.echo(f"live page: {await stack.enter_async_context(page)}", err=True)


async def _reload(
    ctx: click.Context, target: str, page: _Page | None, config: ClusterConfig | None, *, dev: bool
) -> None:
    """Run the operator in a child process; a dev cluster and the page run in this process and outlive the child."""
    reload = import_module(RELOAD)
    arguments = ["run", *reload.arguments_of(ctx, without=("reloading", "dev", "ui", "ui_port"))]
    if not dev:
        async with AsyncExitStack() as stack:
            if page is not None and config is not None:
                await page.enter(stack, config)
            await reload.run_reloading(arguments, reload.folder_of(target))
        return
    with tempfile.TemporaryDirectory(prefix="kubewright-dev-") as folder:
        path = Path(folder, "kubeconfig")
        async with import_module(DEVCLUSTER).DevCluster() as cluster, AsyncExitStack() as stack:
            await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
            click.echo(f"dev cluster at {cluster.url}: export KUBECONFIG={path}", err=True)
            if page is not None:
                await page.enter(stack, cluster.config)
            arguments += ["--install", "--ephemeral-cluster", "--kubeconfig", str(path)]
            for name, address in _free_ports(ctx).items():
                arguments += [f"--{name.replace('_', '-')}", address]
            await reload.run_reloading(arguments, reload.folder_of(target))


async def _run_on_dev_cluster(
    operator: Operator, options: ManagerOptions, path: Path, shutdown: ShutdownLog, page: _Page | None
) -> None:
    async with import_module(DEVCLUSTER).DevCluster() as cluster:
        await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
        click.echo(f"dev cluster at {cluster.url}: export KUBECONFIG={path}", err=True)
        await _run(operator, cluster.config, options, shutdown, page, installing=True)


async def _run(
    operator: Operator,
    config: ClusterConfig,
    options: ManagerOptions,
    shutdown: ShutdownLog,
    page: _Page | None,
    *,
    installing: bool,
) -> None:
    if installing:
        async with Client(config) as client:
            generate = import_module(GENERATE)
            definitions = generate.crds(operator, generate.Names(operator.name))
            await import_module(INSTALLATION).install(client, definitions, Progress())
    async with AsyncExitStack() as stack:
        if page is not None:
            await page.enter(stack, config)
        await run_manager(operator, config, options, shutdown)
