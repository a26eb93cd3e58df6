"""Deterministic simulations of operators: one thread, virtual time, faults and crashes, everything from a seed.

Read in this order: `simulation` (the entry point, `simulate`), `loop` (processes and time), `network` (requests,
answers and watches), `determinism` (random numbers and clocks), `world` (the stored state, for invariants), `trace`.
"""

from kubewright.testing.simulation.loop import Deadlock, Livelock, SimulationError
from kubewright.testing.simulation.simulation import Replica, Simulation, simulate
from kubewright.testing.simulation.trace import Trace
from kubewright.testing.simulation.world import World, Write

__all__ = [
    "Deadlock",
    "Livelock",
    "Replica",
    "Simulation",
    "SimulationError",
    "Trace",
    "World",
    "Write",
    "simulate",
]
