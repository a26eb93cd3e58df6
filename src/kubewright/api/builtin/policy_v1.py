"""The kinds of policy/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.meta_v1 import DeleteOptions, LabelSelector
from kubewright.api.conditions import Condition
from kubewright.api.model import Model
from kubewright.api.resource import Object


class Eviction(Object, group="policy", version="v1", status=False, builtin=True):
    delete_options: DeleteOptions | None = None


class PodDisruptionBudgetSpec(Model, builtin=True):
    max_unavailable: int | str | None = None
    min_available: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[Condition] = []
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: dict[str, datetime | None] = {}
    disruptions_allowed: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(
    Object,
    group="policy",
    version="v1",
    plural="poddisruptionbudgets",
    short_names=["pdb"],
    status=True,
    builtin=True,
):
    spec: PodDisruptionBudgetSpec = _field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = _field(default_factory=PodDisruptionBudgetStatus)


__all__ = [
    "Eviction",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
]
