"""What kubectl shows of a Pod: one word for its state, and how often its containers were restarted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubewright.devserver.builtin.ages import age
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age, wide
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column

COLUMNS = (
    NAME,
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
)


@dataclass
class _Sum:
    """What the containers' states add up to."""

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    restarted: str = ""

    def count(self, status: Wire) -> None:
        self.restarts += status.get("restartCount", 0)
        ended: Wire = (status.get("lastState") or {}).get("terminated") or {}
        self.restarted = max(self.restarted, ended.get("finishedAt") or "")


def pod_row(pod: Wire, now: float) -> list[Any]:
    """Give a Pod's cells."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    found = _sum_up(spec, status)
    reason = found.reason
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    restarts = str(found.restarts)
    if found.restarts and found.restarted:
        restarts = f"{restarts} ({age(found.restarted, now)} ago)"
    addresses = status.get("podIPs") or [{}]
    return [
        pod["metadata"]["name"],
        f"{found.ready}/{found.total}",
        reason,
        restarts,
        object_age(pod, now),
        addresses[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, _conditions(status)),
    ]


def _conditions(status: Wire) -> dict[str, str]:
    return {item["type"]: item.get("status", "") for item in status.get("conditions") or ()}


def _gates(spec: Wire, conditions: dict[str, str]) -> str:
    gates: Sequence[Wire] = spec.get("readinessGates") or ()
    passed = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _sum_up(spec: Wire, status: Wire) -> _Sum:
    inits: Sequence[Wire] = spec.get("initContainers") or ()
    sidecars = {item.get("name", "") for item in inits if item.get("restartPolicy") == "Always"}
    found = _Sum(status.get("reason") or status.get("phase") or "", len(spec.get("containers") or ()) + len(sidecars))
    for condition in status.get("conditions") or ():
        if (condition["type"], condition.get("reason")) == ("PodScheduled", "SchedulingGated"):
            found.reason = "SchedulingGated"
    initializing = _initialize(found, status.get("initContainerStatuses") or (), sidecars, len(inits))
    conditions = _conditions(status)
    if not initializing or conditions.get("Initialized") == "True":
        found.restarts, found.restarted = 0, ""
        for item in status.get("initContainerStatuses") or ():
            if item.get("name") in sidecars:
                found.count(item)
        _run(found, status.get("containerStatuses") or (), ready=conditions.get("Ready") == "True")
    return found


def _initialize(found: _Sum, statuses: Sequence[Wire], sidecars: set[str], inits: int) -> bool:
    """Look at the init containers in turn; tell whether one of them holds the Pod up."""
    for index, item in enumerate(statuses):
        found.count(item)
        state: Wire = item.get("state") or {}
        ended: Wire | None = state.get("terminated")
        waiting: str = (state.get("waiting") or {}).get("reason", "")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if item.get("name") in sidecars and item.get("started"):
            found.ready += bool(item.get("ready"))
            continue
        if ended is not None:
            found.reason = f"Init:{_ending(ended)}"
        elif waiting and waiting != "PodInitializing":
            found.reason = f"Init:{waiting}"
        else:
            found.reason = f"Init:{index}/{inits}"
        return True
    return False


def _run(found: _Sum, statuses: Sequence[Wire], *, ready: bool) -> None:
    running, failure = False, ""
    for item in reversed(statuses):
        found.count(item)
        state: Wire = item.get("state") or {}
        waiting: str = (state.get("waiting") or {}).get("reason", "")
        ended: Wire | None = state.get("terminated")
        if waiting:
            found.reason = waiting
        elif ended is not None:
            found.reason = _ending(ended)
            if ended.get("exitCode", 0) != 0:
                failure = found.reason
        elif item.get("ready") and state.get("running") is not None:
            running = True
            found.ready += 1
    if found.reason == "Completed":
        if running and ready:
            found.reason = "Running"
        elif failure:
            found.reason = failure
        elif running:
            found.reason = "NotReady"


def _ending(terminated: Wire) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"
