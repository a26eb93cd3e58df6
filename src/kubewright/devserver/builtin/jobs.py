"""Jobs and CronJobs."""

import uuid
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin.ages import age, human_duration, seconds_of
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, containers, object_age, selector_text, wide
from kubewright.devserver.builtin.pod_validation import validate_pod_spec
from kubewright.devserver.builtin.templates import default_pod_spec
from kubewright.devserver.builtin.workloads import template_of
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column, Strategy

_JOB_POLICIES = ("OnFailure", "Never")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")


def _default_job(job: Wire) -> None:
    spec: Wire = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    default_pod_spec(template_of(job)["spec"])


def _prepare_job(job: Wire) -> None:
    if job["spec"].get("manualSelector"):
        return
    # The uid is drawn here because the selector must carry it before the object is stored.
    uid = job["metadata"].setdefault("uid", str(uuid.uuid4()))
    labels: dict[str, str] = template_of(job)["metadata"].setdefault("labels", {})
    for name in _UID_LABELS:
        labels[name] = uid
    for name in _NAME_LABELS:
        labels[name] = job["metadata"].get("name", "")
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _validate_job(job: Wire) -> list[FieldError]:
    spec = job["spec"]
    errors = [
        problems.invalid(f"spec.{name}", spec[name], "must be greater than or equal to 0")
        for name in (
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
        )
        if isinstance(spec.get(name), int) and spec[name] < 0
    ]
    pod = spec["template"]["spec"]
    path = "spec.template.spec"
    errors += validate_pod_spec(pod, path)
    if pod.get("restartPolicy") not in _JOB_POLICIES:
        choices = '"OnFailure", "Never"'
        detail = f"valid values: {choices}" if pod.get("restartPolicy") == "Always" else ""
        errors.append(problems.required(f"{path}.restartPolicy", detail))
    return errors


def _validate_job_update(new: Wire, old: Wire) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("completions", "selector", "template", "completionMode"):
        if new["spec"].get(name) != old["spec"].get(name):
            errors.append(problems.invalid(f"spec.{name}", new["spec"].get(name), "field is immutable"))
    return errors


def _default_cron_job(job: Wire) -> None:
    spec: Wire = job.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    default_pod_spec(template_of(spec.setdefault("jobTemplate", {}))["spec"])


def _job_state(job: Wire) -> str:
    status: Wire = job.get("status") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
    if conditions.get("Complete") == "True":
        return "Complete"
    if conditions.get("Failed") == "True":
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if conditions.get("Suspended") == "True":
        return "Suspended"
    if conditions.get("FailureTarget") == "True":
        return "FailureTarget"
    if conditions.get("SuccessCriteriaMet") == "True":
        return "SuccessCriteriaMet"
    return "Running"


def _job_row(job: Wire, now: float) -> list[Any]:
    spec, status = job["spec"], job.get("status") or {}
    done = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        completions = f"{done}/{spec['completions']}"
    elif spec.get("parallelism", 0) > 1:
        completions = f"{done}/1 of {spec['parallelism']}"
    else:
        completions = f"{done}/1"
    begin, end = seconds_of(status.get("startTime")), seconds_of(status.get("completionTime"))
    duration = "" if begin is None else human_duration((now if end is None else end) - begin)
    names, images = containers(spec["template"])
    return [
        job["metadata"]["name"],
        _job_state(job),
        completions,
        duration,
        object_age(job, now),
        names,
        images,
        selector_text(spec.get("selector")),
    ]


def _cron_job_row(job: Wire, now: float) -> list[Any]:
    spec, status = job["spec"], job.get("status") or {}
    names, images = containers(spec["jobTemplate"]["spec"]["template"])
    last = status.get("lastScheduleTime")
    return [
        job["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        object_age(job, now),
        names,
        images,
        selector_text(spec["jobTemplate"]["spec"].get("selector")),
    ]


def _succeeded(job: Wire) -> str:
    return str((job.get("status") or {}).get("succeeded", 0))


STRATEGIES = {
    ("batch", "Job"): Strategy(
        default=_default_job,
        prepare_create=_prepare_job,
        validate=_validate_job,
        validate_update=_validate_job_update,
        has_generation=True,
        default_propagation="Orphan",
        selectable_fields={"status.successful": _succeeded},
        columns=(
            NAME,
            Column("Status"),
            Column("Completions"),
            Column("Duration"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ),
        row=_job_row,
    ),
    ("batch", "CronJob"): Strategy(
        default=_default_cron_job,
        has_generation=True,
        columns=(
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            Column("Suspend", "boolean"),
            Column("Active", "integer"),
            Column("Last Schedule"),
            AGE,
            wide("Containers"),
            wide("Images"),
            wide("Selector"),
        ),
        row=_cron_job_row,
    ),
}
