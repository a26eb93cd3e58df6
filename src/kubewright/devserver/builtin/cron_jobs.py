"""CronJobs, and the syntax of their schedules."""

import re
import zoneinfo

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.jobs import check_job_spec
from kubewright.devserver.builtin.pods.spec import default_pod_spec, template_of
from kubewright.devserver.builtin.pods.warnings import warn_about_template
from kubewright.devserver.builtin.printing import (
    AGE,
    NAME,
    NONE,
    Cell,
    cell,
    container_cells,
    count,
    printed,
    selector_text,
)
from kubewright.devserver.builtin.rules import defaults, validated
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC
from kubewright.devserver.objects import JsonObject, section
from kubewright.devserver.strategy import Strategy, TableColumn
from kubewright.devserver.strategy.tables import age

_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")
# The name of a Job is that of the CronJob with a hyphen and ten digits, and must fit into a label.
_MAX_CRON_NAME = 52
_POLICIES = ("Allow", "Forbid", "Replace")
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: index for index, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


_DEFAULTS = defaults(
    ("spec.concurrencyPolicy!", "Allow"),
    ("spec.suspend", False),
    ("spec.successfulJobsHistoryLimit", 3),
    ("spec.failedJobsHistoryLimit", 1),
    ("spec.jobTemplate.spec", {}),
    ("spec.jobTemplate.spec.podFailurePolicy?.rules[].onPodConditions[].status!", "True"),
)


def _default_cron_job(job: JsonObject) -> None:
    _DEFAULTS(job)
    default_pod_spec(template_of(job["spec"]["jobTemplate"]["spec"])["spec"])


def _validate_cron_job(job: JsonObject) -> list[FieldError]:
    spec, name = job["spec"], job["metadata"].get("name", "")
    errors: list[FieldError] = []
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if "TZ=" in schedule or "CRON_TZ=" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(problems.invalid("spec.schedule", schedule, text))
    elif schedule and (reason := schedule_error(schedule)):
        errors.append(problems.invalid("spec.schedule", schedule, reason))
    errors += check.none_negative(spec, "spec", "startingDeadlineSeconds")
    if zone is not None:
        errors += _zone(zone)
    errors += check.choice("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), _POLICIES)
    template, path = spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"
    errors += check_job_spec(template, path)
    if (selector := template.get("selector")) is not None:
        errors.append(check.invalid_struct(f"{path}.selector", selector, "`selector` will be auto-generated"))
    if template.get("manualSelector"):
        errors.append(problems.not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    errors += check.none_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if len(name) > _MAX_CRON_NAME:
        text = f"must be no more than {_MAX_CRON_NAME} characters"
        errors.append(problems.invalid("metadata.name", name, text))
    if not schedule:
        # Declared, so it follows the others.
        errors.append(problems.required("spec.schedule"))
    return errors


def _zone(zone: str) -> list[FieldError]:
    if not zone:
        return [problems.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    unknown = [problems.invalid("spec.timeZone", zone, f"unknown time zone {zone}")]
    # Only names that can be a zone are searched for in files.
    if not _ZONE.fullmatch(zone):
        return unknown
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return unknown
    return []


class CronSyntaxError(ValueError):
    """A schedule with a syntax error."""


def schedule_error(schedule: str) -> str:
    """Return the error in a schedule, in the words of the real server's library; empty if it is valid."""
    try:
        _parse(schedule)
    except CronSyntaxError as error:
        return str(error)
    return ""


def _parse(schedule: str) -> None:
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS and not schedule.startswith("@every "):
            raise CronSyntaxError(f"unrecognized descriptor: {schedule}")
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise CronSyntaxError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            _parse_range(part, low, high, names)


def _parse_range(text: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = text.split("/")
    if len(steps) > 1:
        raise CronSyntaxError(f"too many slashes: {text}")
    first, *rest = span.split("-")
    if len(rest) > 1:
        raise CronSyntaxError(f"too many hyphens: {text}")
    if first in ("*", "?"):
        begin, end = low, high
    else:
        begin = _number(first, names)
        end = _number(rest[0], names) if rest else high if steps else begin
    step = _number(steps[0], {}) if steps else 1
    if begin < low:
        raise CronSyntaxError(f"beginning of range ({begin}) below minimum ({low}): {text}")
    if end > high:
        raise CronSyntaxError(f"end of range ({end}) above maximum ({high}): {text}")
    if begin > end:
        raise CronSyntaxError(f"beginning of range ({begin}) beyond end of range ({end}): {text}")
    if step == 0:
        raise CronSyntaxError(f"step of range should be a positive number: {text}")


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    try:
        value = int(text)
    except ValueError:
        reason = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise CronSyntaxError(f"failed to parse int from {text}: {reason}") from None
    if value < 0:
        raise CronSyntaxError(f"negative number ({value}) not allowed: {text}")
    return value


def _last_schedule(job: JsonObject, now: float) -> str:
    last = section(job, "status").get("lastScheduleTime")
    return age(last, now) if last else NONE


def _selector(job: JsonObject) -> str:
    return selector_text(section(job, "spec", "jobTemplate", "spec").get("selector"))


STRATEGIES = {
    ("batch", "CronJob"): Strategy(
        default=_default_cron_job,
        **validated(_validate_cron_job),
        warnings=warn_about_template("spec", "jobTemplate", "spec", "template", named=True),
        has_generation=True,
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Schedule", "spec.schedule"),
            cell("Timezone", "spec.timeZone", NONE),
            cell("Suspend", lambda job: "True" if job["spec"].get("suspend") else "False", kind="boolean"),
            cell("Active", count("status.active"), kind="integer"),
            Cell(TableColumn("Last Schedule"), _last_schedule),
            AGE,
            *container_cells("spec", "jobTemplate", "spec", "template"),
            cell("Selector", _selector, wide=True),
        ),
    ),
}
