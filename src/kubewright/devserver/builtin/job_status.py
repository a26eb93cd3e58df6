"""What is refused in the status of a Job: who writes it need not be the Job controller."""

from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items, section

_PATH = "status"
_CONDITIONS = f"{_PATH}.conditions"
# What cannot be said together, and what cannot be said without another.
_EXCLUSIVE = (
    ("Complete", "Failed", "cannot set Complete=True and Failed=true conditions"),
    ("Complete", "FailureTarget", "cannot set Complete=True and FailureTarget=true conditions"),
)
_NEEDED = (
    ("Failed", "FailureTarget", "cannot set Failed=True condition without the FailureTarget=true condition"),
    (
        "Complete",
        "SuccessCriteriaMet",
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    ),
)
_NEVER = (
    ("SuccessCriteriaMet", "Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    (
        "SuccessCriteriaMet",
        "FailureTarget",
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    ),
)


def check_job_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check how a Job is said to stand, and that it has not come back from where it ended."""
    return [
        *_counts(section(new, "status"), section(old, "status"), elastic=_is_elastic(section(new, "spec"))),
        *_uncounted(section(section(new, "status"), "uncountedTerminatedPods")),
        *_conditions(new, old),
        *_times(new, old),
        *_indexes(new, old),
    ]


def _is_elastic(spec: JsonObject) -> bool:
    """Tell whether a Job may get fewer indexes, and with them fewer that succeeded."""
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")


def _holding(job: JsonObject) -> set[str]:
    found: Sequence[JsonObject] = items(section(job, "status"), "conditions")
    return {item.get("type", "") for item in found if item.get("status") == "True"}


def _counts(status: JsonObject, before: JsonObject, *, elastic: bool) -> Iterator[FieldError]:
    yield from check.none_negative(status, _PATH, "active", "succeeded", "failed", "ready", "terminating")
    for name in ("failed", "succeeded"):
        if status.get(name, 0) < before.get(name, 0) and (name == "failed" or not elastic):
            yield problems.invalid(
                f"{_PATH}.{name}", status.get(name, 0), f"cannot decrease the {name} counter"
            )
    active, ready = status.get("active", 0), status.get("ready")
    changed = (active, ready) != (before.get("active", 0), before.get("ready"))
    if changed and ready is not None and ready > active:
        yield problems.invalid(f"{_PATH}.ready", ready, "cannot set more ready pods than active")


def _uncounted(pods: JsonObject) -> Iterator[FieldError]:
    seen: set[str] = set()
    for part in ("succeeded", "failed"):
        for index, uid in enumerate(items(pods, part)):
            path = f"{_PATH}.uncountedTerminatedPods.{part}[{index}]"
            if not uid:
                yield problems.invalid(path, uid, "must not be empty")
            elif uid in seen:
                yield problems.duplicate(path, uid)
            seen.add(uid)


def _conditions(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    after, before = _holding(new), _holding(old)
    changed = after ^ before

    def refused(text: str) -> FieldError:
        return problems.invalid(_CONDITIONS, problems.OMITTED, text)

    for one, other, text in _EXCLUSIVE:
        if {one, other} <= after and changed & {one, other}:
            yield refused(text)
    for one, other, text in _NEEDED:
        if one in after and other not in after and changed & {one, other}:
            yield refused(text)
    for one, other, text in _NEVER:
        if {one, other} <= after:
            yield refused(text)
    if "SuccessCriteriaMet" in before - after:
        yield refused("cannot disable the SuccessCriteriaMet=True condition")
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in before and kind not in after:
            yield refused(f"cannot disable the terminal {kind}=True condition")
    ended = bool(after & {"Complete", "Failed"})
    status, was = section(new, "status"), section(old, "status")
    for name in ("active", "terminating"):
        count = status.get(name) or 0
        moved = changed & {"Complete", "Failed"} or count != (was.get(name) or 0)
        if ended and count > 0 and moved:
            yield problems.invalid(f"{_PATH}.{name}", count, f"{name}>0 is invalid for finished job")


def _times(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    status, was = section(new, "status"), section(old, "status")
    after, changed = _holding(new), _holding(new) ^ _holding(old)
    start, end = status.get("startTime"), status.get("completionTime")
    complete, path = "Complete" in after, f"{_PATH}.completionTime"
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
        yield problems.required(f"{_PATH}.startTime", "startTime is required for finished job")
    if end and was.get("completionTime") and end != was["completionTime"]:
        yield problems.invalid(path, end, check.IMMUTABLE)
    if was.get("startTime") and start != was["startTime"] and not section(new, "spec").get("suspend"):
        text = "field is immutable for unsuspended job once set"
        yield problems.invalid(f"{_PATH}.startTime", start, text)


def _indexes(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    spec, status, was = section(new, "spec"), section(new, "status"), section(old, "status")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    if done and done != was.get("completedIndexes", "") and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield problems.invalid(f"{_PATH}.completedIndexes", done, text)
    if failed is not None and failed != was.get("failedIndexes") and spec.get("backoffLimitPerIndex") is None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield problems.invalid(f"{_PATH}.failedIndexes", failed, text)
