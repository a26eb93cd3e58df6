"""Deterministic simulations of operators: one thread, virtual time, faults and crashes, everything from a seed.

Read in this order: `simulation` (the entry point, `simulate`), `loop` (processes and time), `network` (requests,
responses and watches), `determinism` (random numbers and clocks), `world` (the stored state, for invariants), `trace`.
Then `plan` (faults as data, drawn from a seed) and `invariants` (what holds for every operator), `seeds`
(simulations as pytest tests).
"""

from kubewright.testing.simulation.invariants import (
    healthy,
    nothing_doubled,
    nothing_left,
    one_controller,
    outcome_of,
    stays_at_rest,
    truthful_generation,
)
from kubewright.testing.simulation.loop import Deadlock, Livelock, SimulationError
from kubewright.testing.simulation.plan import (
    BACKUPS,
    COMMON,
    WEBHOOKS,
    Crash,
    CutWatches,
    DropBookmarks,
    HoldEvents,
    JumpClock,
    Lose,
    Pause,
    Plan,
    PlannedFault,
    Refuse,
    RestoreBackup,
    SecondServer,
    Slow,
    WebhooksAway,
    draw_plan,
)
from kubewright.testing.simulation.seeds import simulated
from kubewright.testing.simulation.simulation import Replica, Simulation, simulate
from kubewright.testing.simulation.trace import Trace
from kubewright.testing.simulation.world import World, Write

__all__ = [
    "BACKUPS",
    "COMMON",
    "WEBHOOKS",
    "Crash",
    "CutWatches",
    "Deadlock",
    "DropBookmarks",
    "HoldEvents",
    "JumpClock",
    "Livelock",
    "Lose",
    "Pause",
    "Plan",
    "PlannedFault",
    "Refuse",
    "Replica",
    "RestoreBackup",
    "SecondServer",
    "Simulation",
    "SimulationError",
    "Slow",
    "Trace",
    "WebhooksAway",
    "World",
    "Write",
    "draw_plan",
    "healthy",
    "nothing_doubled",
    "nothing_left",
    "one_controller",
    "outcome_of",
    "simulate",
    "simulated",
    "stays_at_rest",
    "truthful_generation",
]
