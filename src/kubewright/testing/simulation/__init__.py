"""Deterministic simulations of operators: one thread, virtual time, faults and crashes, everything from a seed.

Read in this order: `simulation` (the entry point, `simulate`), `loop` (processes and time), `network` (requests,
responses and watches), `schedule` (the order of messages, under control), `determinism` (random numbers and clocks),
`blocking` (code that never awaits), `world` (the stored state, for invariants), `outcome` (how two runs are compared), `trace`.
Then `external` (simulated external systems), `plan` (faults as data, drawn from a seed) and `invariants` (what holds for every operator), `seeds`
(simulations as pytest tests).
"""

from kubewright.testing.simulation.external import External
from kubewright.testing.simulation.invariants import (
    healthy,
    holds_shard,
    nothing_doubled,
    nothing_left,
    one_controller,
    stays_settled,
    truthful_generation,
)
from kubewright.testing.simulation.loop import Deadlock, Livelock, SimulationError
from kubewright.testing.simulation.outcome import outcome_of
from kubewright.testing.simulation.plan import (
    BACKUPS,
    COMMON,
    EXTERNAL_SYSTEMS,
    PORTABLE,
    WEBHOOKS,
    Crash,
    CutWatches,
    DropBookmarks,
    FailExternal,
    HoldEvents,
    JumpClock,
    Lose,
    LoseResponse,
    Pause,
    PauseAt,
    PauseLeader,
    Plan,
    PlannedFault,
    Refuse,
    RefuseRequest,
    RestoreBackup,
    SecondServer,
    SimulationFault,
    Slow,
    SlowExternal,
    WebhooksAway,
    draw_plan,
)
from kubewright.testing.simulation.schedule import Deviation, MessageSchedule, ScheduleMismatch
from kubewright.testing.simulation.seeds import simulated
from kubewright.testing.simulation.simulation import Replica, Simulation, simulate
from kubewright.testing.simulation.trace import Trace
from kubewright.testing.simulation.world import HotLoop, World, Write

__all__ = [
    "BACKUPS",
    "COMMON",
    "EXTERNAL_SYSTEMS",
    "PORTABLE",
    "WEBHOOKS",
    "Crash",
    "CutWatches",
    "Deadlock",
    "Deviation",
    "DropBookmarks",
    "External",
    "FailExternal",
    "HoldEvents",
    "HotLoop",
    "JumpClock",
    "Livelock",
    "Lose",
    "LoseResponse",
    "MessageSchedule",
    "Pause",
    "PauseAt",
    "PauseLeader",
    "Plan",
    "PlannedFault",
    "Refuse",
    "RefuseRequest",
    "Replica",
    "RestoreBackup",
    "ScheduleMismatch",
    "SecondServer",
    "Simulation",
    "SimulationError",
    "SimulationFault",
    "Slow",
    "SlowExternal",
    "Trace",
    "WebhooksAway",
    "World",
    "Write",
    "draw_plan",
    "healthy",
    "holds_shard",
    "nothing_doubled",
    "nothing_left",
    "one_controller",
    "outcome_of",
    "simulate",
    "simulated",
    "stays_settled",
    "truthful_generation",
]
