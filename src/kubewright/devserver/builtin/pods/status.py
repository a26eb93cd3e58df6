"""The status of a Pod: the one word and counts that kubectl prints."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubewright.devserver.builtin.printing import AGE, NAME, NONE, object_age
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import TableColumn
from kubewright.devserver.strategy.tables import age

COLUMNS = (
    NAME.column,
    TableColumn("Ready"),
    TableColumn("Status"),
    TableColumn("Restarts"),
    AGE.column,
    TableColumn("IP", priority=1),
    TableColumn("Node", priority=1),
    TableColumn("Nominated Node", priority=1),
    TableColumn("Readiness Gates", priority=1),
)


@dataclass
class _Summary:
    """The summary of the container statuses."""

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    restarted: str = ""

    def count(self, status: JsonObject) -> None:
        self.restarts += status.get("restartCount", 0)
        ended: JsonObject = section(section(status, "lastState"), "terminated")
        self.restarted = max(self.restarted, ended.get("finishedAt") or "")


def pod_row(pod: JsonObject, now: float) -> list[Any]:
    """Return the cells of a Pod."""
    spec, status = section(pod, "spec"), section(pod, "status")
    found = _summarize(spec, status)
    reason = found.reason
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    restarts = str(found.restarts)
    if found.restarts and found.restarted:
        restarts = f"{restarts} ({age(found.restarted, now)} ago)"
    addresses: list[JsonObject] = [*items(status, "podIPs"), {}]
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


def _conditions(status: JsonObject) -> dict[str, str]:
    return {item["type"]: item.get("status", "") for item in items(status, "conditions")}


def _gates(spec: JsonObject, conditions: dict[str, str]) -> str:
    gates: Sequence[JsonObject] = items(spec, "readinessGates")
    passed = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _summarize(spec: JsonObject, status: JsonObject) -> _Summary:
    inits: Sequence[JsonObject] = items(spec, "initContainers")
    sidecars = {item.get("name", "") for item in inits if item.get("restartPolicy") == "Always"}
    found = _Summary(
        status.get("reason") or status.get("phase") or "", len(items(spec, "containers")) + len(sidecars)
    )
    for condition in items(status, "conditions"):
        if (condition["type"], condition.get("reason")) == ("PodScheduled", "SchedulingGated"):
            found.reason = "SchedulingGated"
    initializing = _initialize(found, items(status, "initContainerStatuses"), sidecars, len(inits))
    conditions = _conditions(status)
    if not initializing or conditions.get("Initialized") == "True":
        found.restarts, found.restarted = 0, ""
        for item in items(status, "initContainerStatuses"):
            if item.get("name") in sidecars:
                found.count(item)
        _run(found, items(status, "containerStatuses"), ready=conditions.get("Ready") == "True")
    return found


def _initialize(found: _Summary, statuses: Sequence[JsonObject], sidecars: set[str], inits: int) -> bool:
    """Count the init containers; return True if one of them has not finished."""
    for index, item in enumerate(statuses):
        found.count(item)
        state: JsonObject = section(item, "state")
        ended: JsonObject | None = state.get("terminated")
        waiting: str = section(state, "waiting").get("reason", "")
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if item.get("name") in sidecars and item.get("started"):
            found.ready += bool(item.get("ready"))
            continue
        if ended is not None:
            found.reason = f"Init:{_exit_reason(ended)}"
        elif waiting and waiting != "PodInitializing":
            found.reason = f"Init:{waiting}"
        else:
            found.reason = f"Init:{index}/{inits}"
        return True
    return False


def _run(found: _Summary, statuses: Sequence[JsonObject], *, ready: bool) -> None:
    running, failure = False, ""
    for item in reversed(statuses):
        found.count(item)
        state: JsonObject = section(item, "state")
        waiting: str = section(state, "waiting").get("reason", "")
        ended: JsonObject | None = state.get("terminated")
        if waiting:
            found.reason = waiting
        elif ended is not None:
            found.reason = _exit_reason(ended)
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


def _exit_reason(terminated: JsonObject) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"
