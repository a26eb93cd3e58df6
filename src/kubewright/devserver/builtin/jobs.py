"""Jobs and CronJobs."""

import re
import zoneinfo
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import (
    AGE,
    NAME,
    NONE,
    boolean,
    containers,
    integer,
    object_age,
    selector_text,
    wide,
)
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.job_checks import check_job_spec
from kubewright.devserver.builtin.job_status import check_job_status
from kubewright.devserver.builtin.pod_warnings import warn_of_template
from kubewright.devserver.builtin.schedules import schedule_trouble
from kubewright.devserver.builtin.templates import default_pod_spec, template_of
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, number_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.clock import parse_time
from kubewright.devserver.strategy import Column, Strategy
from kubewright.devserver.strategy.tables import age, human_duration

_UID = "batch.kubernetes.io/controller-uid"
_UID_LABELS = ("controller-uid", _UID)
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")
_POLICIES = ("Allow", "Forbid", "Replace")
# A Job's name is the CronJob's and a hyphen and ten digits, and must fit into a label.
_MAX_CRON_NAME = 52


def _default_job(job: JsonObject) -> None:
    spec: JsonObject = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2147483647
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    if spec.get("podReplacementPolicy") is None:
        failing = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if failing else "TerminatingOrFailed"
    for rule in items(section(spec, "podFailurePolicy"), "rules"):
        for pattern in items(rule, "onPodConditions"):
            pattern["status"] = pattern.get("status") or "True"
    template = template_of(spec)
    default_pod_spec(template["spec"])
    labels: dict[str, str] | None = template["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        # The very same labels: what is added to those of the Pods is added here.
        job["metadata"]["labels"] = labels


def _prepare_job(job: JsonObject) -> None:
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels: dict[str, str] = dict(section(template_of(spec)["metadata"], "labels"))
    # A Job without labels of its own has those of its Pods. The real server adds them only when it reads the
    # Job back, so a name too long for a label is told once, of the Pods.
    own = metadata.get("labels")
    same = own is template_of(spec)["metadata"].get("labels") or not (own or labels)
    shared = same and not names.label_value(metadata.get("name", ""))
    for name in _UID_LABELS:
        labels[name] = metadata["uid"]
    for name in _NAME_LABELS:
        labels[name] = metadata.get("name", "")
    template_of(spec)["metadata"]["labels"] = dict(sorted(labels.items()))
    if shared:
        metadata["labels"] = dict(sorted(labels.items()))
    selector: JsonObject = section(spec, "selector")
    matched = {**section(selector, "matchLabels"), _UID: metadata["uid"]}
    spec["selector"] = {**selector, "matchLabels": dict(sorted(matched.items()))}


def _validate_job(job: JsonObject) -> list[FieldError]:
    spec = job["spec"]
    selector: JsonObject | None = spec.get("selector")
    errors: list[FieldError] = []
    if not spec.get("manualSelector") and selector is not None:
        expected = {"matchLabels": {_UID: job["metadata"].get("uid", "")}}
        if selector != expected:
            errors.append(invalid_struct("spec.selector", selector, "`selector` not auto-generated"))
    errors += check_job_spec(spec, "spec")
    errors += _selection(spec)
    wanted = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and wanted is not None and wanted > 0:
        name = job["metadata"].get("name", "")
        last = f"{name}-{wanted - 1}"
        if names.dns1123_label(last):
            text = f"will not able to create pod with invalid DNS label: {last}"
            errors.append(problems.invalid("metadata.name", name, text))
    return errors


def _selection(spec: JsonObject) -> list[FieldError]:
    selector: JsonObject | None = spec.get("selector")
    labels: JsonObject = section(spec["template"]["metadata"], "labels")
    errors = check.label_selector("spec.selector", selector)
    if selector is None:
        errors.append(problems.required("spec.selector"))
    if selector is None or check.selects(selector, labels) is False:
        text, shown = (
            "`selector` does not match template `labels`",
            spec["template"]["metadata"].get("labels"),
        )
        errors.append(problems.invalid("spec.template.metadata.labels", shown, text))
    return errors


def _validate_job_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    # The real server looks at the spec of a changed Job twice.
    errors = [*_validate_job(new), *check_job_spec(after, "spec"), *_selection(after)]
    wanted, earlier = after.get("completions"), before.get("completions")
    if after.get("completionMode") != "Indexed":
        errors += check.unchanged("spec.completions", wanted, earlier)
    elif wanted not in (None, earlier, after.get("parallelism")):
        text = "can only be modified in tandem with spec.parallelism"
        errors.append(problems.invalid("spec.completions", wanted, text))
    if after.get("selector") != before.get("selector"):
        errors.append(invalid_struct("spec.selector", after.get("selector"), check.IMMUTABLE))
    for name in (
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        errors += check.unchanged(f"spec.{name}", after.get(name), before.get(name))
    return errors


def _default_cron_job(job: JsonObject) -> None:
    spec: JsonObject = job.setdefault("spec", {})
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    inner: JsonObject = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    default_pod_spec(template_of(inner)["spec"])


def _validate_cron_job(job: JsonObject) -> list[FieldError]:
    spec, name = job["spec"], job["metadata"].get("name", "")
    errors: list[FieldError] = []
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not schedule:
        errors.append(problems.required("spec.schedule"))
    elif "TZ=" in schedule or "CRON_TZ=" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(problems.invalid("spec.schedule", schedule, text))
    elif trouble := schedule_trouble(schedule):
        errors.append(problems.invalid("spec.schedule", schedule, trouble))
    if zone is not None:
        errors += _zone(zone)
    errors += check.none_negative(spec, "spec", "startingDeadlineSeconds")
    errors += check.choice("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), _POLICIES)
    errors += check_job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    errors += check.none_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if len(name) > _MAX_CRON_NAME:
        text = f"must be no more than {_MAX_CRON_NAME} characters"
        errors.append(problems.invalid("metadata.name", name, text))
    return errors


def _zone(zone: str) -> list[FieldError]:
    if not zone:
        return [problems.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    unknown = [problems.invalid("spec.timeZone", zone, f"unknown time zone {zone}")]
    # What can be no zone is not looked for among files.
    if not _ZONE.fullmatch(zone):
        return unknown
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return unknown
    return []


def _job_state(job: JsonObject) -> str:
    status: JsonObject = section(job, "status")
    conditions = {item["type"]: item.get("status") for item in items(status, "conditions")}
    if conditions.get("Complete") == "True":
        return "Complete"
    if conditions.get("Failed") == "True":
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if conditions.get(kind) == "True":
            return kind
    return "Running"


def _job_row(job: JsonObject, now: float) -> list[Any]:
    spec, status = job["spec"], section(job, "status")
    done = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        completions = f"{done}/{spec['completions']}"
    elif spec.get("parallelism", 0) > 1:
        completions = f"{done}/1 of {spec['parallelism']}"
    else:
        completions = f"{done}/1"
    begin, end = status.get("startTime"), status.get("completionTime")
    duration = human_duration((parse_time(end) if end else now) - parse_time(begin)) if begin else ""
    found, images = containers(spec["template"])
    return [
        job["metadata"]["name"],
        _job_state(job),
        completions,
        duration,
        object_age(job, now),
        found,
        images,
        selector_text(spec.get("selector")),
    ]


def _cron_job_row(job: JsonObject, now: float) -> list[Any]:
    spec, status = job["spec"], section(job, "status")
    found, images = containers(spec["jobTemplate"]["spec"]["template"])
    last = status.get("lastScheduleTime")
    return [
        job["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(items(status, "active")),
        age(last, now) if last else NONE,
        object_age(job, now),
        found,
        images,
        selector_text(spec["jobTemplate"]["spec"].get("selector")),
    ]


_WIDE = (wide("Containers"), wide("Images"), wide("Selector"))

STRATEGIES = {
    ("batch", "Job"): Strategy(
        default=_default_job,
        prepare_create=_prepare_job,
        prepare_status_update=keep_spec,
        validate_status_update=check_job_status,
        validate=_validate_job,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=_validate_job_update,
        has_generation=True,
        default_propagation="Orphan",
        orphan_warning=(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
            "to remove them or set propagationPolicy=Orphan to suppress this warning"
        ),
        selectable_fields={"status.successful": number_at("status", "succeeded")},
        unselectable='field label "{}" not supported for Job',
        columns=(NAME, Column("Status"), Column("Completions"), Column("Duration"), AGE, *_WIDE),
        row=_job_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("batch", "CronJob"): Strategy(
        default=_default_cron_job,
        prepare_status_update=keep_spec,
        validate=_validate_cron_job,
        warnings=warn_of_template("spec", "jobTemplate", "spec", "template", named=True),
        validate_update=lambda new, old: _validate_cron_job(new),
        has_generation=True,
        columns=(
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            boolean("Suspend"),
            integer("Active"),
            Column("Last Schedule"),
            AGE,
            *_WIDE,
        ),
        row=_cron_job_row,
        reset_fields=SPEC_AND_STATUS,
    ),
}
