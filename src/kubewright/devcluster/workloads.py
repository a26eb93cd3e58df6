"""Helpers that the workload controllers share: template hashes, adoption of orphans, and counting of Pods."""

import hashlib
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from kubewright.api import (
    ApiError,
    JsonObject,
    LabelMatcher,
    Meta,
    Object,
    controller_of,
    owner_reference,
    to_wire,
)
from kubewright.api.builtin import core_v1
from kubewright.controller import Change, Context, Index
from kubewright.devcluster.statuses import condition_of, is_true

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
T = TypeVar("T", bound=Object)


def short_hash(content: Any, collisions: int = 0) -> str:
    """Return a short hash of JSON data; a different collision count gives a different hash."""
    text = msgspec.json.encode([content, collisions], order="sorted")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    letters: list[str] = []
    for _ in range(10):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def controller_keys(obj: Object) -> list[str]:
    """Return the index keys of an object: the uid of its controller, or the orphans' key of its namespace."""
    controller = controller_of(obj.metadata)
    return [controller.uid if controller is not None else orphans_key(obj.metadata.namespace)]


def orphans_key(namespace: str) -> str:
    """Return the index key for a namespace's objects without a controller."""
    return f"orphans of {namespace}"


def is_orphaned(change: Change[Any]) -> bool:
    """Return True for an object without a controller, which may be adopted."""
    after = change.after
    return (
        after is not None
        and after.meta.deletion_timestamp is None
        and not any(owner.controller for owner in after.meta.owner_references)
    )


async def claim_children(
    owner: Object, selector: LabelMatcher, index: Index[T], ctx: Context, *, finalizer: str = ""
) -> list[T]:
    """Return the objects that an owner controls.

    Matching orphans are adopted, and objects that no longer match the selector are released. A `finalizer` is added
    to adopted objects and removed from released ones.
    """
    found = await ctx.list(index, owner.metadata.uid)
    if owner.metadata.deletion_timestamp is not None:
        return found
    kept: list[T] = []
    for obj in found:
        if selector.matches(obj.metadata.labels):
            kept.append(obj)
        else:
            await _release(owner, obj, ctx, finalizer)
    for orphan in await ctx.list(index, orphans_key(owner.metadata.namespace)):
        if orphan.metadata.deletion_timestamp is None and selector.matches(orphan.metadata.labels):
            adopted = await _adopt(owner, orphan, ctx, finalizer)
            if adopted is not None:
                kept.append(adopted)
    return kept


async def _adopt(owner: Object, orphan: T, ctx: Context, finalizer: str) -> T | None:
    change: JsonObject = {
        "uid": orphan.metadata.uid,
        "ownerReferences": [to_wire(owner_reference(owner))],
    }
    if finalizer:
        change["finalizers"] = [finalizer]
    try:
        return await ctx.patch(orphan, {"metadata": change}, type="strategic")
    except ApiError as error:
        if error.status.code in (404, 409, 422):
            # The object is gone or another controller adopted it; its next event triggers another
            # reconcile.
            return None
        raise


async def _release(owner: Object, obj: Object, ctx: Context, finalizer: str) -> None:
    removed = {"$patch": "delete", "uid": owner.metadata.uid}
    change: JsonObject = {"uid": obj.metadata.uid, "ownerReferences": [removed]}
    if finalizer:
        change["$deleteFromPrimitiveList/finalizers"] = [finalizer]
    try:
        await ctx.patch(obj, {"metadata": change}, type="strategic")
    except ApiError as error:
        if error.status.code not in (404, 409, 422):
            raise


pods_by_controller: Index[core_v1.Pod] = Index(core_v1.Pod, controller_keys)


def is_ready(pod: core_v1.Pod) -> bool:
    """Return True if the Pod is ready."""
    return is_true(pod.status.conditions, "Ready")


def is_terminal_phase(phase: str) -> bool:
    """Return True if a Pod in this phase has finished."""
    return phase in ("Succeeded", "Failed")


def is_pod_finished(pod: core_v1.Pod) -> bool:
    """Return True if the Pod has finished: all its containers have terminated and none is restarted."""
    return is_terminal_phase(pod.status.phase)


def is_active(pod: core_v1.Pod) -> bool:
    """Return True if the Pod is neither finished nor terminating."""
    return pod.metadata.deletion_timestamp is None and not is_pod_finished(pod)


def affects_pod_counts(change: Change[core_v1.Pod]) -> bool:
    """Return True if a change affects how a Pod is counted."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return _counted_state(old) != _counted_state(new)


def _counted_state(pod: core_v1.Pod) -> tuple[object, ...]:
    ready = condition_of(pod.status.conditions, "Ready")
    meta = pod.metadata
    return (
        (ready.status, ready.last_transition_time) if ready is not None else None,
        pod.status.phase,
        meta.deletion_timestamp,
        meta.labels,
        meta.owner_references,
        meta.finalizers,
    )


def time_until_available(pod: core_v1.Pod, min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Return the time until a Pod has been ready for minReadySeconds: zero if it has, None if it is not ready."""
    condition = condition_of(pod.status.conditions, "Ready")
    if condition is None or condition.status != "True":
        return None
    since = condition.last_transition_time or now
    return max(since + timedelta(seconds=min_ready_seconds) - now, timedelta(0))


def deletion_rank(pod: core_v1.Pod) -> tuple[bool, bool, bool, int, int, float]:
    """Return a sort key for choosing Pods to delete.

    Unassigned, pending and unready Pods come first, then low deletion costs, many restarts, and the newest.
    """
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        is_ready(pod),
        _cost(pod),
        -max((item.restart_count for item in pod.status.container_statuses), default=0),
        -created.timestamp() if created else 0.0,
    )


def _cost(pod: core_v1.Pod) -> int:
    try:
        return int(pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost", "0"))
    except ValueError:
        return 0


def pod_from_template(
    template: core_v1.PodTemplateSpec, *, namespace: str, name: str = "", generate_name: str = ""
) -> core_v1.Pod:
    """Build a Pod from a template."""
    return core_v1.Pod(
        Meta(
            name,
            generate_name=generate_name,
            namespace=namespace,
            labels=dict(template.metadata.labels),
            annotations=dict(template.metadata.annotations),
            finalizers=list(template.metadata.finalizers),
        ),
        spec=template.spec,
    )
