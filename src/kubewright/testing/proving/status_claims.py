"""What the status of an object claims: that it is ready, or that its current generation is done.

`early_claims` uses only what one reconcile itself saw: the workloads as it read them last, or as the responses to its
writes showed them. So a stale cache leads to no false warning. An operator whose Ready condition does not mean that its
workloads are rolled out does lead to one; therefore it is a warning and not a violation.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.journal import CachedList, CachedRead, Collected, RequestExchange

_READY = ("Ready", "Available")
_WORKLOADS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}


def is_ready(obj: JsonObject) -> bool | None:
    """Return True if the condition Ready or Available is True; None without such a condition."""
    for condition in conditions_of(obj):
        if condition.get("type") in _READY:
            return condition.get("status") == "True"
    return None


def conditions_of(obj: JsonObject) -> list[JsonObject]:
    """Return the conditions in an object's status."""
    return cast("list[JsonObject]", _status(obj).get("conditions") or [])


def claims_done(obj: JsonObject) -> bool:
    """Return True if an object's status claims that its current generation is done."""
    generation = obj.get("metadata", {}).get("generation")
    status = _status(obj)
    if not status or generation is None:
        return False
    ready, observed = is_ready(obj), status.get("observedGeneration")
    if observed is not None and observed != generation:
        return False
    return ready is True or (ready is None and observed == generation)


def was_done(entry: Collected, generation: Any) -> bool:
    """Return True if the object claimed this generation already at the start of a reconcile."""
    if entry.state is None:
        return False
    before = decoded(entry.state.data)
    return before.get("metadata", {}).get("generation") == generation and claims_done(before)


def is_own_status(entry: Collected, step: RequestExchange) -> bool:
    """Return True if a request writes the status of the reconciled object."""
    status = f"{entry.kind.plural}/status"
    return step.request.name == entry.key.name and step.request.resource.startswith(status)


def decoded(body: bytes) -> JsonObject:
    """Return the object in a body; an empty one if there is none."""
    try:
        found: Any = msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def early_claims(entry: Collected) -> list[str]:
    """Return a sentence for each workload that a reconcile saw rolling out although its object was Ready=True at the end."""
    if entry.error or entry.state is None:
        return []
    workloads = {obj["metadata"]["name"]: (kind, obj) for kind, obj in _workloads_seen(entry)}
    if not workloads:
        return []
    own = decoded(entry.state.data)
    for step in entry.writes:
        if not step.error and is_own_status(entry, step):
            own = decoded(step.body) or own
    ready = [each.get("status") for each in conditions_of(own) if each.get("type") == "Ready"]
    if ready != ["True"] or not claims_done(own):
        return []
    return [
        f"{entry.kind.kind} was Ready=True while its {kind} was rolling out"
        for kind, obj in workloads.values()
        if _is_controlled(obj, own) and _is_rolling_out(kind, obj)
    ]


def _workloads_seen(entry: Collected) -> Iterator[tuple[str, JsonObject]]:
    """Yield the workloads that a reconcile read or wrote, in order."""
    for step in entry.steps:
        match step:
            case CachedRead() if step.kind.plural in _WORKLOADS and step.state is not None:
                yield step.kind.kind, decoded(step.state.data)
            case CachedList() if step.kind.plural in _WORKLOADS:
                yield from ((step.kind.kind, decoded(state.data)) for state in step.states)
            case RequestExchange() if not step.error:
                kind = _WORKLOADS.get(step.request.resource.partition(".")[0])
                if (
                    kind is not None
                    and "metadata" in (obj := decoded(step.body))
                    and obj["metadata"].get("name")
                ):
                    yield kind, obj
            case _:
                pass


def _is_controlled(obj: JsonObject, owner: JsonObject) -> bool:
    uid = owner.get("metadata", {}).get("uid")
    return any(
        each.get("uid") == uid and each.get("controller")
        for each in obj["metadata"].get("ownerReferences") or ()
    )


def _is_rolling_out(kind: str, obj: JsonObject) -> bool:
    """Return True unless all replicas are ready and up to date; False for a workload with no replicas."""
    spec: JsonObject = obj.get("spec") or {}
    status = _status(obj)
    desired = status.get("desiredNumberScheduled", 1) if kind == "DaemonSet" else spec.get("replicas", 1)
    if not desired or "deletionTimestamp" in obj["metadata"]:
        return False
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return True
    if kind == "DaemonSet":
        counts = ("updatedNumberScheduled", "numberReady")
    elif kind == "StatefulSet" and _is_partitioned(spec):
        counts = ("readyReplicas",)
    else:
        counts = ("updatedReplicas", "readyReplicas")
    return any(status.get(count, 0) < desired for count in counts)


def _is_partitioned(spec: JsonObject) -> bool:
    """Return True if a StatefulSet keeps some of its replicas at the old revision on purpose."""
    strategy: JsonObject = spec.get("updateStrategy") or {}
    rolling: JsonObject = strategy.get("rollingUpdate") or {}
    return strategy.get("type") == "OnDelete" or bool(rolling.get("partition"))


def _status(obj: JsonObject) -> JsonObject:
    found: Any = obj.get("status")
    return cast("JsonObject", found) if isinstance(found, dict) else {}
