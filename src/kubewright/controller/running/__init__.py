"""What runs a declared controller; imported by the manager, never by an author's program.

In reading order: `surroundings` (what all controllers share), `shelves` (a kind's objects at hand), `runner`
(a change becomes a key, a key becomes a reconcile), `reconciliation` (one key: deletion first, then the
author), `context` (the body of what the author is given), `reading` and `writer` (what goes to the cluster),
`subjects` (what a writing verb is given), `threads`, and `instruments`, `reporting` and
`traces` (metrics, logs and spans).
"""

from kubewright.controller.running.runner import Runner, RunnerStatistics
from kubewright.controller.running.surroundings import MalformedObjects, Surroundings, Views
from kubewright.controller.running.traces import Tracer, Traces

__all__ = [
    "MalformedObjects",
    "Runner",
    "RunnerStatistics",
    "Surroundings",
    "Tracer",
    "Traces",
    "Views",
]
