"""The document that is sent for a child: namespace and owner reference filled in, fields of the server left out."""

from base64 import b64encode

from kubewright.api import JsonObject, Kind, ObjectKey, PartialMeta, controller_of
from kubewright.controller.errors import CannotOwn, OwnedByAnother

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


def sent_form(child: JsonObject, kind: Kind, namespace: str) -> JsonObject:
    """Return the document to send for a child: without the fields that the server sets, with its namespace."""
    meta = {key: value for key, value in child.get("metadata", {}).items() if key not in _SERVER_WRITTEN}
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or namespace
    else:
        meta.pop("namespace", None)
    sent = {**child, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    if kind.status:
        sent.pop("status", None)
    return _with_folded_data(sent) if kind.resource == "secrets" else sent


def with_owner(child: JsonObject, child_kind: Kind, owner: PartialMeta, owner_kind: Kind) -> JsonObject:
    """Return the child with its owner as controller; raise CannotOwn if the cluster would not allow it."""
    meta = child["metadata"]
    name = ObjectKey(meta.get("namespace", ""), meta.get("name", ""))
    if owner_kind.namespaced and not child_kind.namespaced:
        raise CannotOwn(
            f"{owner_kind.kind} {owner.key} is namespaced and cannot own "
            f"the cluster-scoped {child_kind.kind} {name}"
        )
    if owner_kind.namespaced and meta.get("namespace") != owner.namespace:
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


def check_controllable(child: PartialMeta, child_kind: Kind, owner: PartialMeta) -> None:
    """Raise OwnedByAnother if another object controls the child."""
    holder = controller_of(child)
    if holder is not None and holder.uid != owner.uid:
        raise OwnedByAnother(
            f"{child_kind.kind} {child.key} is controlled by {holder.kind} {holder.name} (uid {holder.uid}): "
            "give the child another name, or remove that owner reference"
        )


def _with_folded_data(secret: JsonObject) -> JsonObject:
    """Return a Secret with stringData moved into data as the server does: the applied fields are those it keeps."""
    text: dict[str, str] = secret.get("stringData") or {}
    if not text:
        return secret
    folded = {key: b64encode(value.encode()).decode() for key, value in text.items()}
    kept = {key: value for key, value in secret.items() if key != "stringData"}
    return kept | {"data": {**secret.get("data", {}), **folded}}
