"""The kinds of apps/v1; written by tools/generate_builtin.py."""

from datetime import datetime
from typing import Any

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import PersistentVolumeClaim, PodTemplateSpec
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.codec import zero
from kubewright.api.fields import Scale
from kubewright.api.model import Model
from kubewright.api.resource import Object


class ControllerRevision(
    Object, group="apps", version="v1", plural="controllerrevisions", status=False, builtin=True
):
    data: dict[str, Any]
    revision: int = 0


class RollingUpdateDaemonSet(Model, builtin=True):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DaemonSetUpdateStrategy(Model, builtin=True):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: str = ""


class DaemonSetSpec(Model, builtin=True):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector
    template: PodTemplateSpec
    update_strategy: DaemonSetUpdateStrategy = _field(default_factory=DaemonSetUpdateStrategy)


class DaemonSetCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DaemonSetStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    collision_count: int | None = None
    conditions: list[DaemonSetCondition] = []
    current_number_scheduled: int
    desired_number_scheduled: int
    number_available: int = 0
    number_misscheduled: int
    number_ready: int
    number_unavailable: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(
    Object,
    group="apps",
    version="v1",
    plural="daemonsets",
    short_names=["ds"],
    categories=["all"],
    status=True,
    builtin=True,
):
    spec: DaemonSetSpec
    status: DaemonSetStatus = _field(default_factory=lambda: zero(DaemonSetStatus))


class RollingUpdateDeployment(Model, builtin=True):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(Model, builtin=True):
    rolling_update: RollingUpdateDeployment | None = None
    type: str = ""


class DeploymentSpec(Model, builtin=True):
    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector
    strategy: DeploymentStrategy = _field(default_factory=DeploymentStrategy)
    template: PodTemplateSpec


class DeploymentCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DeploymentStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[DeploymentCondition] = []
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class Deployment(
    Object,
    group="apps",
    version="v1",
    plural="deployments",
    short_names=["deploy"],
    categories=["all"],
    status=True,
    scale=Scale(spec=".spec.replicas", status=".status.replicas", selector=".status.selector"),
    builtin=True,
):
    spec: DeploymentSpec
    status: DeploymentStatus = _field(default_factory=DeploymentStatus)


class ReplicaSetSpec(Model, builtin=True):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: LabelSelector
    template: PodTemplateSpec = _field(default_factory=lambda: zero(PodTemplateSpec))


class ReplicaSetCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ReplicaSetStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    available_replicas: int = 0
    conditions: list[ReplicaSetCondition] = []
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int
    terminating_replicas: int | None = None


class ReplicaSet(
    Object,
    group="apps",
    version="v1",
    plural="replicasets",
    short_names=["rs"],
    categories=["all"],
    status=True,
    scale=Scale(spec=".spec.replicas", status=".status.replicas", selector=".status.selector"),
    builtin=True,
):
    spec: ReplicaSetSpec
    status: ReplicaSetStatus = _field(default_factory=lambda: zero(ReplicaSetStatus))


class RollingUpdateStatefulSetStrategy(Model, builtin=True):
    max_unavailable: int | str | None = None
    partition: int | None = None


class StatefulSetOrdinals(Model, builtin=True):
    start: int = 0


class StatefulSetPersistentVolumeClaimRetentionPolicy(Model, builtin=True):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetUpdateStrategy(Model, builtin=True):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""


class StatefulSetSpec(Model, builtin=True):
    min_ready_seconds: int = 0
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str = ""
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector
    service_name: str = ""
    template: PodTemplateSpec
    update_strategy: StatefulSetUpdateStrategy = _field(default_factory=StatefulSetUpdateStrategy)
    volume_claim_templates: list[PersistentVolumeClaim] = []


class StatefulSetCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class StatefulSetStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[StatefulSetCondition] = []
    current_replicas: int = 0
    current_revision: str = ""
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int
    update_revision: str = ""
    updated_replicas: int = 0


class StatefulSet(
    Object,
    group="apps",
    version="v1",
    plural="statefulsets",
    short_names=["sts"],
    categories=["all"],
    status=True,
    scale=Scale(spec=".spec.replicas", status=".status.replicas", selector=".status.selector"),
    builtin=True,
):
    spec: StatefulSetSpec
    status: StatefulSetStatus = _field(default_factory=lambda: zero(StatefulSetStatus))


__all__ = [
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetCondition",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetUpdateStrategy",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetCondition",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdateDaemonSet",
    "RollingUpdateDeployment",
    "RollingUpdateStatefulSetStrategy",
    "StatefulSet",
    "StatefulSetCondition",
    "StatefulSetOrdinals",
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetUpdateStrategy",
]
