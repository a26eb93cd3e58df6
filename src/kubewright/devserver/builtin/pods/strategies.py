"""Pods and PodTemplates: lifecycle, and what an update may change."""

from collections.abc import Iterator

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pods.annotations import check_changed_annotations, check_pod_annotations
from kubewright.devserver.builtin.pods.resources import default_pod_resources, keep_pod_resources, qos_class
from kubewright.devserver.builtin.pods.spec import (
    check_pod_spec,
    check_template,
    default_host_ports,
    default_pod_spec,
    default_requests,
    template_of,
)
from kubewright.devserver.builtin.pods.status import COLUMNS, pod_row
from kubewright.devserver.builtin.pods.status_writes import check_pod_status, keep_pod_status, sync_addresses
from kubewright.devserver.builtin.pods.subresources import ENDPOINTS, PARTS, bind
from kubewright.devserver.builtin.pods.warnings import (
    warn_about_pod,
    warn_about_pod_status,
    warn_about_template,
)
from kubewright.devserver.builtin.printing import NAME, Cell, cell, container_cells, labels_text, printed
from kubewright.devserver.builtin.rules import validated
from kubewright.devserver.builtin.writes import flag_at, restore, text_at
from kubewright.devserver.objects import JsonObject, copy, items, section
from kubewright.devserver.strategy import Strategy, TableColumn

# The fields of a spec that may change; each has a check of its own.
_MUTABLE = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_MAX_INT32 = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MATCHERS = ("matchExpressions", "matchFields")
_FORBIDDEN_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _default(pod: JsonObject) -> None:
    spec: JsonObject = pod.setdefault("spec", {})
    default_pod_spec(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        # Only in Pods: templates keep it.
        spec["terminationGracePeriodSeconds"] = 1
    default_requests(spec)
    default_host_ports(spec)
    sync_addresses(section(pod, "status"))
    spec.setdefault("enableServiceLinks", True)


def _prepare_create(pod: JsonObject) -> None:
    default_pod_resources(pod["spec"])
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(pod)}
    pod["status"] = status
    if pod["spec"].get("schedulingGates"):
        text = "Scheduling is blocked due to non-empty scheduling gates"
        gated: JsonObject = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
        gated["lastTransitionTime"] = pod["metadata"].get("creationTimestamp")
        status["conditions"] = [{**gated, "reason": "SchedulingGated", "message": text}]


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    keep_pod_resources(new["spec"], old["spec"])
    new["status"] = copy(section(old, "status"))


def _prepare_status_update(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")
    new["metadata"].pop("deletionTimestamp", None)
    restore(new["metadata"], old["metadata"], "ownerReferences")
    keep_pod_status(new.setdefault("status", {}), section(old, "status"))


def _grace_period(pod: JsonObject, requested: int | None) -> int | None:
    spec, status = section(pod, "spec"), section(pod, "status")
    seconds = spec.get("terminationGracePeriodSeconds", 30) if requested is None else requested
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        seconds = 0
    return 1 if seconds < 0 else int(seconds)


def _validate(pod: JsonObject) -> list[FieldError]:
    errors = [*check_pod_annotations(pod, "metadata.annotations")]
    errors += check_pod_spec(pod["spec"], "spec", pod) + _tokens_without_account(pod["spec"])
    errors += _images_with_whitespace(pod["spec"])
    if pod["spec"].get("ephemeralContainers"):
        errors.append(problems.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if pod["spec"].get("nodeName") and pod["spec"].get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        errors.append(problems.forbidden("spec.nodeName", text))
    return errors


def _validate_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = check_pod_spec(new["spec"], "spec", new) + _tokens_without_account(new["spec"])
    errors += check_changed_annotations(new, old)
    for group in ("containers", "initContainers"):
        after, before = items(new["spec"], group), items(old["spec"], group)
        if len(after) != len(before):
            text = "pod updates may not add or remove containers"
            return [*errors, problems.forbidden(f"spec.{group}", text)]
    errors += _images_with_whitespace(new["spec"])
    if late := _later_deadline(new["spec"], old["spec"]):
        return [*errors, *late]
    errors += _lost_deadline(new["spec"], old["spec"])
    errors += _only_added_tolerations(new["spec"], old["spec"])
    errors += _only_removed_gates(new["spec"], old["spec"])
    if items(old["spec"], "schedulingGates"):
        errors += _only_added_node_selectors(new["spec"], old["spec"])
    if _comparable(new["spec"], old["spec"]) != _comparable(old["spec"], old["spec"]):
        errors.append(problems.forbidden("spec", _FORBIDDEN_CHANGE))
    return errors


def _tokens_without_account(spec: JsonObject) -> list[FieldError]:
    if spec.get("serviceAccountName"):
        return []
    text = "must not be specified when serviceAccountName is not set"
    return [
        problems.forbidden(f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken", text)
        for index, volume in enumerate(items(spec, "volumes"))
        for number, source in enumerate(items(section(volume, "projected"), "sources"))
        if source.get("serviceAccountToken") is not None
    ]


def _images_with_whitespace(spec: JsonObject) -> list[FieldError]:
    text = "must not have leading or trailing whitespace"
    return [
        problems.invalid(f"spec.{group}[{index}].image", item["image"], text)
        for group in ("containers", "initContainers")
        for index, item in enumerate(items(spec, group))
        if item.get("image", "") != item.get("image", "").strip()
    ]


def _later_deadline(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors that end the validation of an update."""
    path = "spec.activeDeadlineSeconds"
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is None:
        return []
    if not 0 <= after <= _MAX_INT32:
        return [problems.invalid(path, after, f"must be between 0 and {_MAX_INT32}, inclusive")]
    if before is not None and after > before:
        return [problems.invalid(path, after, "must be less than or equal to previous value")]
    return []


def _lost_deadline(new: JsonObject, old: JsonObject) -> list[FieldError]:
    if new.get("activeDeadlineSeconds") is not None or old.get("activeDeadlineSeconds") is None:
        return []
    text = "must not update from a positive integer to nil value"
    return [problems.invalid("spec.activeDeadlineSeconds", None, text)]


def _only_added_tolerations(new: JsonObject, old: JsonObject) -> list[FieldError]:
    def fixed(items: list[JsonObject]) -> list[JsonObject]:
        return [{key: value for key, value in item.items() if key != "tolerationSeconds"} for item in items]

    after, before = fixed(items(new, "tolerations")), fixed(items(old, "tolerations"))
    if all(item in after for item in before):
        return []
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [problems.forbidden("spec.tolerations", text)]


def _only_removed_gates(new: JsonObject, old: JsonObject) -> list[FieldError]:
    before = [gate.get("name") for gate in items(old, "schedulingGates")]
    text = "only deletion is allowed, but found new scheduling gate"
    return [
        problems.forbidden(f"spec.schedulingGates[{index}].name", f"{text} '{gate.get('name')}'")
        for index, gate in enumerate(items(new, "schedulingGates"))
        if gate.get("name") not in before
    ]


def _only_added_node_selectors(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Report changes of a Pod with scheduling gates that do not narrow the nodes it may run on."""
    after, before = section(new, "nodeSelector"), section(old, "nodeSelector")
    if any(after.get(name) != value for name, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield problems.invalid("spec.nodeSelector", new.get("nodeSelector"), text)
    terms, old_terms = _node_terms(new), _node_terms(old)
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if old_terms and len(terms) != len(old_terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield check.invalid_struct(path, [_shown_term(term) for term in terms] or None, text)
        return
    for index, (term, old_term) in enumerate(zip(terms, old_terms, strict=False)):
        if not _has_only_additions(term, old_term):
            text = "only additions are allowed (no mutations or deletions)"
            yield check.invalid_struct(f"{path}[{index}]", _shown_term(term), text)


def _node_terms(spec: JsonObject) -> list[JsonObject]:
    return items(section(section(section(spec, "affinity"), "nodeAffinity"), _REQUIRED), "nodeSelectorTerms")


def _has_only_additions(new: JsonObject, old: JsonObject) -> bool:
    if not any(items(old, name) for name in _MATCHERS):
        return not any(items(new, name) for name in _MATCHERS)
    return all(items(new, name)[: len(items(old, name))] == items(old, name) for name in _MATCHERS)


def _shown_term(term: JsonObject) -> JsonObject:
    return {
        f"M{name[1:]}": [check.struct(item, "key operator values", None) for item in items(term, name)]
        or None
        for name in _MATCHERS
    }


def _comparable(spec: JsonObject, old: JsonObject) -> JsonObject:
    kept = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for group in ("containers", "initContainers"):
        if group in kept:
            kept[group] = [{**item, "image": ""} for item in kept[group]]
    if old.get("schedulingGates"):
        kept.pop("nodeSelector", None)
        affinity: JsonObject = kept.pop("affinity", None) or {}
        kept["affinity"] = {name: value for name, value in affinity.items() if name != "nodeAffinity"}
    return kept


def _addresses(pod: JsonObject) -> str:
    return ",".join(item.get("ip", "") for item in items(section(pod, "status"), "podIPs"))


def _validate_template(obj: JsonObject) -> list[FieldError]:
    return check_template(obj["template"], "template")


STRATEGIES = {
    ("", "Pod"): Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=_validate,
        validate_update=_validate_update,
        validate_status_update=check_pod_status,
        warnings=warn_about_pod,
        status_warnings=warn_about_pod_status,
        has_generation=True,
        grace_period=_grace_period,
        returns_deleted=True,
        indexed_field="spec.nodeName",
        selectable_fields={
            "spec.nodeName": text_at("spec", "nodeName"),
            "spec.restartPolicy": text_at("spec", "restartPolicy"),
            "spec.schedulerName": text_at("spec", "schedulerName"),
            "spec.serviceAccountName": text_at("spec", "serviceAccountName"),
            "spec.hostNetwork": flag_at("spec", "hostNetwork"),
            "status.phase": text_at("status", "phase"),
            "status.podIP": text_at("status", "podIP"),
            "status.podIPs": _addresses,
            "status.nominatedNodeName": text_at("status", "nominatedNodeName"),
        },
        columns=COLUMNS,
        row=pod_row,
        reset_fields={
            "": frozenset({("status",)}),
            # A binding makes its writer the owner of no field.
            "binding": frozenset({("spec",), ("metadata",), ("status",)}),
            "ephemeralcontainers": frozenset({("status",)}),
            "resize": frozenset({("status",)}),
            "status": frozenset(
                {("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")}
            ),
        },
        endpoints=ENDPOINTS,
        parts=PARTS,
    ),
    ("", "Binding"): Strategy(endpoints={"": bind}),
    ("", "PodTemplate"): Strategy(
        default=lambda obj: default_pod_spec(template_of(obj)["spec"]),
        **validated(_validate_template),
        warnings=warn_about_template("template"),
        name_check=names.dns1123_subdomain,
        has_generation=True,
        returns_deleted=True,
        **printed(
            NAME,
            *(Cell(TableColumn(found.column.name), found.read) for found in container_cells("template")),
            cell("Pod Labels", lambda obj: labels_text(obj["template"]["metadata"].get("labels"))),
        ),
    ),
}
