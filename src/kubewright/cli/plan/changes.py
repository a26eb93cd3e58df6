"""Differences between two states of a cluster: objects created, changed and deleted (pure functions)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kubewright.api import JsonObject
from kubewright.cli.documents import called, diff

Action = Literal["create", "change", "delete"]


class Key(NamedTuple):
    """The key of an object in a cluster, independent of the version."""

    group: str
    kind: str
    namespace: str
    name: str


_WORKLOADS = {("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")}

ClusterState = Mapping[Key, JsonObject]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One object that would be created, changed or deleted."""

    action: Action
    name: str
    namespace: str
    lines: tuple[str, ...]
    restarts: bool = False
    """The Pod template of a workload changes, so that its controller replaces the Pods."""

    @property
    def object(self) -> str:
        """Return the name of the object, with its namespace."""
        return f"{self.name} in {self.namespace}" if self.namespace else self.name


def state_of(objects: Iterable[JsonObject]) -> dict[Key, JsonObject]:
    """Return objects by their keys."""
    return {key_of(obj): obj for obj in objects}


def key_of(obj: JsonObject) -> Key:
    """Return the key of an object."""
    group = obj["apiVersion"].rpartition("/")[0]
    metadata = obj["metadata"]
    return Key(group, obj["kind"], metadata.get("namespace", ""), metadata["name"])


def changes(before: ClusterState, after: ClusterState) -> list[PlannedChange]:
    """Compare two states; objects whose last owner is gone count as deleted."""
    after = _without_orphans(before, after)
    return [
        change
        for key in sorted({**before, **after})
        if (change := _change(before.get(key), after.get(key))) is not None
    ]


def _change(before: JsonObject | None, after: JsonObject | None) -> PlannedChange | None:
    known: JsonObject = after or before or {}
    lines = tuple(diff(called(known), before, after, status=True))
    if not lines:
        return None
    action: Action = "create" if before is None else "delete" if after is None else "change"
    return PlannedChange(
        action, called(known), known["metadata"].get("namespace", ""), lines, _replaces_pods(before, after)
    )


def _replaces_pods(before: JsonObject | None, after: JsonObject | None) -> bool:
    """Return True if a workload's controller replaces its Pods: not if it is paused, or waits for their deletion."""
    if before is None or after is None or key_of(after)[:2] not in _WORKLOADS:
        return False
    spec: JsonObject = after.get("spec") or {}
    strategy: JsonObject = spec.get("updateStrategy") or {}
    if spec.get("paused") or spec.get("replicas") == 0 or strategy.get("type") == "OnDelete":
        return False
    earlier: JsonObject = before.get("spec") or {}
    return earlier.get("template") != spec.get("template")


def _without_orphans(before: ClusterState, after: ClusterState) -> ClusterState:
    """Drop objects whose owners were deleted: no garbage collector runs on the copy, where owners may not be copied."""
    gone = {_uid(obj) for key, obj in before.items() if _uid(after.get(key, {})) != _uid(obj)}
    left = dict(after)
    while orphans := [key for key, obj in left.items() if _is_orphan(obj, gone)]:
        gone |= {_uid(left.pop(key)) for key in orphans}
    return left


def _is_orphan(obj: JsonObject, gone: set[str]) -> bool:
    owners = list(_owners(obj))
    return bool(owners) and gone.issuperset(owners)


def _owners(obj: JsonObject) -> Iterator[str]:
    return (owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ())


def _uid(obj: JsonObject) -> str:
    return obj.get("metadata", {}).get("uid", "")
