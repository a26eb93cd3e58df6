"""Jobs: defaults, validation of the spec and the status, and what kubectl prints."""

import itertools
import re
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.field_checks import invalid_struct
from kubewright.devserver.builtin.pods.spec import check_template, default_pod_spec, template_of
from kubewright.devserver.builtin.pods.warnings import warn_about_template
from kubewright.devserver.builtin.printing import (
    AGE,
    NAME,
    Cell,
    cell,
    container_cells,
    printed,
    selector_text,
)
from kubewright.devserver.builtin.rules import defaults, immutable
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC, number_at
from kubewright.devserver.objects import JsonObject, copy, items, section, words
from kubewright.devserver.objects.clock import parse_time
from kubewright.devserver.strategy import Strategy, TableColumn
from kubewright.devserver.strategy.tables import human_duration

_COUNTS = words(
    "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished "
    "backoffLimitPerIndex maxFailedIndexes"
)
_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_OPERATORS = ("In", "NotIn")
_MANY_COMPLETIONS = 100_000
_MAX_PARALLEL = 10_000
_MAX_RULES = 20
_MAX_CODES = 255
_MAX_MANAGER = 63
_MAX_INDEXES = 64 * 1024
_NEEDS_INDEXED = "requires indexed completion mode"
_STATUS = "status"
_CONDITIONS = f"{_STATUS}.conditions"
# Conditions that exclude each other when one of them changes, that need another one, and that always exclude each other.
_EXCLUSIVE = (("Complete", "Failed"), ("Complete", "FailureTarget"))
_DEPENDENT = (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet"))
_NEVER_TOGETHER = (("SuccessCriteriaMet", "Failed"), ("SuccessCriteriaMet", "FailureTarget"))
_UID = "batch.kubernetes.io/controller-uid"
_UID_LABELS = ("controller-uid", _UID)
_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")


def check_job_spec(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the spec of a Job, without its selector."""
    yield from check.none_negative(spec, path, *_COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        text = "when maxFailedIndexes is specified"
        yield problems.required(f"{path}.backoffLimitPerIndex", text)
    if (manager := spec.get("managedBy")) is not None:
        yield from _managed_by(manager, f"{path}.managedBy")
    mode = spec.get("completionMode")
    yield from check.optional(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield problems.invalid(f"{path}.{name}", spec[name], _NEEDS_INDEXED)
    yield from _policies(spec, path)
    yield from check_template(spec["template"], f"{path}.template")
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _managed_by(name: str, path: str) -> Iterator[FieldError]:
    yield from check.domain_prefixed_path(path, name)
    if len(name.encode()) > _MAX_MANAGER:
        yield problems.too_long(path, _MAX_MANAGER)


def _indexed(spec: JsonObject, path: str) -> Iterator[FieldError]:
    completions, failed, parallel = (
        spec.get(name) for name in ("completions", "maxFailedIndexes", "parallelism")
    )
    if completions is None:
        yield problems.required(f"{path}.completions", "when completion mode is Indexed")
    most = "must be less than or equal to"
    if parallel is not None and parallel > _MANY_COMPLETIONS:
        text = f"{most} {_MANY_COMPLETIONS} when completion mode is Indexed"
        yield problems.invalid(f"{path}.parallelism", parallel, text)
    if failed is not None:
        if completions is not None and failed > completions:
            yield problems.invalid(f"{path}.maxFailedIndexes", failed, f"{most} completions")
        if failed > _MANY_COMPLETIONS:
            yield problems.invalid(f"{path}.maxFailedIndexes", failed, f"{most} {_MANY_COMPLETIONS}")
    if completions is None or completions <= _MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        text = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield problems.required(f"{path}.maxFailedIndexes", text)
    text = f"{most} {_MAX_PARALLEL} when completions are above {_MANY_COMPLETIONS} and used with backoff limit per index"
    for name, value in (("parallelism", parallel), ("maxFailedIndexes", failed)):
        if value is not None and value > _MAX_PARALLEL:
            yield problems.invalid(f"{path}.{name}", value, text)


def _policies(spec: JsonObject, path: str) -> Iterator[FieldError]:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        yield from _failure_policy(spec, items(failure, "rules"), f"{path}.podFailurePolicy.rules")
    if success is not None and spec.get("completionMode") != "Indexed":
        rules = [
            check.struct(rule, "succeededIndexes succeededCount", None) for rule in items(success, "rules")
        ]
        yield invalid_struct(f"{path}.successPolicy", {"Rules": rules or None}, _NEEDS_INDEXED)
    elif success is not None:
        yield from _success_policy(spec, items(success, "rules"), f"{path}.successPolicy.rules")
    choices = ("Failed",) if failure is not None else ("Failed", "TerminatingOrFailed")
    yield from check.optional(f"{path}.podReplacementPolicy", spec.get("podReplacementPolicy"), choices)


def _failure_policy(spec: JsonObject, rules: list[JsonObject], path: str) -> Iterator[FieldError]:
    if len(rules) > _MAX_RULES:
        yield problems.too_many(path, len(rules), _MAX_RULES)
    pod: JsonObject = spec["template"]["spec"]
    known = [item.get("name") for group in ("containers", "initContainers") for item in items(pod, group)]
    for index, rule in enumerate(rules):
        where, action = f"{path}[{index}]", rule.get("action", "")
        if not action:
            yield problems.required(f"{where}.action", f"valid values: {_listed(_ACTIONS)}")
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            text = "requires the backoffLimitPerIndex to be set"
            yield problems.invalid(f"{where}.action", action, text)
        else:
            yield from check.one_of(f"{where}.action", action, _ACTIONS)
        codes, conditions = rule.get("onExitCodes"), items(rule, "onPodConditions")
        if codes is not None:
            yield from _exit_codes(codes, f"{where}.onExitCodes", known)
        yield from _pod_conditions(conditions, f"{where}.onPodConditions")
        if (codes is not None) == bool(conditions):
            neither = "specifying one of OnExitCodes and OnPodConditions is required"
            both = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield problems.invalid(where, problems.OMITTED, both if conditions else neither)


def _pod_conditions(conditions: list[JsonObject], path: str) -> Iterator[FieldError]:
    if len(conditions) > _MAX_RULES:
        yield problems.too_many(path, len(conditions), _MAX_RULES)
    for index, pattern in enumerate(conditions):
        where, kind, status = f"{path}[{index}]", pattern.get("type", ""), pattern.get("status", "")
        yield from check.named(f"{where}.type", kind, names.qualified_name(kind))
        if not status:
            yield problems.required(f"{where}.status", f"valid values: {_listed(_STATUSES)}")
        else:
            yield from check.one_of(f"{where}.status", status, _STATUSES)


def _exit_codes(codes: JsonObject, path: str, known: list[str | None]) -> Iterator[FieldError]:
    operator, values = codes.get("operator", ""), items(codes, "values")
    if not operator:
        yield problems.required(f"{path}.operator", f"valid values: {_listed(_OPERATORS)}")
    else:
        yield from check.one_of(f"{path}.operator", operator, _OPERATORS)
    container = codes.get("containerName")
    if container is not None and container not in known:
        text = "must be one of the container or initContainer names in the pod template"
        yield problems.invalid(f"{path}.containerName", container, text)
    if not values:
        yield problems.invalid(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > _MAX_CODES:
        yield problems.too_many(f"{path}.values", len(values), _MAX_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield problems.invalid(f"{path}.values[{index}]", 0, "must not be 0 for the In operator")
        if value in values[:index]:
            yield problems.duplicate(f"{path}.values[{index}]", value)
    if any(first > second for first, second in itertools.pairwise(values)):
        yield problems.invalid(f"{path}.values", values, "must be ordered")


def _success_policy(spec: JsonObject, rules: list[JsonObject], path: str) -> Iterator[FieldError]:
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        yield problems.required(path, text)
    if len(rules) > _MAX_RULES:
        yield problems.too_many(path, len(rules), _MAX_RULES)
    # The real server panics if completions is not set.
    total: int = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        yield from _success_rule(rule, f"{path}[{index}]", total)


def _success_rule(rule: JsonObject, path: str, total: int) -> Iterator[FieldError]:
    count, text = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and text is None:
        both = "at least one of succeededCount or succeededIndexes must be specified"
        yield problems.required(path, both)
    indexes = 0
    if text is not None:
        where = f"{path}.succeededIndexes"
        if len(text.encode()) > _MAX_INDEXES:
            yield problems.too_long(where, _MAX_INDEXES)
        try:
            indexes = _count_indexes(text, total)
        except ValueError as error:
            yield problems.invalid(where, text, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    where, most = f"{path}.succeededCount", "must be less than or equal to"
    yield from check.not_negative(where, count)
    if count > total:
        yield problems.invalid(where, count, f"{most} {total} (the number of specified completions)")
    if text is not None and count > indexes:
        given = f"{most} {indexes} (the number of indexes in the specified succeededIndexes field)"
        yield problems.invalid(where, count, given)


def _count_indexes(text: str, total: int) -> int:
    """Return the number of indexes in a text such as 1,3-5; raise ValueError if it is invalid."""
    found, last = 0, -1
    for piece in text.split(",") if text else ():
        ends = piece.split("-")
        if len(ends) > 2:
            rule = (
                "violates the requirement that an index interval can have at most two parts separated by '-'"
            )
            raise ValueError(f"the fragment {problems.quoted(piece)} {rule}")
        numbers: list[int] = []
        for end in ends:
            if not re.fullmatch(r"\+?[0-9]+", end):
                raise ValueError(f"cannot convert string to integer for index: {problems.quoted(end)}")
            if int(end) >= total:
                raise ValueError(f"too large index: {problems.quoted(end)}")
            numbers.append(int(end))
        if len(numbers) == 2 and numbers[0] >= numbers[1]:
            raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
        if last >= numbers[0]:
            raise ValueError(f"non-increasing order, previous: {last}, current: {numbers[0]}")
        last = numbers[-1]
        found += last - numbers[0] + 1
    return found


def _restart_policy(spec: JsonObject, path: str) -> Iterator[FieldError]:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        yield problems.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield problems.not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        yield problems.invalid(path, policy, text)


def _listed(choices: tuple[str, ...]) -> str:
    return f"[{' '.join(problems.quoted(choice) for choice in choices)}]"


def check_job_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check an update of a Job's status."""
    return [
        *_status_counts(
            section(new, "status"), section(old, "status"), elastic=_is_elastic(section(new, "spec"))
        ),
        *_uncounted_pods(section(section(new, "status"), "uncountedTerminatedPods")),
        *_status_conditions(new, old),
        *_status_times(new, old),
        *_status_indexes(new, old),
    ]


def _is_elastic(spec: JsonObject) -> bool:
    """Return True if a Job may get fewer indexes, and with them fewer that succeeded."""
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")


def _true_conditions(job: JsonObject) -> set[str]:
    found: Sequence[JsonObject] = items(section(job, "status"), "conditions")
    return {item.get("type", "") for item in found if item.get("status") == "True"}


def _status_counts(status: JsonObject, before: JsonObject, *, elastic: bool) -> Iterator[FieldError]:
    yield from check.none_negative(status, _STATUS, "active", "succeeded", "failed", "ready", "terminating")
    for name in ("failed", "succeeded"):
        if status.get(name, 0) < before.get(name, 0) and (name == "failed" or not elastic):
            yield problems.invalid(
                f"{_STATUS}.{name}", status.get(name, 0), f"cannot decrease the {name} counter"
            )
    active, ready = status.get("active", 0), status.get("ready")
    changed = (active, ready) != (before.get("active", 0), before.get("ready"))
    if changed and ready is not None and ready > active:
        yield problems.invalid(f"{_STATUS}.ready", ready, "cannot set more ready pods than active")


def _uncounted_pods(pods: JsonObject) -> Iterator[FieldError]:
    seen: set[str] = set()
    for part in ("succeeded", "failed"):
        for index, uid in enumerate(items(pods, part)):
            path = f"{_STATUS}.uncountedTerminatedPods.{part}[{index}]"
            if not uid:
                yield problems.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield problems.duplicate(path, uid)
            seen.add(uid)


def _status_conditions(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    after, before = _true_conditions(new), _true_conditions(old)
    changed = after ^ before

    def invalid(text: str) -> FieldError:
        return problems.invalid(_CONDITIONS, problems.OMITTED, text)

    for one, other in _EXCLUSIVE:
        if {one, other} <= after and changed & {one, other}:
            yield invalid(f"cannot set {one}=True and {other}=true conditions")
    for one, other in _DEPENDENT:
        if one in after and other not in after and changed & {one, other}:
            yield invalid(f"cannot set {one}=True condition without the {other}=true condition")
    for one, other in _NEVER_TOGETHER:
        if {one, other} <= after:
            yield invalid(f"cannot set {one}=True and {other}=true conditions")
    if "SuccessCriteriaMet" in before - after:
        yield invalid("cannot disable the SuccessCriteriaMet=True condition")
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in before and kind not in after:
            yield invalid(f"cannot disable the terminal {kind}=True condition")
    ended = bool(after & {"Complete", "Failed"})
    status, was = section(new, "status"), section(old, "status")
    for name in ("active", "terminating"):
        count = status.get(name) or 0
        moved = changed & {"Complete", "Failed"} or count != (was.get(name) or 0)
        if ended and count > 0 and moved:
            yield problems.invalid(f"{_STATUS}.{name}", count, f"{name}>0 is invalid for finished job")


def _status_times(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    status, was = section(new, "status"), section(old, "status")
    after, changed = _true_conditions(new), _true_conditions(new) ^ _true_conditions(old)
    start, end = status.get("startTime"), status.get("completionTime")
    complete, path = "Complete" in after, f"{_STATUS}.completionTime"
    if "Complete" in changed or end != was.get("completionTime"):
        if end and not complete:
            text = "cannot set completionTime when there is no Complete=True condition"
            yield problems.invalid(path, end, text)
        if complete and not end:
            yield problems.required(path, "completionTime is required for Complete jobs")
    if start and end and end < start and (start, end) != (was.get("startTime"), was.get("completionTime")):
        yield problems.invalid(path, end, "must be equal to or after `startTime`")
    ended = changed & {"Complete", "Failed"} or start != was.get("startTime")
    if not start and after & {"Complete", "Failed"} and ended:
        yield problems.required(f"{_STATUS}.startTime", "startTime is required for finished job")
    if end and was.get("completionTime") and end != was["completionTime"]:
        yield problems.invalid(path, end, check.IMMUTABLE)
    if was.get("startTime") and start != was["startTime"] and not section(new, "spec").get("suspend"):
        text = "field is immutable for unsuspended job once set"
        yield problems.invalid(f"{_STATUS}.startTime", start, text)


def _status_indexes(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    spec, status, was = section(new, "spec"), section(new, "status"), section(old, "status")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    if done and done != was.get("completedIndexes", "") and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield problems.invalid(f"{_STATUS}.completedIndexes", done, text)
    if failed is not None and failed != was.get("failedIndexes") and spec.get("backoffLimitPerIndex") is None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield problems.invalid(f"{_STATUS}.failedIndexes", failed, text)


_DEFAULTS = defaults(
    ("spec.completionMode", "NonIndexed"),
    ("spec.suspend", False),
    ("spec.manualSelector", False),
    ("spec.podFailurePolicy?.rules[].onPodConditions[].status!", "True"),
)


def _default_job(job: JsonObject) -> None:
    spec: JsonObject = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2147483647
    _DEFAULTS(job)
    if spec.get("podReplacementPolicy") is None:
        failing = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if failing else "TerminatingOrFailed"
    template = template_of(spec)
    default_pod_spec(template["spec"])
    labels: dict[str, str] | None = template["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        # The same dict: labels that are added to the Pods are added here, too.
        job["metadata"]["labels"] = labels


def _prepare_job(job: JsonObject) -> None:
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels: dict[str, str] = dict(section(template_of(spec)["metadata"], "labels"))
    # A Job without labels has those of its Pods. If these have none either, it gets them when it is read.
    shared = bool(labels) and metadata.get("labels") is template_of(spec)["metadata"].get("labels")
    labels = _generated_labels(metadata) | labels
    template_of(spec)["metadata"]["labels"] = dict(sorted(labels.items()))
    if shared:
        metadata["labels"] = dict(sorted(labels.items()))
    selector: JsonObject = section(spec, "selector")
    matched = {_UID: metadata["uid"], **section(selector, "matchLabels")}
    spec["selector"] = {**selector, "matchLabels": dict(sorted(matched.items()))}


def _generated_labels(metadata: JsonObject) -> dict[str, str]:
    """Return the labels that the Pods of a Job have unless it has a manual selector, in the order of their checks."""
    uid, name = (str(metadata.get(field, "")) for field in ("uid", "name"))
    return {
        label: value
        for labels in zip(_UID_LABELS, _NAME_LABELS, strict=True)
        for label, value in zip(labels, (uid, name), strict=True)
    }


def _validate_job(job: JsonObject) -> list[FieldError]:
    spec = job["spec"]
    selector: JsonObject | None = spec.get("selector")
    errors: list[FieldError] = []
    if not spec.get("manualSelector") and selector is not None:
        expected = _generated_labels(job["metadata"])
        labels: JsonObject = section(spec["template"]["metadata"], "labels")
        for name, value in expected.items():
            if labels.get(name) != value:
                field = f"spec.template.metadata.labels[{name}]"
                errors.append(problems.invalid(field, labels, f"must be '{value}'"))
        if check.selects(selector, expected) is False:
            errors.append(invalid_struct("spec.selector", selector, "`selector` not auto-generated"))
    errors += check_job_spec(spec, "spec")
    errors += _check_selector(spec)
    return errors + _check_last_name(job)


def _check_last_name(job: JsonObject) -> list[FieldError]:
    """Check that the Pod of the last index can have a name."""
    spec = job["spec"]
    errors: list[FieldError] = []
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        name = job["metadata"].get("name", "")
        last = f"{name}-{completions - 1}"
        if names.dns1123_label(last):
            text = f"will not able to create pod with invalid DNS label: {last}"
            errors.append(problems.invalid("metadata.name", name, text))
    return errors


def _check_selector(spec: JsonObject) -> list[FieldError]:
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


_SAME_FIELDS = immutable(
    *(f"spec.{name}" for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex")),
    *("spec.managedBy", "spec.successPolicy"),
)
_SCHEDULING_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields of the Pod template that may change while a Job is suspended; so may its node affinity and resources."""


def _check_template_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check that the Pod template is unchanged, except for where Pods of a suspended Job may run and what they need."""
    template, before = new["spec"]["template"], old["spec"]["template"]
    status = section(old, "status")
    stopped = not status.get("startTime") or "Suspended" in _true_conditions(old)
    if not (old["spec"].get("suspend") and stopped and not status.get("active")):
        return check.unchanged("spec.template", template, before)
    spec, expected = section(template, "spec"), copy(section(before, "spec"))
    for name in _SCHEDULING_DIRECTIVES:
        _take(expected, spec, name)
    affinity, expected_affinity = spec.get("affinity"), expected.setdefault("affinity", {})
    _take(expected_affinity, affinity or {}, "nodeAffinity")
    if affinity is None and not expected_affinity:
        del expected["affinity"]
    for group in ("containers", "initContainers"):
        pairs = list(zip(items(spec, group), items(expected, group), strict=False))
        if len(items(spec, group)) == len(items(expected, group)):
            for container, earlier in pairs:
                if container.get("name") == earlier.get("name"):
                    _take(earlier, container, "resources")
    return check.unchanged("spec.template.spec", spec, expected)


def _take(target: JsonObject, source: JsonObject, name: str) -> None:
    """Make a field of an object what it is in another."""
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _validate_job_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    errors = [*check_job_spec(after, "spec"), *_check_selector(after)]
    completions, earlier = after.get("completions"), before.get("completions")
    if after.get("completionMode") != "Indexed":
        errors += check.unchanged("spec.completions", completions, earlier)
    elif completions not in (None, earlier, after.get("parallelism")):
        text = "can only be modified in tandem with spec.parallelism"
        errors.append(problems.invalid("spec.completions", completions, text))
    if after.get("selector") != before.get("selector"):
        errors.append(invalid_struct("spec.selector", after.get("selector"), check.IMMUTABLE))
    errors += _check_template_update(new, old)
    return errors + list(_SAME_FIELDS(new, old)) + _check_last_name(new)


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


def _completions(job: JsonObject) -> str:
    spec, done = job["spec"], section(job, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    if spec.get("parallelism", 0) > 1:
        return f"{done}/1 of {spec['parallelism']}"
    return f"{done}/1"


def _duration(job: JsonObject, now: float) -> str:
    status = section(job, "status")
    begin, end = status.get("startTime"), status.get("completionTime")
    return human_duration((parse_time(end) if end else now) - parse_time(begin)) if begin else ""


STRATEGIES = {
    ("batch", "Job"): Strategy(
        default=_default_job,
        prepare_create=_prepare_job,
        is_defaulted_when_read=True,
        validate_status_update=check_job_status,
        validate=_validate_job,
        warnings=warn_about_template("spec", "template", named=True),
        validate_update=_validate_job_update,
        has_generation=True,
        default_propagation="Orphan",
        orphan_warning=(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
            "to remove them or set propagationPolicy=Orphan to suppress this warning"
        ),
        selectable_fields={"status.successful": number_at("status", "succeeded")},
        unselectable='field label "{}" not supported for Job',
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Status", _job_state),
            cell("Completions", _completions),
            Cell(TableColumn("Duration"), _duration),
            AGE,
            *container_cells("spec", "template"),
            cell("Selector", lambda job: selector_text(job["spec"].get("selector")), wide=True),
        ),
    ),
}
