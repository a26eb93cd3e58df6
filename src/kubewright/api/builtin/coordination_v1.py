"""The kinds of coordination.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.model import Model
from kubewright.api.resource import Object
from kubewright.api.times import MicroTime


class LeaseSpec(Model, builtin=True):
    acquire_time: MicroTime | None = None
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    renew_time: MicroTime | None = None
    strategy: str | None = None


class Lease(Object, group="coordination.k8s.io", version="v1", plural="leases", status=False, builtin=True):
    spec: LeaseSpec = _field(default_factory=LeaseSpec)


__all__ = [
    "Lease",
    "LeaseSpec",
]
