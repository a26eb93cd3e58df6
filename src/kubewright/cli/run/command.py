"""`kubewright run`."""

import asyncio
import gc
import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kubewright.api import ConfigError
from kubewright.cli.kubeconfigs import write_kubeconfig
from kubewright.cli.logs import LogFormat, OnlyControllers, set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.options import (
    FILE,
    cluster_options,
    namespaces_option,
    parse_size,
    parse_size_or_off,
    target_argument,
)
from kubewright.cli.progress import Progress
from kubewright.cli.target import load_operator
from kubewright.cli.why.sources import journal_file
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.client.recording import Recording
from kubewright.controller import Operator
from kubewright.manager import ElectionOptions, Manager, ManagerOptions, WebhookOptions
from kubewright.packaging import check_env

# Loaded only for options that need them: an operator in a cluster uses none.
DEVCLUSTER = "kubewright.devcluster"
GENERATE = "kubewright.generate"
INSTALLATION = "kubewright.cli.definitions.installation"
RELOAD = "kubewright.cli.run.reload"


# Any free port: several operators may run at the same time, each on its own dev cluster.
DEV_ADDRESSES = dict.fromkeys(
    ("metrics_bind_address", "health_probe_bind_address", "webhook_bind_address"), "127.0.0.1:0"
)
_log = logging.getLogger("kubewright.run")


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
    help="Size at which the record file is rotated away: the file and its predecessor FILE.1 together.",
)
@cluster_options
@namespaces_option("Namespace to watch, or several separated by commas; repeatable. Default: all.")
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
    kubeconfig: Path | None,
    context: str,
    log_format: LogFormat,
    verbose: bool,
    **options: Any,
) -> None:
    """Run the operator TARGET until SIGTERM or Ctrl-C.

    The first signal waits for running reconciles to finish; the second one stops immediately.
    """
    log = set_up(log_format, level=logging.DEBUG if verbose else logging.INFO)
    if dev and (kubeconfig or context):
        raise click.UsageError(
            "--dev cannot be combined with --kubeconfig or --context: it starts its own cluster"
        )
    if dev and record_access:
        raise click.UsageError(
            "--record-access cannot be combined with --dev, which runs as cluster admin: record on a cluster where the roles are bound"
        )
    if reloading:
        # The child process writes its own log; of the dev cluster only errors are shown.
        log.setLevel(logging.ERROR)
        run_program(lambda: until_signalled(_reload(ctx, target, dev=dev)))
        return
    operator = load_operator(target)
    check_env(operator.env, os.environ)
    log.addFilter(OnlyControllers([controller.name for controller in operator.controllers]))
    if dev:
        options |= {"webhook_reach": "url", "ephemeral_cluster": True, **_free_ports(ctx)}
    state = None if dev else _webhook_state(operator.name)
    manager_options, shutdown = _manager_options(options, state), _Shutdown()
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        manager_options = replace(manager_options, journal_file=journal_file(operator.name))
    if dev:
        with tempfile.TemporaryDirectory(prefix="kubewright-dev-") as folder:
            path = Path(folder, "kubeconfig")
            work = partial(_run_on_dev_cluster, operator, manager_options, path, shutdown)
            run_program(lambda: until_signalled(work(), on_stop=shutdown.begin))
        return
    config, asked = load_config(kubeconfig, context or None), Recording()
    if record_access is not None:
        _try_to_write(record_access)
        config = replace(config, observer=asked.observe)
    try:
        work = partial(_run, operator, config, manager_options, shutdown, installing=installing)
        run_program(lambda: until_signalled(work(), on_stop=shutdown.begin))
    finally:
        if record_access is not None:
            asked.append_to(record_access, operator.name)


def _free_ports(ctx: click.Context) -> Mapping[str, str]:
    """Return addresses with free ports for those that the command line does not set."""
    return {
        name: address
        for name, address in DEV_ADDRESSES.items()
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
    }


def _try_to_write(path: Path) -> None:
    """Raise ConfigError if the recording cannot be written: a run may last for days before it is."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise ConfigError(
            f"cannot write {path}: {error.strerror}; choose another with --record-access"
        ) from None


def _manager_options(given: Mapping[str, Any], state: Path | None) -> ManagerOptions:
    webhooks = WebhookOptions(
        bind_address=given["webhook_bind_address"],
        reach=given["webhook_reach"],
        cert_dir=given["webhook_cert_dir"],
        client_ca=given["webhook_client_ca"],
        state=state,
        ephemeral_cluster=given["ephemeral_cluster"],
    )
    election = ElectionOptions(name=given["leader_election_id"], namespace=given["leader_election_namespace"])
    return ManagerOptions(
        namespaces=given["namespaces"],
        election=election if given["leader_elect"] else None,
        webhooks=webhooks,
        metrics_bind_address=given["metrics_bind_address"],
        metrics_secure=given["metrics_secure"],
        health_probe_bind_address=given["health_probe_bind_address"],
        journal_limit=given["journal_limit"],
        record=given["record"],
        record_limit=given["record_limit"],
        pause_gc=True,
    )


def _webhook_state(name: str) -> Path:
    """Return the file that keeps the webhooks' certificates, so that a run after a crash changes nothing."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(folder, "kubewright", "webhooks", f"{name}.json")


async def _reload(ctx: click.Context, target: str, *, dev: bool) -> None:
    """Run the operator in a child process; a dev cluster runs in this process and outlives the child."""
    reload = import_module(RELOAD)
    arguments = ["run", *reload.arguments_of(ctx, without=("reloading", "dev"))]
    if not dev:
        await reload.run_reloading(arguments, reload.folder_of(target))
        return
    with tempfile.TemporaryDirectory(prefix="kubewright-dev-") as folder:
        path = Path(folder, "kubeconfig")
        async with import_module(DEVCLUSTER).DevCluster() as cluster:
            await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
            click.echo(f"dev cluster at {cluster.url}: export KUBECONFIG={path}", err=True)
            arguments += ["--install", "--ephemeral-cluster", "--kubeconfig", str(path)]
            for name, address in _free_ports(ctx).items():
                arguments += [f"--{name.replace('_', '-')}", address]
            await reload.run_reloading(arguments, reload.folder_of(target))


async def _run_on_dev_cluster(
    operator: Operator, options: ManagerOptions, path: Path, shutdown: "_Shutdown"
) -> None:
    async with import_module(DEVCLUSTER).DevCluster() as cluster:
        await asyncio.to_thread(write_kubeconfig, path, cluster.kubeconfig())
        click.echo(f"dev cluster at {cluster.url}: export KUBECONFIG={path}", err=True)
        await _run(operator, cluster.config, options, shutdown, installing=True)


async def _run(
    operator: Operator,
    config: ClusterConfig,
    options: ManagerOptions,
    shutdown: "_Shutdown",
    *,
    installing: bool,
) -> None:
    if installing:
        async with Client(config) as client:
            generate = import_module(GENERATE)
            definitions = generate.crds(operator, generate.Names(operator.name))
            await import_module(INSTALLATION).install(client, definitions, Progress())
    manager = shutdown.manager = Manager(operator, config, options)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_settle_memory(manager))
            await manager.run()
    finally:
        shutdown.summarize()


class _Shutdown:
    """The messages shown when the operator stops."""

    def __init__(self) -> None:
        self.manager: Manager | None = None
        self._started = time.monotonic()

    def begin(self) -> None:
        """Log what a stop waits for."""
        controllers = self.manager.statistics().controllers if self.manager is not None else ()
        if count := sum(controller.queue.in_flight for controller in controllers):
            _log.info(
                "Stopping: waiting for %d reconcile%s (Ctrl-C again to stop now)", count, "s"[: count != 1]
            )

    def summarize(self) -> None:
        """Log what was done."""
        controllers = self.manager.statistics().controllers if self.manager is not None else ()
        outcomes = Counter[str]()
        for controller in controllers:
            outcomes.update(controller.outcomes)
        _log.info(
            "Stopped",
            extra={
                "fields": {
                    "seconds": round(time.monotonic() - self._started),
                    "reconciles": outcomes.total(),
                    "errors": outcomes["error"],
                }
            },
        )


async def _settle_memory(manager: Manager) -> None:
    """Exempt the cached objects from Python's garbage collection: they live as long as the process."""
    await manager.synced.wait()
    gc.freeze()
