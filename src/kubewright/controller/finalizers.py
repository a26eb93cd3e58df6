"""Finalizers as JSON patches; they are sent with the resourceVersion, so that a raced one is refused (409)."""

from typing import Any

from kubewright.api import PartialMeta

Operations = list[dict[str, Any]]


def adding(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the patch that adds the finalizer to an object in this state."""
    if meta.finalizers:
        return [{"op": "add", "path": "/metadata/finalizers/-", "value": finalizer}]
    return [{"op": "add", "path": "/metadata/finalizers", "value": [finalizer]}]


def removing(meta: PartialMeta, finalizer: str) -> Operations:
    """Return the patch that takes the finalizer off an object in this state."""
    return [{"op": "remove", "path": f"/metadata/finalizers/{meta.finalizers.index(finalizer)}"}]
