"""Which exits of an operator's process are allowed: those that the runtime makes on purpose because of a fault.

An operator survives failing requests, broken watches and restarted API servers. It exits by itself, to be restarted,
only in three situations:

- it can no longer be the leader: another replica holds the lease, or it did not renew the lease within the renew
  deadline. This is checked with the stored Leases and the responses that it received;
- a cache was not filled within its timeout, while faults were active;
- its lifespan failed because a fault made a call to an external system fail.

Every other exit violates the property Healthy, and so does one of these without its reason.
"""

from kubewright.api import leaves
from kubewright.cache import CacheSyncTimeout
from kubewright.election import LeaseLost, LeaseTimes
from kubewright.manager import ManagerOptions
from kubewright.testing.simulation import Simulation
from kubewright.testing.simulation.simulation import Replica

LEASES = "leases.coordination.k8s.io"
SYNC_TIMEOUT = ManagerOptions().cache_sync_timeout
TIMES = LeaseTimes()
_TOLERANCE = 0.001


def exit_problem(sim: Simulation, replica: Replica, error: Exception) -> str:
    """Return why an operator should not have exited by itself; an empty string if the exit was allowed."""
    cause = next(leaves(error))
    if isinstance(error, LeaseLost):
        return _lease_problem(sim, replica)
    if isinstance(cause, CacheSyncTimeout):
        if sim.disturbed_since(sim.loop.time() - SYNC_TIMEOUT):
            return ""
        return f"no fault was active in the {SYNC_TIMEOUT:g} s before"
    if isinstance(cause, tuple(sim.externals.errors)) and sim.externals.failed_at >= replica.started_at:
        return ""
    return "a failing request, watch or webhook must be retried, and the process must keep running"


def _lease_problem(sim: Simulation, replica: Replica) -> str:
    """Return why a replica should not have given up its lease; an empty string if it had to."""
    now = sim.loop.time()
    for lease in sim.world.objects(LEASES):
        holder: str = lease["spec"].get("holderIdentity") or ""
        if holder and not holder.startswith(f"{replica.name}_"):
            return ""
    renewed = _last_renewal(sim, replica)
    if renewed is None:
        return "it never held the lease"
    if now - renewed >= TIMES.renew_deadline - _TOLERANCE:
        return ""
    return f"it renewed its lease {now - renewed:.1f} s earlier, and no other replica holds it"


def _last_renewal(sim: Simulation, replica: Replica) -> float | None:
    """Return when the last successful renewal of the lease began, as seen by this process; None if there was none."""
    renewed: float | None = None
    began: float | None = None
    attempts: dict[str, float] = {}
    for entry in sim.trace.of("request", "response", process=replica.name):
        if entry.time < replica.started_at:
            continue
        number, _, rest = entry.subject.partition(" ")
        if entry.what == "response":
            if number in attempts and rest.startswith("2"):
                renewed = attempts[number]
        elif "/leases" in rest:
            began = entry.time if began is None else began
            if not rest.startswith("get "):
                attempts[number], began = began, None
    return renewed
