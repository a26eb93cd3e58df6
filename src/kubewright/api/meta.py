"""The metadata of an object: its name, labels, owners and what the server writes there."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from kubewright.api.model import Model

Propagation = Literal["", "Background", "Foreground", "Orphan"]
"""What the garbage collector does with the dependents of a deleted object; empty: the default of its kind."""


class OwnerReference(Model, builtin=True):
    """A reference to an owner; the garbage collector deletes the object with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model, builtin=True):
    """The fields that one field manager owns."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: datetime | None = None
    fields_type: str = ""
    fields_v1: dict[str, Any] = {}
    subresource: str = ""


class _Named(Model, builtin=True, kw_only=False):
    name: str = ""


class Meta(_Named, builtin=True, lists={"finalizers": (), "owner_references": ("uid",)}):
    """Metadata of an object: `Meta("demo", namespace="default", labels={...})`."""

    namespace: str = ""
    generate_name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []
    managed_fields: list[ManagedFieldsEntry] = []


class HasOwners(Protocol):
    """Metadata with owner references."""

    @property
    def owner_references(self) -> Sequence[OwnerReference]:
        """Return the owner references."""
        ...


def controller_of(meta: HasOwners) -> OwnerReference | None:
    """Return the owner that controls the object, if any."""
    for owner in meta.owner_references:
        if owner.controller:
            return owner
    return None


def has_finalizer(meta: Meta, finalizer: str) -> bool:
    """Return True if the object has this finalizer."""
    return finalizer in meta.finalizers
