"""How to run an operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubewright.controller.running import Tracer
from kubewright.election import ElectionOptions
from kubewright.journal import DEFAULT_FILE_LIMIT, DEFAULT_LIMIT
from kubewright.webhook import WebhookOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """How to run an operator; the defaults are controller-runtime's.

    Addresses are `:8080`, `127.0.0.1:0` or `0` for off. `namespaces` limits everything that is watched.
    With `election` the controllers work only while they hold the lease.
    `tracer` creates the spans of reconciles and writes, by default OpenTelemetry's if that is installed.
    `run_sync_observer` is called with the names of the controller and the function before each `ctx.run_sync`.
    `journal_limit` is the memory, in bytes, for the journal of the latest reconciles; 0 turns it off.
    `journal_file` is where address and token of the journal are written, which is then served on the loopback interface.
    `record` is a file for all reconciles, of at most `record_limit` bytes together with its predecessor.
    `pause_gc` stops Python's garbage collector while the caches fill: for programs, not for tests.
    """

    namespaces: Sequence[str] = ()
    election: ElectionOptions | None = None
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    metrics_bind_address: str = ":8080"
    metrics_secure: bool = False
    metrics_cert_dir: Path | None = None
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
