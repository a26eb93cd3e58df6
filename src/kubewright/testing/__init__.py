"""Test operators: one test on the embedded cluster, on a real control plane, or on a cluster that is there.

The pytest plugin comes with the package: `--server embedded|real|existing` chooses, the fixture `cluster` gives
each test a namespace of its own. `virtual_time` makes waiting cost nothing; `embedded` runs a whole cluster in that
time, with faults to order.
"""

from kubewright.devserver import Faults, Match
from kubewright.testing.cluster import PATIENCE, Cluster
from kubewright.testing.controlplane import ControlPlane, ControlPlaneError, find_binaries
from kubewright.testing.environments import (
    EmbeddedEnvironment,
    Environment,
    ExistingEnvironment,
    RealEnvironment,
)
from kubewright.testing.hosting import RunningEnvironment
from kubewright.testing.isolation import embedded, isolated
from kubewright.testing.simulation import (
    Deadlock,
    Livelock,
    Replica,
    Simulation,
    SimulationError,
    Trace,
    World,
    Write,
    simulate,
)
from kubewright.testing.virtual_time import settle, virtual_time

__all__ = [
    "PATIENCE",
    "Cluster",
    "ControlPlane",
    "ControlPlaneError",
    "Deadlock",
    "EmbeddedEnvironment",
    "Environment",
    "ExistingEnvironment",
    "Faults",
    "Livelock",
    "Match",
    "RealEnvironment",
    "Replica",
    "RunningEnvironment",
    "Simulation",
    "SimulationError",
    "Trace",
    "World",
    "Write",
    "embedded",
    "find_binaries",
    "isolated",
    "settle",
    "simulate",
    "virtual_time",
]
