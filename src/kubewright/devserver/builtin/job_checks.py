"""What is refused in Jobs, by themselves and as a CronJob makes them."""

import itertools
import re
from collections.abc import Iterator

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.templates import check_template
from kubewright.devserver.objects import JsonObject, items

_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_OPERATORS = ("In", "NotIn")
_MANY = 100_000
_MANY_AT_ONCE = 10_000
_MAX_RULES = 20
_MAX_CODES = 255
_MAX_MANAGER = 63
_MAX_INDEXES = 64 * 1024
_UNINDEXED = "requires indexed completion mode"


def check_job_spec(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check what a Job is to do; its selector is its own."""
    yield from check.none_negative(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        text = "when maxFailedIndexes is specified"
        yield problems.required(f"{path}.backoffLimitPerIndex", text)
    if (manager := spec.get("managedBy")) is not None:
        yield from _manager(manager, f"{path}.managedBy")
    mode = spec.get("completionMode")
    if mode is not None:
        yield from check.one_of(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexes(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield problems.invalid(f"{path}.{name}", spec[name], _UNINDEXED)
    yield from _policies(spec, path)
    yield from check_template(spec["template"], f"{path}.template")
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _manager(name: str, path: str) -> Iterator[FieldError]:
    yield from check.domain_prefixed_path(path, name)
    if len(name.encode()) > _MAX_MANAGER:
        yield problems.too_long(path, _MAX_MANAGER)


def _indexes(spec: JsonObject, path: str) -> Iterator[FieldError]:
    wanted, failed, parallel = (spec.get(name) for name in ("completions", "maxFailedIndexes", "parallelism"))
    if wanted is None:
        yield problems.required(f"{path}.completions", "when completion mode is Indexed")
    most = "must be less than or equal to"
    if parallel is not None and parallel > _MANY:
        text = f"{most} {_MANY} when completion mode is Indexed"
        yield problems.invalid(f"{path}.parallelism", parallel, text)
    if failed is not None:
        if wanted is not None and failed > wanted:
            yield problems.invalid(f"{path}.maxFailedIndexes", failed, f"{most} completions")
        if failed > _MANY:
            yield problems.invalid(f"{path}.maxFailedIndexes", failed, f"{most} {_MANY}")
    if wanted is None or wanted <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        text = f"must be specified when completions is above {_MANY}"
        yield problems.required(f"{path}.maxFailedIndexes", text)
    text = f"{most} {_MANY_AT_ONCE} when completions are above {_MANY} and used with backoff limit per index"
    for name, value in (("parallelism", parallel), ("maxFailedIndexes", failed)):
        if value is not None and value > _MANY_AT_ONCE:
            yield problems.invalid(f"{path}.{name}", value, text)


def _policies(spec: JsonObject, path: str) -> Iterator[FieldError]:
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        yield from _failure_policy(spec, items(failure, "rules"), f"{path}.podFailurePolicy.rules")
    if success is not None and spec.get("completionMode") != "Indexed":
        rules = [
            {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
            for rule in items(success, "rules")
        ]
        yield invalid_struct(f"{path}.successPolicy", {"Rules": rules or None}, _UNINDEXED)
    elif success is not None:
        yield from _success_policy(spec, items(success, "rules"), f"{path}.successPolicy.rules")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        choices = ("Failed",) if failure is not None else ("Failed", "TerminatingOrFailed")
        yield from check.one_of(f"{path}.podReplacementPolicy", replacement, choices)


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
        yield from _conditions(conditions, f"{where}.onPodConditions")
        if (codes is not None) == bool(conditions):
            neither = "specifying one of OnExitCodes and OnPodConditions is required"
            both = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield problems.invalid(where, problems.OMITTED, both if conditions else neither)


def _conditions(conditions: list[JsonObject], path: str) -> Iterator[FieldError]:
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
    # The real server falls over rules of a Job that does not say how much it has to do.
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
    """Count the indexes in a text such as 1,3-5; raise a ValueError that says what is wrong with it."""
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
