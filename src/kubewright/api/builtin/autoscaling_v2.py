"""The kinds of autoscaling/v2; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object


class MetricTarget(Model, builtin=True):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    type: str
    value: Quantity | None = None


class ContainerResourceMetricSource(Model, builtin=True):
    container: str
    name: str
    target: MetricTarget


class MetricValueStatus(Model, builtin=True):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricStatus(Model, builtin=True):
    container: str
    current: MetricValueStatus
    name: str


class CrossVersionObjectReference(Model, builtin=True):
    api_version: str = ""
    kind: str
    name: str


class MetricIdentifier(Model, builtin=True):
    name: str
    selector: LabelSelector | None = None


class ExternalMetricSource(Model, builtin=True):
    metric: MetricIdentifier
    target: MetricTarget


class ExternalMetricStatus(Model, builtin=True):
    current: MetricValueStatus
    metric: MetricIdentifier


class HPAScalingPolicy(Model, builtin=True):
    period_seconds: int
    type: str
    value: int


class HPAScalingRules(Model, builtin=True):
    policies: list[HPAScalingPolicy] = []
    select_policy: str | None = None
    stabilization_window_seconds: int | None = None
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Model, builtin=True):
    scale_down: HPAScalingRules | None = None
    scale_up: HPAScalingRules | None = None


class ObjectMetricSource(Model, builtin=True):
    described_object: CrossVersionObjectReference
    metric: MetricIdentifier
    target: MetricTarget


class PodsMetricSource(Model, builtin=True):
    metric: MetricIdentifier
    target: MetricTarget


class ResourceMetricSource(Model, builtin=True):
    name: str
    target: MetricTarget


class MetricSpec(Model, builtin=True):
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    type: str


class HorizontalPodAutoscalerSpec(Model, builtin=True):
    behavior: HorizontalPodAutoscalerBehavior | None = None
    max_replicas: int
    metrics: list[MetricSpec] = []
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference


class HorizontalPodAutoscalerCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    observed_generation: int | None = None
    reason: str = ""
    status: str
    type: str


class ObjectMetricStatus(Model, builtin=True):
    current: MetricValueStatus
    described_object: CrossVersionObjectReference
    metric: MetricIdentifier


class PodsMetricStatus(Model, builtin=True):
    current: MetricValueStatus
    metric: MetricIdentifier


class ResourceMetricStatus(Model, builtin=True):
    current: MetricValueStatus
    name: str


class MetricStatus(Model, builtin=True):
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    type: str


class HorizontalPodAutoscalerStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[HorizontalPodAutoscalerCondition] = []
    current_metrics: list[MetricStatus] = []
    current_replicas: int = 0
    desired_replicas: int
    last_scale_time: datetime | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(
    Object,
    group="autoscaling",
    version="v2",
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


__all__ = [
    "ContainerResourceMetricSource",
    "ContainerResourceMetricStatus",
    "CrossVersionObjectReference",
    "ExternalMetricSource",
    "ExternalMetricStatus",
    "HPAScalingPolicy",
    "HPAScalingRules",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerBehavior",
    "HorizontalPodAutoscalerCondition",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "MetricIdentifier",
    "MetricSpec",
    "MetricStatus",
    "MetricTarget",
    "MetricValueStatus",
    "ObjectMetricSource",
    "ObjectMetricStatus",
    "PodsMetricSource",
    "PodsMetricStatus",
    "ResourceMetricSource",
    "ResourceMetricStatus",
]
