"""Run a recorded reconcile again: with the objects that it read, at the recorded time, and with the recorded errors.

`recorded` reads it from a record file, `running` runs it on an embedded server, `writes` compares its writes with the
recorded ones.
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
