"""What is sent to the server, as pure functions: children, owner references, finalizers and status conditions.

`WriteTarget` is an object as the author gave it to a writing verb. `child_document` and `with_owner` make the document
that `ctx.apply` and `ctx.create` send for a child; `check_controlled` refuses an existing object that its
owner does not control.
`finalizer_added` and `finalizer_removed` are JSON patches, sent with the object's resourceVersion so that a race is
refused with 409. `stamp_conditions` fills in what Kubernetes expects of conditions: lastTransitionTime changes only
with the condition's status.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kubewright.api import (
    JsonObject,
    Kind,
    Model,
    Object,
    ObjectKey,
    OwnerReference,
    PartialMeta,
    RawObject,
    controller_of,
    decode,
    to_wire,
    with_string_data_encoded,
)
from kubewright.api.pydantic_models import is_pydantic, write_pydantic
from kubewright.controller.errors import CannotOwn, OwnedByAnother

Operations = list[dict[str, Any]]

_SERVER_WRITTEN = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)


class WriteTarget:
    """An object given to a writing verb, and its kind; its JSON object is made when it is first needed."""

    __slots__ = ("_document", "form", "generation", "given", "key", "kind", "uid")

    def __init__(self, kind: Kind, given: Object | JsonObject) -> None:
        self.kind: Kind = kind
        self.given: Object | JsonObject = given
        self.form: Any = kind
        """What its states are decoded to: the class, or the kind for JSON objects."""
        self.key: ObjectKey
        """Namespace and name."""
        self.uid: str
        """The uid that the object was read with, if any."""
        self.generation: int
        """The generation that the object was read with; 0 if it was not read or has none."""
        self._document: JsonObject | None = None
        if isinstance(given, Object):
            self.form = type(given)
            self.key, self.uid = given.key, given.metadata.uid
            self.generation = given.metadata.generation
        else:
            meta: JsonObject = given.get("metadata", {})
            self.key = ObjectKey(meta.get("namespace", ""), meta.get("name", ""))
            self.uid, self.generation = meta.get("uid", ""), meta.get("generation", 0)
            self._document = given

    @property
    def document(self) -> JsonObject:
        """Return the object as a JSON object."""
        if self._document is None:
            self._document = to_wire(cast("Object", self.given))
        return self._document


# Children and their owner.


def child_document(child: JsonObject, kind: Kind, namespace: str) -> JsonObject:
    """Return the document to send for a child: without the fields that the server sets, with its namespace."""
    meta = {key: value for key, value in child.get("metadata", {}).items() if key not in _SERVER_WRITTEN}
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or namespace
    else:
        meta.pop("namespace", None)
    sent = {**child, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    if kind.status:
        sent.pop("status", None)
    return with_string_data_encoded(sent) if kind.resource == "secrets" else sent


def with_owner(child: JsonObject, child_kind: Kind, owner: PartialMeta, owner_kind: Kind) -> JsonObject:
    """Return the child with its owner as controller; raise CannotOwn if the cluster would not allow it."""
    meta = child["metadata"]
    if owner_kind.namespaced and not child_kind.namespaced:
        raise CannotOwn(
            f"{owner_kind.kind} {owner.key} is namespaced and cannot own "
            f"the cluster-scoped {child_kind.kind} {meta.get('name', '')}"
        )
    if owner_kind.namespaced and meta.get("namespace") != owner.namespace:
        name = ObjectKey(meta.get("namespace", ""), meta.get("name", ""))
        raise CannotOwn(
            f"{owner_kind.kind} {owner.key} cannot own {child_kind.kind} {name} in another namespace"
        )
    reference = {
        "apiVersion": owner_kind.api_version,
        "kind": owner_kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    others = [other for other in meta.get("ownerReferences", ()) if other.get("uid") != owner.uid]
    return child | {"metadata": meta | {"ownerReferences": [*others, reference]}}


def with_finalizer(child: JsonObject, finalizer: str) -> JsonObject:
    """Return the child with the finalizer added."""
    meta = child["metadata"]
    finalizers = meta.get("finalizers", [])
    if finalizer in finalizers:
        return child
    return child | {"metadata": meta | {"finalizers": [*finalizers, finalizer]}}


def check_controlled(
    child: PartialMeta, child_kind: Kind, owner: PartialMeta, owner_kind: Kind, *, adopt: bool
) -> None:
    """Raise OwnedByAnother if the owner does not control the existing child, and may not adopt it.

    With `adopt` an object without a controller may be taken over, and one of an earlier owner of the same kind and name:
    that owner is gone, as its name is in use again. A child of any other owner is never taken over.
    """
    holder = controller_of(child)
    if holder is not None and holder.uid == owner.uid:
        return
    name = f"{child_kind.kind} {child.key}"
    if holder is None:
        problem = f"{name} exists and is not controlled by {owner_kind.kind} {owner.key}"
    elif is_earlier_owner(holder, owner, owner_kind):
        problem = (
            f"{name} exists and is controlled by another {holder.kind} {holder.name} (uid {holder.uid}), "
            f"not by this one (uid {owner.uid}), as after the owner was restored from a backup or deleted with "
            "--cascade=orphan and created again"
        )
    else:
        raise OwnedByAnother(
            f"{name} is controlled by {holder.kind} {holder.name} (uid {holder.uid}): "
            "give the child another name, or remove that owner reference"
        )
    if not adopt:
        raise OwnedByAnother(f"{problem}: pass adopt=True to take it over")


def is_earlier_owner(holder: OwnerReference, owner: PartialMeta, owner_kind: Kind) -> bool:
    """Return True if the reference names an owner of the same group, kind and name as this one with another uid."""
    if holder.uid == owner.uid:
        return False
    group = holder.api_version.rpartition("/")[0]
    return (group, holder.kind, holder.name) == (owner_kind.group, owner_kind.kind, owner.name)


# Finalizers.


def finalizer_added(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the JSON patch that adds the finalizer to an object in this state."""
    if meta.finalizers:
        return [{"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}]
    return [{"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}]


def finalizer_removed(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the JSON patch that removes the finalizer from an object in this state."""
    return [{"op": "remove", "path": f"/metadata/finalizers/{meta.finalizers.index(finalizer)}"}]


# Status and its conditions.


class _StatusOnly(msgspec.Struct):
    status: Any = None


def live_status(state: RawObject) -> JsonObject:
    """Return the status as a JSON object; the rest of the object is not decoded."""
    return decode(_StatusOnly, state.raw).status or {}


def desired_status(target: WriteTarget, status: Model | JsonObject | None) -> JsonObject:
    """Return the given status as a JSON object, or that of the target if none is given."""
    if isinstance(status, Model):
        return to_wire(status)
    if is_pydantic(status.__class__):
        return write_pydantic(status)
    return dict(target.document.get("status") or {} if status is None else status)


def observes_generation(target: WriteTarget, status: Model | JsonObject | None) -> bool:
    """Return True if the conditions of the status have a field observedGeneration."""
    meant: Any = getattr(target.given, "status", None) if status is None else status
    if isinstance(meant, Model) or is_pydantic(meant.__class__):
        conditions: list[Any] = getattr(meant, "conditions", None) or []
        return any(hasattr(condition, "observed_generation") for condition in conditions)
    conditions = desired_status(target, status).get("conditions") or []
    return any("observedGeneration" in condition for condition in conditions)


def stamp_conditions(
    status: JsonObject, live: JsonObject, generation: int | None, now: datetime
) -> dict[str, Any]:
    """Return the status with each condition's lastTransitionTime and observedGeneration filled in.

    With `generation=None` no observedGeneration is set: conditions such as a Deployment's have none.
    """
    desired = status.get("conditions")
    if not _are_conditions(desired):
        return dict(status)
    present = live.get("conditions")
    before: dict[Any, JsonObject] = {}
    if _are_conditions(present):
        before = {known["type"]: known for known in cast("Sequence[JsonObject]", present)}
    return dict(status) | {
        "conditions": [
            _stamp(condition, before.get(condition["type"], {}), generation, now)
            for condition in cast("Sequence[JsonObject]", desired)
        ]
    }


def _stamp(
    condition: JsonObject, before: JsonObject, generation: int | None, now: datetime
) -> dict[str, Any]:
    stamped = dict(condition)
    if before.get("status") == condition.get("status") and before.get("lastTransitionTime"):
        stamped["lastTransitionTime"] = before["lastTransitionTime"]
    elif not condition.get("lastTransitionTime"):
        stamped["lastTransitionTime"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not condition.get("observedGeneration") and generation:
        stamped["observedGeneration"] = generation
    return stamped


def _are_conditions(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(
        isinstance(item, Mapping) and "type" in item and "status" in item for item in cast("list[Any]", value)
    )
