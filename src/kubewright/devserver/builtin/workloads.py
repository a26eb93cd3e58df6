"""Deployments, ReplicaSets, StatefulSets, DaemonSets, their revisions, and ReplicationControllers."""

from kubewright.api import FieldError, label_selector, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import workload_checks as checks
from kubewright.devserver.builtin import workload_rows as rows
from kubewright.devserver.builtin.pod_warnings import warn_of_template
from kubewright.devserver.builtin.templates import default_pod_spec, template_of
from kubewright.devserver.builtin.volumes import default_claim_spec
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, keep_spec_and_labels, number_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import ScaleAccess, Strategy

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _spec(obj: JsonObject) -> JsonObject:
    spec: JsonObject = obj.setdefault("spec", {})
    return spec


def _default_template(spec: JsonObject) -> None:
    default_pod_spec(template_of(spec)["spec"])


def _default_deployment(obj: JsonObject) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy: JsonObject = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling: JsonObject = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _default_template(spec)


def _default_replica_set(obj: JsonObject) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    _default_template(spec)


def _default_stateful_set(obj: JsonObject) -> None:
    spec = _spec(obj)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    update: JsonObject = spec.setdefault("updateStrategy", {})
    if not update.get("type"):
        update["type"] = "RollingUpdate"
        update.setdefault("rollingUpdate", {})
    if update["type"] == "RollingUpdate" and update.get("rollingUpdate") is not None:
        update["rollingUpdate"].setdefault("partition", 0)
    policy: JsonObject = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for name in ("whenDeleted", "whenScaled"):
        policy[name] = policy.get(name) or "Retain"
    for claim in items(spec, "volumeClaimTemplates"):
        claim["kind"] = claim.get("kind") or "PersistentVolumeClaim"
        claim["apiVersion"] = claim.get("apiVersion") or "v1"
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {})["phase"] = claim["status"].get("phase") or "Pending"
    _default_template(spec)


def _default_daemon_set(obj: JsonObject) -> None:
    spec = _spec(obj)
    spec.setdefault("revisionHistoryLimit", 10)
    update: JsonObject = spec.setdefault("updateStrategy", {})
    update["type"] = update.get("type") or "RollingUpdate"
    if update["type"] == "RollingUpdate":
        rolling: JsonObject = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    _default_template(spec)
    obj["metadata"].setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")


def _default_replication_controller(obj: JsonObject) -> None:
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


_warn_of_pods = warn_of_template("spec", "template")


def _warn_of_stateful_set(new: JsonObject, old: JsonObject | None) -> list[str]:
    found = _warn_of_pods(new, old)
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


def _validate_revision(revision: JsonObject) -> list[FieldError]:
    errors = check.not_negative("revision", revision.get("revision"))
    data = revision.get("data")
    if data is None:
        errors.append(problems.required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(problems.required("data", "data must be a valid JSON object"))
    return errors


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
        default=_default_deployment,
        validate=checks.check_deployment,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=checks.update_deployment,
        validate_status_update=checks.deployment_status,
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
        validate=checks.check_replica_set,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=checks.update_replica_set,
        validate_status_update=checks.replica_set_status,
        prepare_status_update=keep_spec,
        has_generation=True,
        scale=SCALE,
        columns=rows.REPLICA_SET,
        row=rows.replica_set_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("apps", "StatefulSet"): Strategy(
        default=_default_stateful_set,
        validate=checks.check_stateful_set,
        warnings=_warn_of_stateful_set,
        validate_update=checks.update_stateful_set,
        validate_status_update=checks.stateful_set_status,
        name_check=names.dns1123_label,
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
        validate=checks.check_daemon_set,
        warnings=warn_of_template("spec", "template"),
        validate_update=checks.update_daemon_set,
        validate_status_update=checks.daemon_set_status,
        prepare_status_update=keep_spec,
        has_generation=True,
        columns=rows.DAEMON_SET,
        row=rows.daemon_set_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("apps", "ControllerRevision"): Strategy(
        validate=_validate_revision,
        validate_update=check.frozen("data"),
        columns=rows.REVISION,
        row=rows.revision_row,
    ),
    ("", "ReplicationController"): Strategy(
        default=_default_replication_controller,
        validate=checks.check_replication_controller,
        warnings=warn_of_template("spec", "template", named=True),
        validate_update=lambda new, old: checks.check_replication_controller(new),
        validate_status_update=checks.replica_set_status,
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
