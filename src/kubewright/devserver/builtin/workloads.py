"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions and ReplicationControllers."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from kubewright.api import FieldError, label_selector, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.deprecations import warn_about_claim_spec
from kubewright.devserver.builtin.field_checks import invalid_struct, unsupported_struct
from kubewright.devserver.builtin.pods.annotations import check_pod_annotations
from kubewright.devserver.builtin.pods.spec import check_template, default_pod_spec, template_of
from kubewright.devserver.builtin.pods.volumes import check_claim_spec
from kubewright.devserver.builtin.pods.warnings import warn_about_template
from kubewright.devserver.builtin.printing import (
    AGE,
    NAME,
    NONE,
    Cell,
    Printed,
    cell,
    container_cells,
    labels_text,
    printed,
    selector_text,
)
from kubewright.devserver.builtin.rules import ChangeCheck, changes, defaults, immutable, validated
from kubewright.devserver.builtin.writes import (
    SPEC_AND_STATUS,
    STATUS_KEEPS_SPEC,
    keep_spec_and_labels,
    number_at,
    restore,
)
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import ScaleAccess, Strategy

_MISMATCH = "`selector` does not match template `labels`"
_STATEFUL_IMMUTABLE = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
_INVALID_SELECTOR = {"deployment": "invalid label selector", "statefulset": ""}
"""What the error about an invalid selector adds; a DaemonSet has no such error."""

_ROLLING_FIELDS = ("maxUnavailable", "maxSurge")
_DEPLOYMENT_COUNTS = ("updatedReplicas", "readyReplicas", "availableReplicas")
_REPLICA_COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_STATEFUL_COUNTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_CONTAINERS = container_cells("spec", "template")
_SELECTOR = cell("Selector", lambda obj: selector_text(obj["spec"].get("selector")), wide=True)
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def check_deployment(obj: JsonObject) -> list[FieldError]:
    """Check a Deployment."""
    spec = obj["spec"]
    errors = check.none_negative(spec, "spec", "replicas")
    found, usable = _selector(spec, "deployment")
    errors += found
    if usable:
        errors += _replicated_template(spec)
    errors += _strategy(section(spec, "strategy"))
    errors += check.none_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        path = "spec.progressDeadlineSeconds"
        errors += check.not_negative(path, deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            errors.append(problems.invalid(path, deadline, "must be greater than minReadySeconds"))
    return errors


def check_replica_set(obj: JsonObject) -> list[FieldError]:
    """Check a ReplicaSet."""
    spec = obj["spec"]
    errors = check.none_negative(spec, "spec", "replicas", "minReadySeconds")
    found, usable = _selector(spec, "deployment")
    return errors + found + (_replicated_template(spec) if usable else [])


def check_stateful_set(obj: JsonObject) -> list[FieldError]:
    """Check a new StatefulSet."""
    spec = obj["spec"]
    errors = _stateful_policies(spec)
    for index, claim in enumerate(items(spec, "volumeClaimTemplates")):
        errors += check_claim_spec(section(claim, "spec"), f"spec.volumeClaimTemplates[{index}].spec")
    service = spec.get("serviceName", "")
    named = check.named("spec.serviceName", service, names.dns1123_label(service)) if service else []
    return errors + _stateful_rest(spec, named)


def _stateful_rest(spec: JsonObject, named: list[FieldError]) -> list[FieldError]:
    errors = check.none_negative(spec, "spec", "replicas", "minReadySeconds")
    errors += check.none_negative(section(spec, "ordinals"), "spec.ordinals", "start")
    errors += named
    found, usable = _selector(spec, "statefulset")
    errors += found
    if usable:
        template, path = _with_claims(spec), "spec.template"
        errors += _matches(spec) + check_template(template, path)
        # The real server checks them once more.
        metadata = section(template, "metadata")
        errors += check.labels(f"{path}.labels", metadata.get("labels"))
        for key in section(metadata, "annotations"):
            errors += check.named(f"{path}.annotations", key, names.qualified_name(key.lower()))
        errors += check_pod_annotations(template, f"{path}.annotations")
    return errors + list(_check_restart(spec, "StatefulSet"))


def _with_claims(spec: JsonObject) -> JsonObject:
    """Return the template with a volume for each claim, as the Pods get it."""
    claims: list[str] = [
        section(claim, "metadata").get("name", "") for claim in items(spec, "volumeClaimTemplates")
    ]
    claims = list(dict.fromkeys(claims))
    template: JsonObject = spec["template"]
    pod = {name: value for name, value in template["spec"].items() if name not in ("hostname", "subdomain")}
    if claims:
        own = [volume for volume in items(pod, "volumes") if volume.get("name", "") not in claims]
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = [*made, *own]
    return {**template, "spec": pod}


def _stateful_policies(spec: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        errors.append(problems.invalid("spec.podManagementPolicy", policy, text))
    update: JsonObject = section(spec, "updateStrategy")
    rolling: JsonObject | None = update.get("rollingUpdate")
    unavailable = (rolling or {}).get("maxUnavailable")
    shown = {"Partition": (rolling or {}).get("partition", 0), "MaxUnavailable": unavailable}
    if update.get("type") == "OnDelete":
        if rolling is not None:
            text = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(invalid_struct("spec.updateStrategy.rollingUpdate", shown, text))
    elif update.get("type") != "RollingUpdate":
        both = {"Type": update.get("type", ""), "RollingUpdate": None if rolling is None else shown}
        errors.append(invalid_struct("spec.updateStrategy", both, "must be 'RollingUpdate' or 'OnDelete'"))
    elif rolling is not None:
        where = "spec.updateStrategy.rollingUpdate"
        errors += check.none_negative(rolling, where, "partition")
        if unavailable is not None:
            where = f"{where}.maxUnavailable"
            errors += check.count_or_percent(where, unavailable)
            if _is_zero(unavailable):
                errors.append(problems.invalid(where, unavailable, "cannot be 0"))
            errors += check.at_most_all(where, unavailable)
    path, retention = "spec.persistentVolumeClaimRetentionPolicy", "persistentVolumeClaimRetentionPolicy"
    for name in ("whenDeleted", "whenScaled") if spec.get(retention) is not None else ():
        errors += check.one_of(f"{path}.{name}", spec[retention].get(name, ""), ("Retain", "Delete"))
    return errors


def check_daemon_set(obj: JsonObject) -> list[FieldError]:
    """Check a DaemonSet."""
    spec = obj["spec"]
    selector: JsonObject | None = spec.get("selector")
    errors = check.label_selector("spec.selector", selector)
    if selector is None or check.selects(selector, {}) is not None:
        errors += _matches(spec)
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(problems.invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += check_template(spec["template"], "spec.template")
    errors += _check_restart(spec, "DaemonSet")
    errors += check.none_negative(spec, "spec", "minReadySeconds")
    errors += _daemon_update(section(spec, "updateStrategy"), "spec.updateStrategy")
    return errors + check.none_negative(spec, "spec", "revisionHistoryLimit")


def _daemon_update(update: JsonObject, path: str) -> Iterator[FieldError]:
    rolling: JsonObject | None = update.get("rollingUpdate")
    if update.get("type") == "OnDelete":
        return
    if update.get("type") != "RollingUpdate":
        shown = {"Type": update.get("type", ""), "RollingUpdate": _rolling(rolling)}
        yield unsupported_struct(path, shown, 'supported values: "RollingUpdate", "OnDelete"')
    elif rolling is None:
        yield problems.required(f"{path}.rollingUpdate")
    else:
        where, counts = f"{path}.rollingUpdate", [rolling.get(name) for name in _ROLLING_FIELDS]
        for test in (check.count_or_percent, check.at_most_all):
            for name, count in zip(_ROLLING_FIELDS, counts, strict=True):
                yield from test(f"{where}.{name}", count)
        zeros = [_is_zero(count) for count in counts]
        if not any(zeros):
            text = "may not be set when maxUnavailable is non-zero"
            yield problems.invalid(f"{where}.maxSurge", counts[1], text)
        elif all(zeros):
            yield problems.required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _rolling(rolling: JsonObject | None) -> JsonObject | None:
    if rolling is None:
        return None
    return check.struct(rolling, "maxUnavailable maxSurge", 0)


def check_replication_controller(new: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """Check a new ReplicationController, or its update."""
    errors, name = _check_controlled_template(new["spec"]), new["metadata"].get("name", "")
    # Declared, so these errors follow the others.
    if old is None and name:
        errors += check.named("metadata.name", name, names.dns1123_subdomain(name))
    return errors + check.none_negative(new["spec"], "spec", "replicas", "minReadySeconds")


def _check_controlled_template(spec: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    selector: dict[str, str] = section(spec, "selector")
    if not selector:
        errors.append(problems.required("spec.selector"))
    template: JsonObject | None = spec.get("template")
    if template is None:
        return [*errors, problems.required("spec.template")]
    labels: dict[str, str] = section(template["metadata"], "labels")
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        shown = template["metadata"].get("labels")
        errors.append(problems.invalid("spec.template.metadata.labels", shown, _MISMATCH))
    errors += check_template(template, "spec.template")
    return errors + list(_check_restart(spec, "ReplicationController"))


def _selector(spec: JsonObject, kind: str) -> tuple[list[FieldError], bool]:
    """Check the selector; also return True if it can be matched against labels."""
    selector: JsonObject | None = spec.get("selector")
    path = "spec.selector"
    if selector is None:
        return [problems.required(path)], True
    errors = check.label_selector(path, selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(problems.invalid(path, selector, f"empty selector is invalid for {kind}"))
    if check.selects(selector, {}) is not None:
        return errors, True
    errors.append(invalid_struct(path, selector, _INVALID_SELECTOR[kind]))
    return errors, False


def _matches(spec: JsonObject) -> list[FieldError]:
    selector: JsonObject | None = spec.get("selector")
    metadata: JsonObject = spec["template"]["metadata"]
    matched = selector is not None and check.selects(selector, section(metadata, "labels"))
    path = "spec.template.metadata.labels"
    return [] if matched else [problems.invalid(path, metadata.get("labels"), _MISMATCH)]


def _replicated_template(spec: JsonObject) -> list[FieldError]:
    errors = _matches(spec) + check_template(spec["template"], "spec.template")
    return errors + list(_check_restart(spec, "ReplicaSet"))


def _check_restart(spec: JsonObject, kind: str) -> Iterator[FieldError]:
    """Check that Pods run until they are deleted."""
    pod: JsonObject = spec["template"]["spec"]
    policy = pod.get("restartPolicy", "")
    if policy != "Always":
        yield problems.not_supported("spec.template.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield problems.forbidden("spec.template.spec.activeDeadlineSeconds", text)


def _strategy(strategy: JsonObject) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [problems.forbidden(path, text)]
    if kind != "RollingUpdate":
        choices = 'supported values: "Recreate", "RollingUpdate"'
        return [
            unsupported_struct("spec.strategy", {"Type": kind, "RollingUpdate": _rolling(rolling)}, choices)
        ]
    if rolling is None:
        return [problems.required(path, "this should be defaulted and never be nil")]
    unavailable, surge = (rolling.get(name) for name in _ROLLING_FIELDS)
    errors = check.count_or_percent(f"{path}.maxUnavailable", unavailable)
    errors += check.count_or_percent(f"{path}.maxSurge", surge)
    if _is_zero(unavailable) and _is_zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        errors.append(problems.invalid(f"{path}.maxUnavailable", unavailable, text))
    return errors + check.at_most_all(f"{path}.maxUnavailable", unavailable)


def _is_zero(count: Any) -> bool:
    """Return True if a count or percentage is zero, or an invalid text."""
    if not isinstance(count, str):
        return not count
    found = re.fullmatch(r"(?:([0-9]+)%|([+-]?[0-9]+))", count, re.ASCII)
    return found is None or not int(found[1] or found[2])


def _counts(*fields: str) -> ChangeCheck:
    """Make the check that these counters of the status are not negative."""
    return lambda new, old: check.none_negative(section(new, "status"), "status", *fields)


def _replica_counts(*fields: str, ready: str = "readyReplicas") -> ChangeCheck:
    """Make the check that these counters are not above the number of replicas, and available not above ready."""

    def run(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
        status = section(new, "status")
        for name in fields:
            if status.get(name, 0) > status.get("replicas", 0):
                text = "cannot be greater than status.replicas"
                yield problems.invalid(f"status.{name}", status.get(name, 0), text)
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            yield problems.invalid("status.availableReplicas", available, f"cannot be greater than {ready}")

    return run


def _collisions(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    count, earlier = (section(obj, "status").get("collisionCount") for obj in (new, old))
    if earlier is not None and (count or 0) < earlier:
        yield problems.invalid("status.collisionCount", count or 0, "cannot be decremented")


_deployment_status = changes(
    _counts("observedGeneration", "replicas", *_DEPLOYMENT_COUNTS),
    _counts("unavailableReplicas", "terminatingReplicas", "collisionCount"),
    _replica_counts(*_DEPLOYMENT_COUNTS),
    _collisions,
)
_replica_set_status = changes(
    _counts("replicas", *_REPLICA_COUNTS, "observedGeneration", "terminatingReplicas"),
    _replica_counts(*_REPLICA_COUNTS),
)
_stateful_set_status = changes(
    _counts("replicas", *_STATEFUL_COUNTS, "observedGeneration", "collisionCount"),
    _replica_counts(*_STATEFUL_COUNTS, ready="status.readyReplicas"),
    _collisions,
)
_daemon_set_status = changes(
    _counts("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
    _counts("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"),
    _counts("collisionCount"),
    _collisions,
)


def _same_selector(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = new["spec"].get("selector"), old["spec"].get("selector")
    return [] if after == before else [invalid_struct("spec.selector", after, check.IMMUTABLE)]


def update_stateful_set(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check the update of a StatefulSet, of which few fields may change."""
    errors = _stateful_policies(new["spec"]) + _stateful_rest(new["spec"], [])
    return errors + [
        problems.invalid(f"spec.{name}", new["spec"].get(name), "field is immutable")
        for name in _STATEFUL_IMMUTABLE
        if new["spec"].get(name) != old["spec"].get(name)
    ]


def _ready(obj: JsonObject) -> str:
    return f"{section(obj, 'status').get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


def _controller(obj: JsonObject) -> str:
    for owner in items(obj["metadata"], "ownerReferences"):
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


def _replica_cells(selector: Cell) -> Printed:
    return printed(
        NAME,
        cell("Desired", "spec.replicas", 0, "integer"),
        cell("Current", "status.replicas", 0, "integer"),
        cell("Ready", "status.readyReplicas", 0, "integer"),
        AGE,
        *_CONTAINERS,
        selector,
    )


def _defaults(*rows: tuple[str, Any]) -> Callable[[JsonObject], None]:
    """Compile rows of defaults, which those of the Pod template follow."""
    fill = defaults(*rows)

    def run(obj: JsonObject) -> None:
        fill(obj)
        default_pod_spec(template_of(obj["spec"])["spec"])

    return run


_DAEMON_SET_DEFAULTS = _defaults(
    ("spec.revisionHistoryLimit", 10),
    ("spec.updateStrategy.type!", "RollingUpdate"),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate.maxUnavailable", 1),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate.maxSurge", 0),
    # With another type, the counts are zero: the real server stores numbers that cannot be absent.
    ("spec.updateStrategy.rollingUpdate?.maxUnavailable", 0),
    ("spec.updateStrategy.rollingUpdate?.maxSurge", 0),
)


def _default_daemon_set(obj: JsonObject) -> None:
    _DAEMON_SET_DEFAULTS(obj)
    obj["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")


_STATEFUL_SET_DEFAULTS = _defaults(
    ("spec.replicas", 1),
    ("spec.revisionHistoryLimit", 10),
    ("spec.podManagementPolicy!", "OrderedReady"),
    ("spec.updateStrategy{!type}.rollingUpdate", {}),
    ("spec.updateStrategy.type!", "RollingUpdate"),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate?.partition", 0),
    ("spec.updateStrategy{type=RollingUpdate}.rollingUpdate?.maxUnavailable", 1),
    ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted!", "Retain"),
    ("spec.persistentVolumeClaimRetentionPolicy.whenScaled!", "Retain"),
    ("spec.volumeClaimTemplates[].spec.volumeMode", "Filesystem"),
    ("spec.volumeClaimTemplates[].status.phase!", "Pending"),
)


def _default_stateful_set(obj: JsonObject) -> None:
    _STATEFUL_SET_DEFAULTS(obj)
    for claim in items(section(obj, "spec"), "volumeClaimTemplates"):
        claim.update(kind="PersistentVolumeClaim", apiVersion="v1")


def _default_replication_controller(obj: JsonObject) -> None:
    spec: JsonObject = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template") is None:
        return
    template = template_of(spec)
    labels: dict[str, str] | None = template["metadata"].get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(labels)
    default_pod_spec(template["spec"])


_warn_about_pods = warn_about_template("spec", "template")


def _warn_about_stateful_set(new: JsonObject, old: JsonObject | None) -> list[str]:
    found = _warn_about_pods(new, old)
    for index, claim in enumerate(items(new["spec"], "volumeClaimTemplates")):
        # kube-apiserver uses these two paths.
        path = f"spec.volumeClaimTemplates[{index}]{'' if old is None else '.Spec'}"
        found += warn_about_claim_spec(section(claim, "spec"), path)
    if (new["spec"].get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


def _new_daemon_set(obj: JsonObject) -> None:
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = "1"


def _changed_daemon_set(new: JsonObject, old: JsonObject) -> None:
    annotations: dict[str, str] = new["metadata"].setdefault("annotations", {})
    count = int(section(old["metadata"], "annotations").get(_TEMPLATE_GENERATION, "1"))
    changed = new["spec"].get("template") != old["spec"].get("template")
    annotations[_TEMPLATE_GENERATION] = str(count + changed)


def _keep_daemon_set(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")
    if known := section(old["metadata"], "annotations").get(_TEMPLATE_GENERATION):
        new["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = known


def _validate_revision(revision: JsonObject) -> list[FieldError]:
    errors = _check_revision_number(revision)
    data = revision.get("data")
    if data is None:
        errors.append(problems.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(problems.required("data", "data must be a valid JSON object"))
    return errors


def _check_revision_number(revision: JsonObject) -> list[FieldError]:
    return check.not_negative("revision", revision.get("revision"))


def _read_scale(obj: JsonObject) -> tuple[int, int, str]:
    spec, status = section(obj, "spec"), section(obj, "status")
    return spec.get("replicas", 0), status.get("replicas", 0), str(label_selector(spec.get("selector")))


def _read_controller_scale(obj: JsonObject) -> tuple[int, int, str]:
    spec, status = section(obj, "spec"), section(obj, "status")
    selector = label_selector({"matchLabels": section(spec, "selector")})
    return spec.get("replicas", 0), status.get("replicas", 0), str(selector)


def _write_scale(obj: JsonObject, replicas: int) -> None:
    obj["spec"]["replicas"] = replicas


SCALE = ScaleAccess(_read_scale, _write_scale)

STRATEGIES = {
    ("apps", "Deployment"): Strategy(
        default=_defaults(
            ("spec.replicas", 1),
            ("spec.revisionHistoryLimit", 10),
            ("spec.progressDeadlineSeconds", 600),
            ("spec.strategy.type!", "RollingUpdate"),
            ("spec.strategy{type=RollingUpdate}.rollingUpdate.maxUnavailable", "25%"),
            ("spec.strategy{type=RollingUpdate}.rollingUpdate.maxSurge", "25%"),
        ),
        **validated(check_deployment, _same_selector),
        warnings=warn_about_template("spec", "template", named=True),
        validate_status_update=_deployment_status,
        prepare_status_update=keep_spec_and_labels,
        has_generation=True,
        generation_sees_annotations=True,
        scale=SCALE,
        reset_fields={
            "": frozenset({("status",)}),
            "status": frozenset({("spec",), ("metadata", "labels")}),
        },
        **printed(
            NAME,
            cell("Ready", _ready),
            cell("Up-to-date", "status.updatedReplicas", 0),
            cell("Available", "status.availableReplicas", 0),
            AGE,
            *_CONTAINERS,
            _SELECTOR,
        ),
    ),
    ("apps", "ReplicaSet"): Strategy(
        default=_defaults(("spec.replicas", 1)),
        **validated(check_replica_set, _same_selector),
        warnings=warn_about_template("spec", "template", named=True),
        validate_status_update=_replica_set_status,
        has_generation=True,
        scale=SCALE,
        **STATUS_KEEPS_SPEC,
        **_replica_cells(_SELECTOR),
    ),
    ("apps", "StatefulSet"): Strategy(
        default=_default_stateful_set,
        validate=check_stateful_set,
        warnings=_warn_about_stateful_set,
        validate_update=update_stateful_set,
        validate_status_update=_stateful_set_status,
        name_check=names.dns1123_label,
        has_generation=True,
        scale=SCALE,
        **STATUS_KEEPS_SPEC,
        **printed(NAME, cell("Ready", _ready), AGE, *_CONTAINERS),
    ),
    ("apps", "DaemonSet"): Strategy(
        default=_default_daemon_set,
        prepare_create=_new_daemon_set,
        prepare_update=_changed_daemon_set,
        **validated(check_daemon_set, first=[_same_selector]),
        warnings=warn_about_template("spec", "template"),
        validate_status_update=_daemon_set_status,
        has_generation=True,
        prepare_status_update=_keep_daemon_set,
        reset_fields=SPEC_AND_STATUS,
        **printed(
            NAME,
            cell("Desired", "status.desiredNumberScheduled", 0, "integer"),
            cell("Current", "status.currentNumberScheduled", 0, "integer"),
            cell("Ready", "status.numberReady", 0, "integer"),
            cell("Up-to-date", "status.updatedNumberScheduled", 0, "integer"),
            cell("Available", "status.numberAvailable", 0, "integer"),
            cell(
                "Node Selector", lambda obj: labels_text(obj["spec"]["template"]["spec"].get("nodeSelector"))
            ),
            AGE,
            *_CONTAINERS,
            _SELECTOR,
        ),
    ),
    ("apps", "ControllerRevision"): Strategy(
        validate=_validate_revision,
        validate_update=changes(lambda new, old: _check_revision_number(new), immutable("data")),
        **printed(NAME, cell("Controller", _controller), cell("Revision", "revision", 0), AGE),
    ),
    ("", "ReplicationController"): Strategy(
        default=_default_replication_controller,
        validate=check_replication_controller,
        validate_update=check_replication_controller,
        warnings=warn_about_template("spec", "template", named=True, of_old=True),
        # The name is checked with the fields that Go types declare rules for.
        name_check=lambda name: [],
        validate_status_update=_replica_set_status,
        has_generation=True,
        # Clients of the first API version expect the Pods to stay.
        default_propagation="Orphan",
        scale=ScaleAccess(_read_controller_scale, _write_scale),
        selectable_fields={"status.replicas": number_at("status", "replicas")},
        **STATUS_KEEPS_SPEC,
        **_replica_cells(cell("Selector", lambda obj: labels_text(obj["spec"].get("selector")), wide=True)),
    ),
}
