"""The kinds of batch/v1; written by tools/generate_builtin.py."""

from datetime import datetime
from typing import Any

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import ObjectReference, PodTemplateSpec
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.meta import Meta
from kubewright.api.model import Model
from kubewright.api.resource import Object


class WorkloadPodGroupDisruptionMode(Model, builtin=True):
    all: dict[str, Any] | None = None
    single: dict[str, Any] | None = None


class WorkloadPodGroupResourceClaim(Model, builtin=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class TopologyConstraint(Model, builtin=True):
    key: str


class WorkloadPodGroupSchedulingConstraints(Model, builtin=True):
    topology: list[TopologyConstraint] = []


class WorkloadPodGroupGangSchedulingPolicy(Model, builtin=True):
    min_count: int | None = None


class WorkloadPodGroupSchedulingPolicy(Model, builtin=True):
    basic: dict[str, Any] | None = None
    gang: WorkloadPodGroupGangSchedulingPolicy | None = None


class JobSchedulingConfiguration(Model, builtin=True, lists={"resource_claims": ("name",)}):
    disruption_mode: WorkloadPodGroupDisruptionMode | None = None
    resource_claims: list[WorkloadPodGroupResourceClaim] = []
    scheduling_constraints: WorkloadPodGroupSchedulingConstraints | None = None
    scheduling_policy: WorkloadPodGroupSchedulingPolicy | None = None


class PodFailurePolicyOnExitCodesRequirement(Model, builtin=True, lists={"values": ()}):
    container_name: str | None = None
    operator: str
    values: list[int]


class PodFailurePolicyOnPodConditionsPattern(Model, builtin=True):
    status: str = ""
    type: str


class PodFailurePolicyRule(Model, builtin=True):
    action: str
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] = []


class PodFailurePolicy(Model, builtin=True):
    rules: list[PodFailurePolicyRule]


class SuccessPolicyRule(Model, builtin=True):
    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(Model, builtin=True):
    rules: list[SuccessPolicyRule]


class JobSpec(Model, builtin=True):
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    scheduling: JobSchedulingConfiguration | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: PodTemplateSpec
    ttl_seconds_after_finished: int | None = None


class JobTemplateSpec(Model, builtin=True):
    metadata: Meta = _field(default_factory=Meta)
    spec: JobSpec


class CronJobSpec(Model, builtin=True):
    concurrency_policy: str = ""
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplateSpec
    schedule: str
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None


class CronJobStatus(Model, builtin=True):
    active: list[ObjectReference] = []
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(
    Object,
    group="batch",
    version="v1",
    plural="cronjobs",
    short_names=["cj"],
    categories=["all"],
    status=True,
    builtin=True,
):
    spec: CronJobSpec
    status: CronJobStatus = _field(default_factory=CronJobStatus)


class JobCondition(Model, builtin=True):
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class UncountedTerminatedPods(Model, builtin=True, lists={"failed": (), "succeeded": ()}):
    failed: list[str] = []
    succeeded: list[str] = []


class JobStatus(Model, builtin=True):
    active: int = 0
    completed_indexes: str = ""
    completion_time: datetime | None = None
    conditions: list[JobCondition] = []
    failed: int = 0
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: datetime | None = None
    succeeded: int = 0
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Object, group="batch", version="v1", plural="jobs", categories=["all"], status=True, builtin=True):
    spec: JobSpec
    status: JobStatus = _field(default_factory=JobStatus)


__all__ = [
    "CronJob",
    "CronJobSpec",
    "CronJobStatus",
    "Job",
    "JobCondition",
    "JobSchedulingConfiguration",
    "JobSpec",
    "JobStatus",
    "JobTemplateSpec",
    "PodFailurePolicy",
    "PodFailurePolicyOnExitCodesRequirement",
    "PodFailurePolicyOnPodConditionsPattern",
    "PodFailurePolicyRule",
    "SuccessPolicy",
    "SuccessPolicyRule",
    "TopologyConstraint",
    "UncountedTerminatedPods",
    "WorkloadPodGroupDisruptionMode",
    "WorkloadPodGroupGangSchedulingPolicy",
    "WorkloadPodGroupResourceClaim",
    "WorkloadPodGroupSchedulingConstraints",
    "WorkloadPodGroupSchedulingPolicy",
]
