"""Leader election with Leases: which replica of an operator may act, and on which objects.

Read in this order: `lease` (one lease, one leader, and the fence that every write passes), `assignment` (which replica takes
and releases which shard, as functions of what was read) and `shards` (a lease for each shard, in a thread). The entry points
are `ElectionThread` and `ShardElection`.
"""

from kubewright.election.assignment import Moves, ShardNames, moves, preferred_shards
from kubewright.election.lease import (
    LEASE,
    ClusterLease,
    ElectionOptions,
    ElectionThread,
    Elector,
    Leadership,
    LeaseLost,
    LeaseRecord,
    LeaseStore,
    LeaseTimes,
    MonotonicClock,
    NotLeading,
    default_identity,
    elapsed,
)
from kubewright.election.shards import (
    ClusterLeases,
    HandOver,
    LeaseSet,
    ShardElection,
    ShardElector,
    ShardEvent,
    ShardLease,
    ShardsLost,
    ShardsTaken,
)

__all__ = [
    "LEASE",
    "ClusterLease",
    "ClusterLeases",
    "ElectionOptions",
    "ElectionThread",
    "Elector",
    "HandOver",
    "Leadership",
    "LeaseLost",
    "LeaseRecord",
    "LeaseSet",
    "LeaseStore",
    "LeaseTimes",
    "MonotonicClock",
    "Moves",
    "NotLeading",
    "ShardElection",
    "ShardElector",
    "ShardEvent",
    "ShardLease",
    "ShardNames",
    "ShardsLost",
    "ShardsTaken",
    "default_identity",
    "elapsed",
    "moves",
    "preferred_shards",
]
