"""What runs a declared controller; imported by the manager, never by an author's program.

In reading order: `dependencies` (what all controllers share), `runner` (a change, or an event of an external system,
becomes a key, and a key becomes a reconcile), `reconciliation` (one key: deletion first, then the author's function),
`context` (the implementation of what that function is given, with its threads), `reading` and `writer` (requests to
the cluster and the cache), `drift` (the backoff for writes that something else undoes) and `telemetry` (metrics, logs
and spans).
The entry point is `Runner`.
"""

from kubewright.controller.running.dependencies import MalformedObjects, RuntimeDependencies, Views
from kubewright.controller.running.runner import Runner, RunnerStatistics
from kubewright.controller.running.telemetry import Tracer, Traces

__all__ = [
    "MalformedObjects",
    "Runner",
    "RunnerStatistics",
    "RuntimeDependencies",
    "Tracer",
    "Traces",
    "Views",
]
