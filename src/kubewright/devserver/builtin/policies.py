"""Small kinds that steer where and how Pods run: budgets, priorities, runtimes, leases, devices."""

from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, boolean, integer, object_age
from kubewright.devserver.builtin.conditions import check_conditions
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

_HIGHEST_PRIORITY = 1000000000
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def _validate_budget(budget: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(budget, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    errors: list[FieldError] = []
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        errors.append(invalid_struct("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        errors += check.count_or_percent(f"spec.{name}", value)
        errors += check.at_most_all(f"spec.{name}", value)
    errors += check.label_selector("spec.selector", spec.get("selector"))
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        errors += check.one_of("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)
    return errors


def _budget_row(budget: JsonObject, now: float) -> list[Any]:
    spec, status = section(budget, "spec"), section(budget, "status")
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [budget["metadata"]["name"], *bounds, status.get("disruptionsAllowed", 0), object_age(budget, now)]


def _default_priority(obj: JsonObject) -> None:
    obj["preemptionPolicy"] = obj.get("preemptionPolicy") or "PreemptLowerPriority"


def _validate_priority(obj: JsonObject) -> list[FieldError]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    errors: list[FieldError] = []
    if name.startswith("system-"):
        if name not in _SYSTEM_PRIORITIES:
            text = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            errors.append(problems.forbidden("metadata.name", text))
    elif value > _HIGHEST_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        errors.append(problems.forbidden("value", text))
    choices = ("Never", "PreemptLowerPriority")
    return errors + check.one_of("preemptionPolicy", obj.get("preemptionPolicy"), choices)


def _update_priority(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("value", 0) != old.get("value", 0):
        errors.append(problems.forbidden("value", "may not be changed in an update."))
    after, before = new.get("preemptionPolicy"), old.get("preemptionPolicy")
    return errors + check.unchanged("preemptionPolicy", after, before)


def _priority_row(obj: JsonObject, now: float) -> list[Any]:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        bool(obj.get("globalDefault")),
        object_age(obj, now),
        obj.get("preemptionPolicy", "PreemptLowerPriority"),
    ]


def _validate_runtime(obj: JsonObject) -> list[FieldError]:
    handler = obj.get("handler", "")
    if not handler:
        return [problems.required("handler")]
    return check.named("handler", handler, names.dns1123_label(handler))


def _update_runtime(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return check.unchanged("handler", new.get("handler"), old.get("handler"))


def _plain_lease(lease: JsonObject) -> None:
    """Drop what only coordinated elections use, which are off."""
    for name in ("strategy", "preferredHolder"):
        section(lease, "spec").pop(name, None)


def _keep_lease_plain(new: JsonObject, old: JsonObject) -> None:
    _plain_lease(new)


def _validate_lease(lease: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(lease, "spec")
    errors: list[FieldError] = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(problems.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + check.none_negative(spec, "spec", "leaseTransitions")


def _lease_row(lease: JsonObject, now: float) -> list[Any]:
    holder = text_at("spec", "holderIdentity")(lease)
    return [lease["metadata"]["name"], holder, object_age(lease, now)]


def _named_row(obj: JsonObject, now: float) -> list[Any]:
    return [obj["metadata"]["name"], object_age(obj, now)]


def _default_claim(claim: JsonObject) -> None:
    _default_requests(section(claim, "spec"))


def _default_claim_template(template: JsonObject) -> None:
    _default_requests(section(section(template, "spec"), "spec"))


def _default_requests(spec: JsonObject) -> None:
    for request in items(section(spec, "devices"), "requests"):
        for wanted in (request.get("exactly"), *items(request, "firstAvailable")):
            if wanted is None:
                continue
            wanted["allocationMode"] = wanted.get("allocationMode") or "ExactCount"
            if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                wanted["count"] = 1


def _claim_state(claim: JsonObject) -> str:
    status: JsonObject = section(claim, "status")
    if claim["metadata"].get("deletionTimestamp"):
        return "deleted" + (",allocated" if status.get("allocation") else "")
    if not status.get("allocation"):
        return "pending"
    return "allocated,reserved" if status.get("reservedFor") else "allocated"


def _slice_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = section(obj, "spec")
    pool = section(spec, "pool").get("name", "")
    return [
        obj["metadata"]["name"],
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        pool,
        object_age(obj, now),
    ]


def _check_budget_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    status = section(new, "status")
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return [
        *check_conditions(items(status, "conditions"), "status.conditions"),
        *check.none_negative(status, "status", *counts),
    ]


STRATEGIES = {
    ("policy", "PodDisruptionBudget"): Strategy(
        prepare_status_update=keep_spec,
        validate_status_update=_check_budget_status,
        validate=_validate_budget,
        validate_update=lambda new, old: _validate_budget(new),
        # The real server does not look at the names of budgets; storage wants them to fit into a path.
        name_check=names.path_segment,
        has_generation=True,
        allow_unconditional_update=False,
        columns=(
            NAME,
            Column("Min Available"),
            Column("Max Unavailable"),
            integer("Allowed Disruptions"),
            AGE,
        ),
        row=_budget_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("scheduling.k8s.io", "PriorityClass"): Strategy(
        default=_default_priority,
        validate=_validate_priority,
        validate_update=_update_priority,
        has_generation=True,
        columns=(NAME, integer("Value"), boolean("Global-Default"), AGE, Column("PreemptionPolicy")),
        row=_priority_row,
    ),
    ("node.k8s.io", "RuntimeClass"): Strategy(
        validate=_validate_runtime,
        validate_update=_update_runtime,
        allow_unconditional_update=False,
        allow_create_on_update=True,
        columns=(NAME, Column("Handler"), AGE),
        row=lambda obj, now: [obj["metadata"]["name"], obj.get("handler", ""), object_age(obj, now)],
    ),
    ("coordination.k8s.io", "Lease"): Strategy(
        prepare_create=_plain_lease,
        prepare_update=_keep_lease_plain,
        validate=_validate_lease,
        validate_update=lambda new, old: _validate_lease(new),
        allow_unconditional_update=False,
        allow_create_on_update=True,
        columns=(NAME, Column("Holder"), AGE),
        row=_lease_row,
    ),
    ("resource.k8s.io", "DeviceClass"): Strategy(
        has_generation=True, returns_deleted=True, columns=(NAME, AGE), row=_named_row
    ),
    ("resource.k8s.io", "ResourceClaim"): Strategy(
        default=_default_claim,
        validate_update=check.frozen("spec"),
        returns_deleted=True,
        columns=(NAME, Column("State"), AGE),
        row=lambda obj, now: [obj["metadata"]["name"], _claim_state(obj), object_age(obj, now)],
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): Strategy(
        default=_default_claim_template,
        validate_update=check.frozen("spec"),
        returns_deleted=True,
        columns=(NAME, AGE),
        row=_named_row,
    ),
    ("resource.k8s.io", "ResourceSlice"): Strategy(
        has_generation=True,
        returns_deleted=True,
        selectable_fields={
            "spec.nodeName": text_at("spec", "nodeName"),
            "spec.driver": text_at("spec", "driver"),
        },
        unselectable="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
        columns=(NAME, Column("Node"), Column("Driver"), Column("Pool"), AGE),
        row=_slice_row,
    ),
}
