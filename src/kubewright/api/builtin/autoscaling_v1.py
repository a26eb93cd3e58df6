"""The kinds of autoscaling/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.resource import Object


class CrossVersionObjectReference(Model, builtin=True):
    api_version: str = ""
    kind: str
    name: str


class HorizontalPodAutoscalerSpec(
    Model, builtin=True, wire_names={"target_cpu_utilization_percentage": "targetCPUUtilizationPercentage"}
):
    max_replicas: int
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference
    target_cpu_utilization_percentage: int | None = None


class HorizontalPodAutoscalerStatus(
    Model, builtin=True, wire_names={"current_cpu_utilization_percentage": "currentCPUUtilizationPercentage"}
):
    current_cpu_utilization_percentage: int | None = None
    current_replicas: int
    desired_replicas: int
    last_scale_time: datetime | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(
    Object,
    group="autoscaling",
    version="v1",
    plural="horizontalpodautoscalers",
    short_names=["hpa"],
    categories=["all"],
    status=True,
    builtin=True,
):
    spec: HorizontalPodAutoscalerSpec
    status: HorizontalPodAutoscalerStatus = _field(
        default_factory=lambda: zero(HorizontalPodAutoscalerStatus)
    )


class ScaleSpec(Model, builtin=True):
    replicas: int = 0


class ScaleStatus(Model, builtin=True):
    replicas: int
    selector: str = ""


class Scale(Object, group="autoscaling", version="v1", status=False, builtin=True):
    spec: ScaleSpec = _field(default_factory=ScaleSpec)
    status: ScaleStatus = _field(default_factory=lambda: zero(ScaleStatus))


__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
]
