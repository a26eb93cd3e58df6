"""Deployments, ReplicaSets, StatefulSets, DaemonSets, their revisions, and ReplicationControllers."""

from typing import Any

from kubewright.api import FieldError, label_selector, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import workload_rows as rows
from kubewright.devserver.builtin.go_structs import invalid_struct, unsupported_struct
from kubewright.devserver.builtin.pod_warnings import warn_of_template
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.builtin.templates import check_template, default_pod_spec, template_of
from kubewright.devserver.builtin.volumes import default_claim_spec
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, keep_spec_and_labels, number_at
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import ScaleAccess, Strategy

_MISMATCH = "`selector` does not match template `labels`"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_STATEFUL_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_RULE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _spec(obj: Wire) -> Wire:
    spec: Wire = obj.setdefault("spec", {})
    return spec


def _default_template(spec: Wire) -> None:
    default_pod_spec(template_of(spec)["spec"])


def _default_deployment(obj: Wire) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy: Wire = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling: Wire = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _default_template(spec)


def _default_replica_set(obj: Wire) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    _default_template(spec)


def _default_stateful_set(obj: Wire) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    update: Wire = spec.setdefault("updateStrategy", {})
    update["type"] = update.get("type") or "RollingUpdate"
    if update["type"] == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    policy: Wire = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for name in ("whenDeleted", "whenScaled"):
        policy[name] = policy.get(name) or "Retain"
    for claim in items(spec, "volumeClaimTemplates"):
        claim["kind"] = claim.get("kind") or "PersistentVolumeClaim"
        claim["apiVersion"] = claim.get("apiVersion") or "v1"
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {})["phase"] = claim["status"].get("phase") or "Pending"
    _default_template(spec)


def _default_daemon_set(obj: Wire) -> None:
    spec = _spec(obj)
    spec.setdefault("revisionHistoryLimit", 10)
    update: Wire = spec.setdefault("updateStrategy", {})
    update["type"] = update.get("type") or "RollingUpdate"
    if update["type"] == "RollingUpdate":
        rolling: Wire = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    _default_template(spec)
    obj["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")


def _default_replication_controller(obj: Wire) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    if spec.get("template") is None:
        return
    template = template_of(spec)
    labels: dict[str, str] | None = template["metadata"].get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(labels)
    default_pod_spec(template["spec"])


def _new_daemon_set(obj: Wire) -> None:
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = "1"


def _changed_daemon_set(new: Wire, old: Wire) -> None:
    annotations: dict[str, str] = new["metadata"].setdefault("annotations", {})
    count = int(section(old["metadata"], "annotations").get(_TEMPLATE_GENERATION, "1"))
    changed = new["spec"].get("template") != old["spec"].get("template")
    annotations[_TEMPLATE_GENERATION] = str(count + changed)


_UNUSABLE = {"deployment": "invalid label selector", "statefulset": ""}
"""What workloads add to the trouble with a selector that cannot be used; DaemonSets add nothing."""


def _check_selector(spec: Wire, kind: str) -> tuple[list[FieldError], bool]:
    """Check the selector; also tell whether it can be matched against labels."""
    selector: Wire | None = spec.get("selector")
    path = "spec.selector"
    if selector is None:
        return ([problems.required(path)] if kind != "daemonset" else []), True
    errors = check.label_selector(path, selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(problems.invalid(path, selector, f"empty selector is invalid for {kind}"))
    if check.selects(selector, {}) is not None:
        return errors, True
    if kind in _UNUSABLE:
        errors.append(invalid_struct(path, selector, _UNUSABLE[kind]))
    return errors, False


def _matches(spec: Wire) -> list[FieldError]:
    selector: Wire | None = spec.get("selector")
    labels: dict[str, str] = section(spec["template"]["metadata"], "labels")
    matched = selector is not None and check.selects(selector, labels)
    path = "spec.template.metadata.labels"
    return [] if matched else [problems.invalid(path, labels or None, _MISMATCH)]


def _check_workload_template(spec: Wire) -> list[FieldError]:
    errors = _matches(spec) + check_template(spec["template"], "spec.template")
    pod: Wire = spec["template"]["spec"]
    if pod.get("restartPolicy") in ("OnFailure", "Never"):
        path = "spec.template.spec.restartPolicy"
        errors.append(problems.not_supported(path, pod["restartPolicy"], ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        text = "activeDeadlineSeconds in ReplicaSet is not Supported"
        errors.append(problems.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return errors


def _validate_deployment(obj: Wire) -> list[FieldError]:
    spec = obj["spec"]
    errors = check.none_negative(spec, "spec", "replicas")
    found, usable = _check_selector(spec, "deployment")
    errors += found
    if usable:
        errors += _check_workload_template(spec)
    errors += _check_strategy(section(spec, "strategy"))
    errors += check.none_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        path = "spec.progressDeadlineSeconds"
        errors += check.not_negative(path, deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            errors.append(problems.invalid(path, deadline, "must be greater than minReadySeconds"))
    return errors


def _check_strategy(strategy: Wire) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [problems.forbidden(path, text)]
    if kind != "RollingUpdate":
        choices = 'supported values: "Recreate", "RollingUpdate"'
        return [unsupported_struct("spec.strategy", {"Type": kind, "RollingUpdate": rolling}, choices)]
    if rolling is None:
        return [problems.required(path, "this should be defaulted and never be nil")]
    surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    errors = check.count_or_percent(f"{path}.maxUnavailable", unavailable)
    errors += check.count_or_percent(f"{path}.maxSurge", surge)
    if _is_zero(unavailable) and _is_zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(problems.invalid(f"{path}.maxUnavailable", unavailable, text))
    return errors + check.at_most_all(f"{path}.maxUnavailable", unavailable)


def _is_zero(amount: Any) -> bool:
    return amount in (0, "0%", None)


def _validate_replica_set(obj: Wire) -> list[FieldError]:
    spec = obj["spec"]
    errors = check.none_negative(spec, "spec", "replicas", "minReadySeconds")
    found, usable = _check_selector(spec, "deployment")
    return errors + found + (_check_workload_template(spec) if usable else [])


def _validate_stateful_set(obj: Wire) -> list[FieldError]:
    spec = obj["spec"]
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        errors.append(problems.invalid("spec.podManagementPolicy", policy, text))
    update: Wire = section(spec, "updateStrategy")
    rolling: Wire | None = update.get("rollingUpdate")
    if update.get("type") == "OnDelete":
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(invalid_struct("spec.updateStrategy.rollingUpdate", rolling, text))
    elif update.get("type") != "RollingUpdate":
        shown = {"Type": update.get("type", ""), "RollingUpdate": rolling}
        errors.append(invalid_struct("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'"))
    elif rolling is not None:
        errors += check.none_negative(rolling, "spec.updateStrategy.rollingUpdate", "partition")
    errors += check.none_negative(spec, "spec", "replicas", "minReadySeconds")
    found, usable = _check_selector(spec, "statefulset")
    errors += found
    return errors + (_check_workload_template(spec) if usable else [])


def _validate_daemon_set(obj: Wire) -> list[FieldError]:
    spec = obj["spec"]
    errors: list[FieldError] = []
    found, usable = _check_selector(spec, "daemonset")
    if usable:
        errors += _matches(spec)
    errors += found
    errors += [error for error in _check_workload_template(spec) if error.detail != _MISMATCH]
    errors += check.none_negative(spec, "spec", "minReadySeconds")
    update: Wire = section(spec, "updateStrategy")
    path = "spec.updateStrategy"
    if update.get("type") == "RollingUpdate":
        rolling: Wire = section(update, "rollingUpdate")
        if _is_zero(rolling.get("maxUnavailable")) and _is_zero(rolling.get("maxSurge")):
            text = "cannot be 0 when maxSurge is 0"
            errors.append(problems.required(f"{path}.rollingUpdate.maxUnavailable", text))
    elif update.get("type") != "OnDelete":
        choices = ("RollingUpdate", "OnDelete")
        errors.append(problems.not_supported(f"{path}.type", update.get("type", ""), choices))
    return errors + check.none_negative(spec, "spec", "revisionHistoryLimit")


def _validate_replication_controller(obj: Wire) -> list[FieldError]:
    spec = obj["spec"]
    errors = check.none_negative(spec, "spec", "minReadySeconds")
    selector: dict[str, str] = section(spec, "selector")
    if not selector:
        errors.append(problems.required("spec.selector"))
    errors += check.none_negative(spec, "spec", "replicas")
    template: Wire | None = spec.get("template")
    if template is None:
        return [*errors, problems.required("spec.template")]
    labels: dict[str, str] = section(template["metadata"], "labels")
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        errors.append(problems.invalid("spec.template.metadata.labels", labels or None, _MISMATCH))
    return errors + check_template(template, "spec.template")


def _same_selector(new: Wire, old: Wire) -> list[FieldError]:
    after, before = new["spec"].get("selector"), old["spec"].get("selector")
    return [] if after == before else [invalid_struct("spec.selector", after or {}, check.IMMUTABLE)]


def _update_deployment(new: Wire, old: Wire) -> list[FieldError]:
    return _validate_deployment(new) + _same_selector(new, old)


def _update_replica_set(new: Wire, old: Wire) -> list[FieldError]:
    return _validate_replica_set(new) + _same_selector(new, old)


def _update_daemon_set(new: Wire, old: Wire) -> list[FieldError]:
    return _validate_daemon_set(new) + _same_selector(new, old)


def _update_stateful_set(new: Wire, old: Wire) -> list[FieldError]:
    fixed = [
        {key: value for key, value in obj["spec"].items() if key not in _STATEFUL_MUTABLE}
        for obj in (new, old)
    ]
    forbidden = [] if fixed[0] == fixed[1] else [problems.forbidden("spec", _STATEFUL_RULE)]
    # The real server leaves out what the forbidden change itself brings about.
    found = [error for error in _validate_stateful_set(new) if not forbidden or error.detail != _MISMATCH]
    return found + forbidden


def _deployment_status(new: Wire, old: Wire) -> list[FieldError]:
    status: Wire = section(new, "status")
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    errors = check.none_negative(status, "status", "observedGeneration", *names, "terminatingReplicas")
    total, path = status.get("replicas", 0), "status"
    for name in names[1:4]:
        if status.get(name, 0) > total:
            text = "cannot be greater than status.replicas"
            errors.append(problems.invalid(f"{path}.{name}", status.get(name, 0), text))
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        text = "cannot be greater than readyReplicas"
        errors.append(problems.invalid("status.availableReplicas", status["availableReplicas"], text))
    return errors


def _read_scale(obj: Wire) -> tuple[int, int, str]:
    spec, status = section(obj, "spec"), section(obj, "status")
    return spec.get("replicas", 0), status.get("replicas", 0), str(label_selector(spec.get("selector")))


def _read_controller_scale(obj: Wire) -> tuple[int, int, str]:
    spec, status = section(obj, "spec"), section(obj, "status")
    selector = label_selector({"matchLabels": section(spec, "selector")})
    return spec.get("replicas", 0), status.get("replicas", 0), str(selector)


def _write_scale(obj: Wire, replicas: int) -> None:
    obj["spec"]["replicas"] = replicas


SCALE = ScaleAccess(_read_scale, _write_scale)

STRATEGIES = {
    ("apps", "Deployment"): Strategy(
        default=_default_deployment,
        validate=_validate_deployment,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=_update_deployment,
        validate_status_update=_deployment_status,
        prepare_status_update=keep_spec_and_labels,
        has_generation=True,
        generation_sees_annotations=True,
        scale=SCALE,
        columns=rows.DEPLOYMENT,
        row=rows.deployment_row,
        reset_fields={
            "": frozenset({("status",)}),
            "status": frozenset({("spec",), ("metadata", "labels")}),
        },
    ),
    ("apps", "ReplicaSet"): Strategy(
        default=_default_replica_set,
        validate=_validate_replica_set,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=_update_replica_set,
        prepare_status_update=keep_spec,
        has_generation=True,
        scale=SCALE,
        columns=rows.REPLICA_SET,
        row=rows.replica_set_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("apps", "StatefulSet"): Strategy(
        default=_default_stateful_set,
        validate=_validate_stateful_set,
        warnings=warn_of_template("spec", "template"),
        validate_update=_update_stateful_set,
        prepare_status_update=keep_spec,
        has_generation=True,
        scale=SCALE,
        columns=rows.STATEFUL_SET,
        row=rows.stateful_set_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("apps", "DaemonSet"): Strategy(
        default=_default_daemon_set,
        prepare_create=_new_daemon_set,
        prepare_update=_changed_daemon_set,
        validate=_validate_daemon_set,
        warnings=warn_of_template("spec", "template"),
        validate_update=_update_daemon_set,
        prepare_status_update=keep_spec,
        has_generation=True,
        columns=rows.DAEMON_SET,
        row=rows.daemon_set_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("apps", "ControllerRevision"): Strategy(
        validate_update=check.frozen("data"), columns=rows.REVISION, row=rows.revision_row
    ),
    ("", "ReplicationController"): Strategy(
        default=_default_replication_controller,
        validate=_validate_replication_controller,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=lambda new, old: _validate_replication_controller(new),
        prepare_status_update=keep_spec,
        has_generation=True,
        # Clients of the first API version expect Pods to outlive their controller.
        default_propagation="Orphan",
        scale=ScaleAccess(_read_controller_scale, _write_scale),
        selectable_fields={"status.replicas": number_at("status", "replicas")},
        columns=rows.REPLICA_SET,
        row=rows.replication_controller_row,
        reset_fields=SPEC_AND_STATUS,
    ),
}
