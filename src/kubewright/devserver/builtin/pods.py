"""Pods: defaults, lifecycle, what kubectl shows of them."""

from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin.ages import age
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age, wide
from kubewright.devserver.builtin.pod_endpoints import bind, evict
from kubewright.devserver.builtin.pod_validation import validate_pod_spec
from kubewright.devserver.builtin.quality import quality_of
from kubewright.devserver.builtin.templates import default_pod_spec
from kubewright.devserver.objects import Wire, copy
from kubewright.devserver.strategy import Column, Strategy

_BLANK_STATUS = {"phase": "Pending"}
# What may change in the spec of a Pod that exists.
_MUTABLE = (
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
    "nodeSelector",
)
_FORBIDDEN_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _default(pod: Wire) -> None:
    spec: Wire = pod.setdefault("spec", {})
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def _prepare_create(pod: Wire) -> None:
    pod["status"] = {**_BLANK_STATUS, "qosClass": quality_of(pod)}


def _prepare_update(new: Wire, old: Wire) -> None:
    new["status"] = copy(old.get("status") or {})


def _grace_period(pod: Wire, wanted: int | None) -> int | None:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    seconds = spec.get("terminationGracePeriodSeconds", 30) if wanted is None else wanted
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        seconds = 0
    return max(int(seconds), 0)


def _validate(pod: Wire) -> list[FieldError]:
    return validate_pod_spec(pod.get("spec") or {}, "spec")


def _validate_update(new: Wire, old: Wire) -> list[FieldError]:
    errors = validate_pod_spec(new["spec"], "spec")
    if _comparable(new["spec"]) != _comparable(old["spec"]):
        errors.append(problems.forbidden("spec", _FORBIDDEN_CHANGE))
    return errors


def _comparable(spec: Wire) -> Wire:
    kept = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for group in ("containers", "initContainers"):
        if group in kept:
            kept[group] = [{**item, "image": ""} for item in kept[group]]
    return kept


def _ending(terminated: Wire) -> str:
    """Tell why a container ended."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _phase(pod: Wire) -> tuple[str, int, int, float | None, str]:
    """Give the status text, ready and total containers, and restarts, as kubectl sums a Pod up."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    spec: Wire = pod.get("spec") or {}
    total, ready, restarts, last = len(spec.get("containers") or ()), 0, 0, ""
    for index, found in enumerate(status.get("initContainerStatuses") or ()):
        ended = (found.get("state") or {}).get("terminated")
        waiting = (found.get("state") or {}).get("waiting")
        restarts += found.get("restartCount", 0)
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if ended is not None:
            reason = f"Init:{_ending(ended)}"
        elif waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            reason = f"Init:{waiting['reason']}"
        else:
            reason = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return reason, ready, total, restarts, last
    running = False
    for found in reversed(status.get("containerStatuses") or []):
        restarts += found.get("restartCount", 0)
        ended = (found.get("lastState") or {}).get("terminated")
        last = max(last, (ended or {}).get("finishedAt") or "")
        state: Wire = found.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            over = state["terminated"]
            reason = _ending(over)
        elif found.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed" and running:
        conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
        reason = "Running" if conditions.get("Ready") == "True" else "NotReady"
    return reason, ready, total, restarts, last


def _row(pod: Wire, now: float) -> list[Any]:
    reason, ready, total, restarts, last = _phase(pod)
    status: Wire = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    told = str(restarts)
    if restarts and last:
        told = f"{restarts} ({age(last, now)} ago)"
    spec: Wire = pod.get("spec") or {}
    gates = spec.get("readinessGates") or ()
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    passed = sum(conditions.get(gate["conditionType"]) == "True" for gate in gates)
    address = status.get("podIP") or ((status.get("podIPs") or [{}])[0]).get("ip") or NONE
    return [
        pod["metadata"]["name"],
        f"{ready}/{total}",
        reason,
        told,
        object_age(pod, now),
        address,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def _text(*path: str) -> Any:
    def read(pod: Wire) -> str:
        value: Any = pod
        for name in path:
            value = (value or {}).get(name)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def _host_network(pod: Wire) -> str:
    return "true" if (pod.get("spec") or {}).get("hostNetwork") else "false"


def _addresses(pod: Wire) -> str:
    return ",".join(item.get("ip", "") for item in (pod.get("status") or {}).get("podIPs") or ())


STRATEGIES = {
    ("", "Pod"): Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        has_generation=True,
        grace_period=_grace_period,
        returns_deleted=True,
        selectable_fields={
            "spec.nodeName": _text("spec", "nodeName"),
            "spec.restartPolicy": _text("spec", "restartPolicy"),
            "spec.schedulerName": _text("spec", "schedulerName"),
            "spec.serviceAccountName": _text("spec", "serviceAccountName"),
            "spec.hostNetwork": _host_network,
            "status.phase": _text("status", "phase"),
            "status.podIP": _text("status", "podIP"),
            "status.podIPs": _addresses,
            "status.nominatedNodeName": _text("status", "nominatedNodeName"),
        },
        columns=(
            NAME,
            Column("Ready"),
            Column("Status"),
            Column("Restarts"),
            AGE,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ),
        row=_row,
        endpoints={"binding": bind, "eviction": evict},
    ),
}
