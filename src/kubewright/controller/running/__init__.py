"""What runs a declared controller; imported by the manager, never by an author's program.

In reading order:

- `dependencies`: what all controllers of a manager share; `namespaces`: the namespaces that are selected by label;
- `runner`: a change, or an event of an external system, becomes a key, and a key becomes a reconcile;
- `reconciliation`: one key, deletion first, then the reconciler; `pausing`: the annotations that pause an object;
  `own_writes`: which changes are the reconcile's own; `failures`: what is logged about a failure, and what is retried;
- `context`: the `Context` that the reconciler is given, with its threads; `reading` and `writer`: requests to the cluster
  and the cache; `steps`: durable steps; `disruption`: limits for disruptive writes; `drift`: backoff for writes that
  another client reverts; `external_calls`: what `ctx.record` records and a replay repeats;
- `telemetry`: metrics, logs and spans.

The entry point is `Runner`.
"""

from kubewright.controller.running.dependencies import MalformedObjects, RuntimeDependencies, Shard, Views
from kubewright.controller.running.external_calls import NotRecorded, RecordedAnswers
from kubewright.controller.running.namespaces import NAMESPACE, FollowedNamespaces
from kubewright.controller.running.runner import Runner, RunnerStatistics
from kubewright.controller.running.telemetry import Tracer, Traces

__all__ = [
    "NAMESPACE",
    "FollowedNamespaces",
    "MalformedObjects",
    "NotRecorded",
    "RecordedAnswers",
    "Runner",
    "RunnerStatistics",
    "RuntimeDependencies",
    "Shard",
    "Tracer",
    "Traces",
    "Views",
]
