"""Run an operator until a signal arrives, as `kubewright run` does in a cluster; does not import click."""

import asyncio
import gc
import logging
import os
import time
from collections import Counter
from functools import partial
from importlib import import_module
from pathlib import Path

from kubewright.cli.logs import OnlyControllers, set_up
from kubewright.cli.loops import run_program, until_signalled
from kubewright.cli.run.arguments import RunOptions
from kubewright.cli.target import load_operator
from kubewright.client import ClusterConfig, load_config
from kubewright.controller import Operator
from kubewright.manager import ElectionOptions, Manager, ManagerOptions, WebhookOptions
from kubewright.packaging import check_env

# Loaded only outside of a cluster, where `kubewright why` finds the operator by a file.
WHY = "kubewright.why"
_log = logging.getLogger("kubewright.run")

YOUNG_OBJECTS = 5_000
"""Number of container objects that may be allocated before the next collection of the youngest generation."""


def run_in_process(options: RunOptions) -> None:
    """Run the operator on the cluster of the options until SIGTERM or Ctrl-C."""
    log = set_up_log(options)
    operator = load_checked(options, log)
    shutdown = ShutdownLog()
    config = load_config(options.kubeconfig, options.context or None)
    work = partial(run_manager, operator, config, manager_options(operator, options), shutdown)
    run_program(lambda: until_signalled(work(), on_stop=shutdown.begin))


def set_up_log(options: RunOptions) -> logging.Handler:
    """Send the log to standard error, as the options say."""
    return set_up(options.log_format, level=logging.DEBUG if options.verbose else logging.INFO)


def load_checked(options: RunOptions, log: logging.Handler) -> Operator:
    """Load the operator, without the webhooks that policies replace, and check the environment variables that it declares.

    Of the controllers' log records, `log` passes only those of this operator's controllers.
    """
    operator = load_operator(options.target).without_webhooks(options.replaced_webhooks)
    check_env(operator.env, os.environ)
    log.addFilter(OnlyControllers([controller.name for controller in operator.controllers]))
    return operator


def manager_options(operator: Operator, options: RunOptions, *, dev: bool = False) -> ManagerOptions:
    """Return the options of the manager; on a dev cluster no certificates of an earlier run are used."""
    webhooks = WebhookOptions(
        bind_address=options.webhook_bind_address,
        reach=options.webhook_reach,
        cert_dir=options.webhook_cert_dir,
        client_ca=options.webhook_client_ca,
        state=None if dev else _webhook_state(operator.name),
        ephemeral_cluster=options.ephemeral_cluster,
    )
    election = ElectionOptions(name=options.leader_election_id, namespace=options.leader_election_namespace)
    outside = not os.environ.get("KUBERNETES_SERVICE_HOST")
    return ManagerOptions(
        namespaces=options.namespaces,
        namespace_selector=options.namespace_selector,
        selector=options.selector,
        election=election if options.leader_elect or options.shards else None,
        webhooks=webhooks,
        metrics_bind_address=options.metrics_bind_address,
        metrics_secure=options.metrics_secure,
        metrics_service=options.metrics_service,
        health_probe_bind_address=options.health_probe_bind_address,
        journal_limit=options.journal_limit,
        journal_file=import_module(WHY).journal_file(operator.name) if outside else None,
        record=options.record,
        record_limit=options.record_limit,
        shards=options.shards,
        pause_gc=True,
    )


def _webhook_state(name: str) -> Path:
    """Return the file with the webhooks' certificates, so that a restart after a crash uses the same ones."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(folder, "kubewright", "webhooks", f"{name}.json")


async def run_manager(
    operator: Operator, config: ClusterConfig, options: ManagerOptions, shutdown: "ShutdownLog"
) -> None:
    """Run the operator until the task is cancelled, then log a summary."""
    manager = shutdown.manager = Manager(operator, config, options)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_settle_memory(manager))
            await manager.run()
    finally:
        shutdown.summarize()


class ShutdownLog:
    """The messages shown when the operator stops."""

    def __init__(self) -> None:
        self.manager: Manager | None = None
        self._started = time.monotonic()

    def begin(self) -> None:
        """Log that the operator stops, and how many reconciles it waits for."""
        controllers = self.manager.statistics().controllers if self.manager is not None else ()
        if count := sum(controller.queue.in_flight for controller in controllers):
            _log.info(
                "Stopping: waiting for %d reconcile%s (Ctrl-C again to stop now)", count, "s"[: count != 1]
            )

    def summarize(self) -> None:
        """Log how many reconciles there were."""
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
    """Exempt the cached objects from Python's garbage collection, which runs less often from then on.

    Cached objects live as long as the process. Objects that reconciles create are freed by reference counting; only
    cycles, such as those of exceptions, need a collection. 5,000 containers are a few megabytes; with Python's default
    threshold of 700, a busy operator would scan the latest entries of its journal again and again.
    """
    await manager.synced.wait()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
