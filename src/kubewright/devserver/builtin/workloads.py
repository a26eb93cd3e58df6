"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their revisions."""

from typing import Any

from kubewright.api import FieldError, label_selector, problems
from kubewright.devserver.builtin.cells import (
    AGE,
    NAME,
    NONE,
    containers,
    labels_text,
    object_age,
    selector_text,
    wide,
)
from kubewright.devserver.builtin.pod_validation import validate_pod_spec
from kubewright.devserver.builtin.templates import default_claim_spec, default_pod_spec
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column, ScaleAccess, Strategy

_IMMUTABLE = "field is immutable"
_ONLY_ALWAYS = ("Always",)
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


def template_of(obj: Wire) -> Wire:
    """Give the Pod template of a workload."""
    template: Wire = obj.setdefault("spec", {}).setdefault("template", {})
    template.setdefault("metadata", {})
    template.setdefault("spec", {})
    return template


def _default_template(obj: Wire) -> None:
    default_pod_spec(template_of(obj)["spec"])


def _default_deployment(obj: Wire) -> None:
    spec: Wire = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy: Wire = spec.get("strategy") or {}
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling: Wire = strategy.get("rollingUpdate") or {}
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
        strategy["rollingUpdate"] = rolling
    spec["strategy"] = strategy
    _default_template(obj)


def _default_replica_set(obj: Wire) -> None:
    obj.setdefault("spec", {}).setdefault("replicas", 1)
    _default_template(obj)


def _default_stateful_set(obj: Wire) -> None:
    spec: Wire = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    update: Wire = spec.get("updateStrategy") or {}
    update.setdefault("type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec["updateStrategy"] = update
    policy: Wire = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", **policy}
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        default_claim_spec(claim.setdefault("spec", {}))
        claim["status"] = {"phase": "Pending", **(claim.get("status") or {})}
    _default_template(obj)


def _default_daemon_set(obj: Wire) -> None:
    spec: Wire = obj.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    update: Wire = spec.get("updateStrategy") or {}
    update.setdefault("type", "RollingUpdate")
    if update["type"] == "RollingUpdate":
        rolling: Wire = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec["updateStrategy"] = update
    _default_template(obj)
    obj["metadata"].setdefault("annotations", {}).setdefault("deprecated.daemonset.template.generation", "1")


def validate_template(obj: Wire) -> list[FieldError]:
    """Check selector and template of a workload, which must fit each other."""
    spec = obj["spec"]
    errors: list[FieldError] = []
    selector = spec.get("selector")
    if not selector:
        errors.append(problems.required("spec.selector", ""))
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(problems.invalid("spec.selector", selector, "empty selector is invalid for deployment"))
    labels = spec["template"]["metadata"].get("labels") or {}
    if selector and not label_selector(selector).matches(labels):
        detail = "`selector` does not match template `labels`"
        errors.append(problems.invalid("spec.template.metadata.labels", labels or None, detail))
    errors += validate_pod_spec(spec["template"]["spec"], "spec.template.spec", restart_policies=_ONLY_ALWAYS)
    return errors


def _non_negative(obj: Wire, *fields: str) -> list[FieldError]:
    found = [(field, obj["spec"].get(field)) for field in fields]
    return [
        problems.invalid(f"spec.{field}", value, "must be greater than or equal to 0")
        for field, value in found
        if isinstance(value, int) and value < 0
    ]


def _validate(obj: Wire) -> list[FieldError]:
    return [
        *_non_negative(obj, "replicas", "minReadySeconds", "revisionHistoryLimit"),
        *validate_template(obj),
    ]


def _validate_update(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate(new)
    if new["spec"].get("selector") != old["spec"].get("selector"):
        errors.append(problems.invalid("spec.selector", new["spec"].get("selector"), _IMMUTABLE))
    return errors


def _validate_stateful_update(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate(new)
    kept = [
        {key: value for key, value in obj["spec"].items() if key not in _STATEFUL_MUTABLE}
        for obj in (new, old)
    ]
    if kept[0] != kept[1]:
        errors.append(problems.forbidden("spec", _STATEFUL_RULE))
    return errors


def _read_scale(obj: Wire) -> tuple[int, int, str]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return spec.get("replicas", 0), status.get("replicas", 0), str(label_selector(spec.get("selector")))


def _write_scale(obj: Wire, replicas: int) -> None:
    obj["spec"]["replicas"] = replicas


SCALE = ScaleAccess(_read_scale, _write_scale)


def _counts(obj: Wire, *names: str) -> list[int]:
    status: Wire = obj.get("status") or {}
    return [status.get(name, 0) for name in names]


def _deployment_row(obj: Wire, now: float) -> list[Any]:
    names, images = containers(obj["spec"]["template"])
    updated, available, ready = _counts(obj, "updatedReplicas", "availableReplicas", "readyReplicas")
    wanted = obj["spec"].get("replicas", 0)
    selector = selector_text(obj["spec"].get("selector"))
    shown = f"{ready}/{wanted}"
    return [obj["metadata"]["name"], shown, updated, available, object_age(obj, now), names, images, selector]


def _replica_set_row(obj: Wire, now: float) -> list[Any]:
    names, images = containers(obj["spec"]["template"])
    current, ready = _counts(obj, "replicas", "readyReplicas")
    wanted, selector = obj["spec"].get("replicas", 0), selector_text(obj["spec"].get("selector"))
    return [obj["metadata"]["name"], wanted, current, ready, object_age(obj, now), names, images, selector]


def _stateful_set_row(obj: Wire, now: float) -> list[Any]:
    names, images = containers(obj["spec"]["template"])
    (ready,) = _counts(obj, "readyReplicas")
    return [
        obj["metadata"]["name"],
        f"{ready}/{obj['spec'].get('replicas', 0)}",
        object_age(obj, now),
        names,
        images,
    ]


def _daemon_set_row(obj: Wire, now: float) -> list[Any]:
    names, images = containers(obj["spec"]["template"])
    counts = _counts(
        obj,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = labels_text(obj["spec"]["template"]["spec"].get("nodeSelector"))
    selector = selector_text(obj["spec"].get("selector"))
    return [obj["metadata"]["name"], *counts, nodes, object_age(obj, now), names, images, selector]


def _revision_row(obj: Wire, now: float) -> list[Any]:
    controllers = [owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")]
    owner = NONE
    if controllers:
        group = controllers[0]["apiVersion"].partition("/")[0]
        owner = f"{controllers[0]['kind'].lower()}.{group}/{controllers[0]['name']}"
    return [obj["metadata"]["name"], owner, obj.get("revision", 0), object_age(obj, now)]


def _integer(name: str) -> Column:
    return Column(name, "integer")


_WIDE = (wide("Containers"), wide("Images"), wide("Selector"))

STRATEGIES = {
    ("apps", "Deployment"): Strategy(
        default=_default_deployment,
        validate=_validate,
        validate_update=_validate_update,
        has_generation=True,
        generation_sees_annotations=True,
        scale=SCALE,
        columns=(NAME, Column("Ready"), Column("Up-to-date"), Column("Available"), AGE, *_WIDE),
        row=_deployment_row,
    ),
    ("apps", "ReplicaSet"): Strategy(
        default=_default_replica_set,
        validate=_validate,
        validate_update=_validate_update,
        has_generation=True,
        scale=SCALE,
        selectable_fields={"status.replicas": lambda obj: str((obj.get("status") or {}).get("replicas", 0))},
        columns=(NAME, _integer("Desired"), _integer("Current"), _integer("Ready"), AGE, *_WIDE),
        row=_replica_set_row,
    ),
    ("apps", "StatefulSet"): Strategy(
        default=_default_stateful_set,
        validate=_validate,
        validate_update=_validate_stateful_update,
        has_generation=True,
        scale=SCALE,
        columns=(NAME, Column("Ready"), AGE, wide("Containers"), wide("Images")),
        row=_stateful_set_row,
    ),
    ("apps", "DaemonSet"): Strategy(
        default=_default_daemon_set,
        validate=_validate,
        validate_update=_validate_update,
        has_generation=True,
        columns=(
            NAME,
            *(_integer(name) for name in ("Desired", "Current", "Ready", "Up-to-date", "Available")),
            Column("Node Selector"),
            AGE,
            *_WIDE,
        ),
        row=_daemon_set_row,
    ),
    ("apps", "ControllerRevision"): Strategy(
        columns=(NAME, Column("Controller"), _integer("Revision"), AGE), row=_revision_row
    ),
}
