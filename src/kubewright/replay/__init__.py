"""Run a recorded reconcile again: the objects that it read, at the time that it was, with the errors that it got.

`recorded` reads it from a record file, `running` runs it on an embedded server, `writes` compares what it writes with
what was written then.
"""

from kubewright.replay.recorded import (
    RecordedReconcile,
    ReplayError,
    extract,
    find_reconcile,
    recorded_reconciles,
)
from kubewright.replay.running import Replayed, replay
from kubewright.replay.writes import differences

__all__ = [
    "RecordedReconcile",
    "ReplayError",
    "Replayed",
    "differences",
    "extract",
    "find_reconcile",
    "recorded_reconciles",
    "replay",
]
