"""Finalizers as JSON patches that carry the resourceVersion, so that a raced one is refused (409)."""

from typing import Any

from kubewright.api import PartialMeta

Operations = list[dict[str, Any]]


def adding(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the patch that adds the finalizer to an object in this state."""
    if meta.finalizers:
        add = {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}
    else:
        add = {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}
    return [_at_version(meta), add]


def removing(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the patch that takes the finalizer off an object in this state."""
    position = meta.finalizers.index(finalizer)
    return [_at_version(meta), {"op": "remove", "path": f"/metadata/finalizers/{position}"}]


def _at_version(meta: PartialMeta) -> dict[str, Any]:
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version}
