"""Refusals that name the object as the real server's admission does, before it may have a name."""

from collections.abc import Mapping, Sequence

from kubewright.devserver.objects import meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation


def name_of(operation: Operation) -> str:
    """Give the name by which a refusal calls the object."""
    if operation.name or operation.object is None:
        return operation.name or "Unknown"
    metadata = meta(operation.object)
    return metadata.get("name") or metadata.get("generateName") or "Unknown"


def forbidden(operation: Operation, why: str, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """Refuse a write."""
    group, _, plural = operation.resource
    return StatusError.forbidden(group, plural, name_of(operation), why, causes=causes)
