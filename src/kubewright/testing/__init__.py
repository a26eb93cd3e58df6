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
from kubewright.testing.virtual_time import settle, virtual_time

__all__ = [
    "PATIENCE",
    "Cluster",
    "ControlPlane",
    "ControlPlaneError",
    "EmbeddedEnvironment",
    "Environment",
    "ExistingEnvironment",
    "Faults",
    "Match",
    "RealEnvironment",
    "RunningEnvironment",
    "embedded",
    "find_binaries",
    "isolated",
    "settle",
    "virtual_time",
]
