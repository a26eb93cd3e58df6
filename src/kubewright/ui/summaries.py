"""What the page shows of an object: owners, references, conditions and a state (pure functions).

Documents come from any cluster, so a field may have any type: a value of an unexpected type is treated as absent.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec

from kubewright.api import PAUSED, JsonObject, Kind
from kubewright.ui.reconciles import FailureSummary

ObjectState = Literal["ready", "progressing", "failed", "waiting", "unknown", "deleting", "paused"]

MAX_REFERENCES = 40
_MAX_DEPTH = 16
_MAX_TEXT = 500
_FIRST_WORD = re.compile(r"\w+")

_APPS_REPLICATED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
_GOOD = ("Ready", "Available", "Complete", "Succeeded", "Established", "Bound", "Synced", "Healthy", "Active")
_BAD = ("Failed", "Degraded", "Stalled", "ReplicaFailure")
_FAILURE_WORDS = ("fail", "error", "invalid", "backoff", "exceeded", "denied", "forbidden", "unhealthy")
_WAITING_WORDS = ("wait", "pending", "missing", "notfound", "notready", "unschedulable", "paused")
_STARTING_REASONS = frozenset({"ContainerCreating", "PodInitializing", ""})
# The key is the first word in lower case: custom kinds write READY, Ready, or "ERROR: no such template".
_PHASES: dict[str, ObjectState] = {
    **dict.fromkeys(("active", "available", "bound", "ready", "running", "healthy"), "ready"),
    **dict.fromkeys(("succeeded", "completed", "complete", "ok"), "ready"),
    **dict.fromkeys(("failed", "error", "lost", "degraded", "unhealthy", "invalid"), "failed"),
    **dict.fromkeys(("pending", "waiting"), "waiting"),
    **dict.fromkeys(("terminating", "deleting"), "deleting"),
    "paused": "paused",
}

# Fields whose value is the name of an object: its group, its kind, and whether it is namespaced.
_NAME_FIELDS: dict[str, tuple[str, str, bool]] = {
    "claimName": ("", "PersistentVolumeClaim", True),
    "ingressClassName": ("networking.k8s.io", "IngressClass", False),
    "nodeName": ("", "Node", False),
    "priorityClassName": ("scheduling.k8s.io", "PriorityClass", False),
    "secretName": ("", "Secret", True),
    "serviceAccountName": ("", "ServiceAccount", True),
    "serviceName": ("", "Service", True),
    "storageClassName": ("storage.k8s.io", "StorageClass", False),
    "volumeName": ("", "PersistentVolume", False),
}
# Fields whose value is a struct with the name of an object, or a list of such structs.
_OBJECT_FIELDS: dict[str, tuple[str, str]] = {
    "configMap": ("", "ConfigMap"),
    "configMapKeyRef": ("", "ConfigMap"),
    "configMapRef": ("", "ConfigMap"),
    "imagePullSecrets": ("", "Secret"),
    "secret": ("", "Secret"),
    "secretKeyRef": ("", "Secret"),
    "secretRef": ("", "Secret"),
    "service": ("", "Service"),
}
# Fields that are searched for references. The status repeats the spec, and data has no structure.
_PARTS = (
    *("spec", "template", "roleRef", "subjects", "webhooks", "endpoints", "imagePullSecrets"),
    "backend",
)


class OwnerSummary(msgspec.Struct, frozen=True, rename="camel"):
    """An owner reference."""

    uid: str
    kind: str
    name: str
    controller: bool


class ReferenceSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A reference to an object in a field."""

    group: str
    kind: str
    namespace: str
    name: str
    path: str


class ConditionSummary(msgspec.Struct, frozen=True, rename="camel"):
    """One condition of the status."""

    type: str
    status: str
    reason: str
    message: str
    since: str


class ScaleSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The desired replicas of an object that can be scaled."""

    replicas: int


class ObjectSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One object in the graph."""

    uid: str
    group: str
    kind: str
    resource: str
    namespace: str
    name: str
    generation: int
    resource_version: str
    created: str
    deleting: str | msgspec.UnsetType = msgspec.UNSET
    owners: list[OwnerSummary]
    references: list[ReferenceSummary]
    conditions: list[ConditionSummary]
    state: ObjectState
    state_text: str
    scale: ScaleSummary | msgspec.UnsetType = msgspec.UNSET
    reconciled: bool
    failing: FailureSummary | msgspec.UnsetType = msgspec.UNSET


def summarize(document: JsonObject, kind: Kind, *, scalable: bool, reconciled: bool) -> ObjectSummary:
    """Return what the page shows of an object; `scalable` kinds have the subresource scale."""
    metadata = _object(document.get("metadata"))
    state, text = _state(document, kind, reconciled=reconciled)
    replicas = _object(document.get("spec")).get("replicas", 1)
    deleting = _text(metadata.get("deletionTimestamp"))
    namespace = _text(metadata.get("namespace"))
    return ObjectSummary(
        uid=_text(metadata.get("uid")),
        group=kind.group,
        kind=kind.kind,
        resource=kind.plural,
        namespace=namespace,
        name=_text(metadata.get("name")),
        generation=_number(metadata.get("generation")),
        resource_version=_text(metadata.get("resourceVersion")),
        created=_text(metadata.get("creationTimestamp")),
        deleting=deleting or msgspec.UNSET,
        owners=[
            OwnerSummary(
                _text(owner.get("uid")),
                _text(owner.get("kind")),
                _text(owner.get("name")),
                owner.get("controller") is True,
            )
            for owner in _objects(metadata.get("ownerReferences"))
        ],
        references=_references(document, namespace),
        conditions=_conditions(document),
        state=state,
        state_text=text[:_MAX_TEXT],
        scale=ScaleSummary(replicas) if scalable and isinstance(replicas, int) else msgspec.UNSET,
        reconciled=reconciled,
    )


def with_failure(summary: ObjectSummary, failure: FailureSummary) -> ObjectSummary:
    """Return the summary of an object whose last reconcile failed.

    An error makes its state `failed`, also while it waits for the retry. A paused object stays `paused`: it is not retried.
    """
    state: ObjectState = "failed" if failure.outcome == "error" else "waiting"
    if summary.state == "paused" or (state == "waiting" and summary.state in ("failed", "deleting")):
        return msgspec.structs.replace(summary, failing=failure)
    first = next((line.strip() for line in failure.error.splitlines() if line.strip()), failure.error)
    text = f"Terminating: {first}" if summary.state == "deleting" else first
    return msgspec.structs.replace(summary, state=state, state_text=text[:_MAX_TEXT], failing=failure)


def _conditions(document: JsonObject) -> list[ConditionSummary]:
    return [
        ConditionSummary(
            _text(each.get("type")),
            _text(each.get("status")),
            _text(each.get("reason")),
            _text(each.get("message"))[:_MAX_TEXT],
            _text(each.get("lastTransitionTime")),
        )
        for each in _objects(_object(document.get("status")).get("conditions"))
        if isinstance(each.get("type"), str)
    ]


def _state(document: JsonObject, kind: Kind, *, reconciled: bool) -> tuple[ObjectState, str]:
    """Return the state of an object, and a text such as kubectl's STATUS column."""
    metadata = _object(document.get("metadata"))
    if metadata.get("deletionTimestamp"):
        finalizers = [_text(name) for name in _list(metadata.get("finalizers"))]
        return "deleting", f"Terminating: {', '.join(finalizers)}" if finalizers else "Terminating"
    # The annotation has no effect on kinds without a controller.
    if reconciled and _object(metadata.get("annotations")).get(PAUSED) == "true":
        return "paused", "Paused"
    if not kind.group and kind.kind == "Pod":
        return _pod_state(document)
    if kind.group == "apps" and kind.kind in _APPS_REPLICATED:
        return _replicated_state(document)
    if kind.group == "apps" and kind.kind == "DaemonSet":
        status = _object(document.get("status"))
        return _counted(
            _number(status.get("numberReady")),
            _number(status.get("desiredNumberScheduled")),
            current=_is_observed(document),
        )
    return _general_state(document)


def _pod_state(document: JsonObject) -> tuple[ObjectState, str]:
    status = _object(document.get("status"))
    phase = _text(status.get("phase"))
    containers = _objects(status.get("containerStatuses"))
    total = len(_list(_object(document.get("spec")).get("containers")))
    ready = sum(each.get("ready") is True for each in containers)
    counted = f"{ready}/{total}"
    if phase == "Succeeded":
        return "ready", "Completed"
    if phase == "Failed":
        return "failed", _text(status.get("reason")) or _terminated_reason(containers) or "Failed"
    for each in (*_objects(status.get("initContainerStatuses")), *containers):
        waiting = _object(_object(each.get("state")).get("waiting"))
        reason = _text(waiting.get("reason"))
        if reason not in _STARTING_REASONS:
            return "failed", f"{counted} {reason}"
    if phase == "Pending":
        for condition in _conditions(document):
            if condition.type == "PodScheduled" and condition.status == "False":
                return "waiting", f"{counted} {condition.reason or 'Pending'}"
        return "progressing", f"{counted} {'ContainerCreating' if containers else 'Pending'}"
    if phase != "Running":
        return "unknown", phase or "Unknown"
    if reason := _terminated_reason([each for each in containers if each.get("ready") is not True]):
        return "failed", f"{counted} {reason}"
    return ("ready" if ready == total else "progressing"), f"{counted} Running"


def _terminated_reason(containers: list[JsonObject]) -> str:
    for each in containers:
        terminated = _object(_object(each.get("state")).get("terminated"))
        if terminated and _number(terminated.get("exitCode")) != 0:
            return _text(terminated.get("reason")) or "Error"
    return ""


def _replicated_state(document: JsonObject) -> tuple[ObjectState, str]:
    status = _object(document.get("status"))
    desired = _object(document.get("spec")).get("replicas", 1)
    ready = _number(status.get("readyReplicas"))
    for condition in _conditions(document):
        stuck = condition.type == "Progressing" and condition.status == "False"
        if stuck or (condition.type == "ReplicaFailure" and condition.status == "True"):
            return "failed", f"{ready}/{desired} {condition.reason}"
    updated = status.get("updatedReplicas", desired)
    current = _is_observed(document) and updated == desired and status.get("replicas", desired) == desired
    return _counted(ready, _number(desired), current=current)


def _counted(ready: int, desired: int, *, current: bool) -> tuple[ObjectState, str]:
    return ("ready" if current and ready >= desired else "progressing"), f"{ready}/{desired} ready"


def _is_observed(document: JsonObject) -> bool:
    """Return True unless the status is about an older generation."""
    observed = _object(document.get("status")).get("observedGeneration")
    generation = _number(_object(document.get("metadata")).get("generation"))
    return not isinstance(observed, int) or observed >= generation


def _general_state(document: JsonObject) -> tuple[ObjectState, str]:
    """Return the state according to well-known conditions, else to the phase, else to the replicas."""
    conditions = {condition.type: condition for condition in _conditions(document)}
    for name in _BAD:
        found = conditions.get(name)
        if found is not None and found.status == "True":
            return "failed", _condition_text(found)
    for name in _GOOD:
        found = conditions.get(name)
        if found is None:
            continue
        if found.status == "True":
            return ("ready" if _is_observed(document) else "progressing"), _condition_text(found)
        reason = found.reason.lower()
        if any(word in reason for word in _FAILURE_WORDS):
            return "failed", _condition_text(found)
        waits = any(word in reason for word in _WAITING_WORDS)
        return ("waiting" if waits else "progressing"), _condition_text(found)
    status = _object(document.get("status"))
    for name in ("phase", "state"):
        phase = _text(status.get(name))
        if word := _FIRST_WORD.match(phase):
            return _PHASES.get(word[0].lower(), "progressing"), phase
    replicas = _object(document.get("spec")).get("replicas")
    if isinstance(replicas, int) and isinstance(status.get("readyReplicas"), int):
        return _counted(status["readyReplicas"], replicas, current=_is_observed(document))
    return "unknown", next((_condition_text(each) for each in conditions.values()), "")


def _condition_text(condition: ConditionSummary) -> str:
    name = condition.type if condition.status == "True" else f"{condition.type}={condition.status}"
    return f"{name}: {condition.reason}" if condition.reason else name


def _references(document: JsonObject, namespace: str) -> list[ReferenceSummary]:
    """Return the objects that well-known fields refer to, each once."""
    found: dict[tuple[str, str, str, str], ReferenceSummary] = {}
    for part in _PARTS:
        if part not in document:
            continue
        for reference in _references_in(document[part], part, part, namespace, _MAX_DEPTH):
            about = (reference.group, reference.kind, reference.namespace, reference.name)
            found.setdefault(about, reference)
            if len(found) == MAX_REFERENCES:
                return list(found.values())
    return list(found.values())


def _references_in(
    value: Any, field: str, path: str, namespace: str, depth: int
) -> Iterator[ReferenceSummary]:
    if isinstance(value, str):
        if value and field in _NAME_FIELDS:
            group, kind, namespaced = _NAME_FIELDS[field]
            yield ReferenceSummary(group, kind, namespace if namespaced else "", value, path)
        return
    if depth == 0:
        return
    if isinstance(value, list):
        for number, element in enumerate(cast("list[Any]", value)):
            if isinstance(element, dict | list):
                name = _object(cast("Any", element)).get("name")
                key = f"name={name}" if isinstance(name, str) else str(number)
                yield from _references_in(element, field, f"{path}[{key}]", namespace, depth - 1)
        return
    if not isinstance(value, dict):
        return
    fields = cast("JsonObject", value)
    if (reference := _reference(fields, field, path, namespace)) is not None:
        yield reference
    for name, inner in fields.items():
        if isinstance(inner, dict | list | str):
            yield from _references_in(inner, name, f"{path}.{name}", namespace, depth - 1)


def _reference(fields: JsonObject, field: str, path: str, namespace: str) -> ReferenceSummary | None:
    name, kind = fields.get("name"), fields.get("kind")
    if not isinstance(name, str) or not name:
        return None
    if field in _OBJECT_FIELDS:
        group, known = _OBJECT_FIELDS[field]
        return ReferenceSummary(group, known, _text(fields.get("namespace")) or namespace, name, path)
    if isinstance(kind, str) and kind and (field.endswith("Ref") or field == "subjects"):
        group = _text(fields.get("apiGroup")) or _text(fields.get("apiVersion")).rpartition("/")[0]
        cluster_scoped = kind.startswith("Cluster") or kind in ("Node", "User", "Group")
        place = _text(fields.get("namespace")) or ("" if cluster_scoped else namespace)
        return ReferenceSummary(group, kind, place, name, path)
    return None


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _objects(value: Any) -> list[JsonObject]:
    return [cast("JsonObject", each) for each in _list(value) if isinstance(each, dict)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
