"""How to run an operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubewright.api.scoping import NamespaceSelector
from kubewright.api.sharding import Shards
from kubewright.controller.running import Tracer
from kubewright.election import ElectionOptions
from kubewright.journal import DEFAULT_FILE_LIMIT, DEFAULT_LIMIT
from kubewright.webhook import WebhookOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """How to run an operator; the defaults are controller-runtime's.

    Addresses are `:8080`, `127.0.0.1:0` or `0` for off. `namespaces` limits everything that is watched, and `namespace_selector`
    limits it to the namespaces with certain labels; both replace the operator's own setting. `selector` is a label selector
    that limits the reconciled objects, and part of the name of the lease.
    `metrics_service` is the Service of the secure metrics: the operator signs a certificate for it, and keeps it, with its CA,
    in the Secret that `metrics_secret` names; otherwise each process signs its own.
    With `election` the controllers work only while they hold the lease. `shards` divides the objects over all replicas, in place
    of the operator's own setting.
    `tracer` creates the spans of reconciles and writes, by default OpenTelemetry's if that is installed.
    `run_sync_observer` is called with the names of the controller and the function before each `ctx.run_sync`.
    `journal_limit` is the memory, in bytes, for the journal of the latest reconciles; 0 turns it off.
    `journal_file` is where address and token of the journal are written, which is then served on the loopback interface.
    `record` is a file for all reconciles, of at most `record_limit` bytes together with its predecessor.
    `disruption_limits=False` ignores the budgets and windows of the controllers: for plans.
    `pause_gc` stops Python's garbage collector while the caches fill: for programs, not for tests.
    """

    namespaces: Sequence[str] = ()
    namespace_selector: NamespaceSelector | None = None
    selector: str = ""
    election: ElectionOptions | None = None
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    metrics_bind_address: str = ":8080"
    metrics_secure: bool = False
    metrics_cert_dir: Path | None = None
    metrics_service: str = ""
    health_probe_bind_address: str = ":8081"
    graceful_timeout: float = 30.0
    cache_sync_timeout: float = 120.0
    watchdog: bool = True
    tracer: Tracer | None = None
    pause_gc: bool = False
    run_sync_observer: Callable[[str, str], None] | None = None
    journal_limit: int = DEFAULT_LIMIT
    journal_file: Path | None = None
    record: Path | None = None
    record_limit: int = DEFAULT_FILE_LIMIT
    disruption_limits: bool = True
    shards: Shards | None = None


def metrics_secret(service: str) -> str:
    """Return the name of the Secret with the certificates of the Service for metrics."""
    return f"{service}-cert"
