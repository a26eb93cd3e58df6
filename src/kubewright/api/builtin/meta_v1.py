"""Types of meta.k8s.io/v1 that kinds share; written by tools/generate_builtin.py."""

from kubewright.api.conditions import Condition
from kubewright.api.meta import Meta, OwnerReference
from kubewright.api.model import Model


class Preconditions(Model, builtin=True):
    resource_version: str | None = None
    uid: str | None = None


class DeleteOptions(Model, builtin=True):
    api_version: str = ""
    dry_run: list[str] = []
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    kind: str = ""
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None


class FieldSelectorRequirement(Model, builtin=True):
    key: str
    operator: str
    values: list[str] = []


class LabelSelectorRequirement(Model, builtin=True):
    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Model, builtin=True):
    match_expressions: list[LabelSelectorRequirement] = []
    match_labels: dict[str, str] = {}


__all__ = [
    "Condition",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Meta",
    "OwnerReference",
    "Preconditions",
]
