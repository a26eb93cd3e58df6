"""HorizontalPodAutoscalers: conversion between both versions, validation, defaults; version 2 is stored."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from kubewright.api import FieldError, GroupVersionKind, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, UNSET, cell, printed, some_of
from kubewright.devserver.builtin.resource_names import container_resource_name
from kubewright.devserver.builtin.rules import (
    absent,
    at_least,
    at_most,
    named,
    one_of,
    required,
    rules,
)
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, restore
from kubewright.devserver.objects import JsonObject, copy, items, section
from kubewright.devserver.strategy import Strategy

V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
# In the order in which the real server checks them.
SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT, CONDITIONS, BEHAVIOR = (
    f"{_PREFIX}{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_IDENTIFIER = rules(("name", named(names.path_segment, required="must specify a metric name")))
_SCALING = rules(
    (
        "stabilizationWindowSeconds?",
        at_least(0, "must be greater than or equal to zero"),
        at_most(3600, "must be less than or equal to 3600"),
    ),
    ("selectPolicy?", one_of("Disabled", "Max", "Min")),
    ("policies", required("must specify at least one Policy")),
    ("policies[].type", one_of("Percent", "Pods")),
    ("policies[].value", at_least(1, check.NOT_POSITIVE)),
    (
        "policies[].periodSeconds",
        at_least(1, check.NOT_POSITIVE),
        at_most(1800, "must be less than or equal to 1800"),
    ),
    ("tolerance?", lambda path, value: check.resource_quantity(path, "", value)),
)
DEFAULT_UTILIZATION = 80
GROUP_MISSING = "apiVersion must specify API group"
"""The detail of an error about a target whose apiVersion has no group."""
_OBJECT_VERSION = re.compile(r"spec\.metrics\[\d+\]\.object\.describedObject\.apiVersion")


def convert(scaler: JsonObject, target: GroupVersionKind) -> JsonObject:
    """Convert an autoscaler to another version; fields that version 1 does not have become annotations."""
    if scaler["apiVersion"] == target.api_version:
        return scaler
    made: JsonObject = copy(scaler)
    made["apiVersion"] = target.api_version
    if target.version == "v1":
        _to_v1(made)
    else:
        _to_v2(made)
    return made


def _to_v1(scaler: JsonObject) -> None:
    spec, status = scaler["spec"], scaler.setdefault("status", {})
    annotations: dict[str, str] = section(scaler["metadata"], "annotations")
    others: list[JsonObject] = []
    for metric in spec.pop("metrics", None) or ():
        percent = _cpu_target(metric)
        if percent is not None and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = percent
        else:
            others.append(_flat_metric(metric, "target", "target"))
    if others:
        annotations[METRICS] = _json(others)
    if behavior := spec.pop("behavior", None):
        annotations[BEHAVIOR] = _json(_go_behavior(behavior))
    current: list[JsonObject] = status.pop("currentMetrics", None) or []
    if current:
        annotations[CURRENT] = _json([_flat_metric(item, "current", "current") for item in current])
        for item in current:
            resource: JsonObject = section(item, "resource")
            used = section(resource, "current").get("averageUtilization")
            if resource.get("name") == "cpu" and used is not None:
                status["currentCPUUtilizationPercentage"] = used
    if conditions := status.pop("conditions", None):
        annotations[CONDITIONS] = _json(conditions)
    status.setdefault("currentReplicas", 0)
    _set_annotations(scaler, annotations)


def _to_v2(scaler: JsonObject) -> None:
    spec, status = scaler["spec"], scaler.setdefault("status", {})
    annotations: dict[str, str] = dict(section(scaler["metadata"], "annotations"))
    metrics = [_nested_metric(item, "target", "target") for item in _read(annotations.pop(METRICS, None))]
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        spec["metrics"] = metrics
    if behavior := annotations.pop(BEHAVIOR, None):
        spec["behavior"] = _json_behavior(json.loads(behavior))
    current = [_nested_metric(item, "current", "current") for item in _read(annotations.pop(CURRENT, None))]
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None and not current:
        resource = {"name": "cpu", "current": {"averageUtilization": used}}
        current = [{"type": "Resource", "resource": resource}]
    status["currentMetrics"] = current or None
    if conditions := _read(annotations.pop(CONDITIONS, None)):
        status["conditions"] = conditions
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    _set_annotations(scaler, annotations)


def _set_annotations(scaler: JsonObject, annotations: dict[str, str]) -> None:
    if annotations:
        scaler["metadata"]["annotations"] = dict(sorted(annotations.items()))
    else:
        scaler["metadata"].pop("annotations", None)


def _read(text: str | None) -> list[JsonObject]:
    return json.loads(text) if text else []


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _cpu_target(metric: JsonObject) -> int | None:
    resource: JsonObject = section(metric, "resource")
    percent = section(resource, "target").get("averageUtilization")
    return percent if metric.get("type") == "Resource" and resource.get("name") == "cpu" else None


def _flat_metric(metric: JsonObject, part: str, prefix: str) -> JsonObject:
    """Convert a metric to the form before version 2: the fields of its target or status beside its name.

    The type does not choose the source: like the real server, convert each source that is set. The status of a metric
    that cannot be read has an empty type and no source.
    """
    made: JsonObject = {"type": metric.get("type", "")}
    for field in SOURCES.values():
        if metric.get(field) is not None:
            made[field] = _flat_source(metric[field], field, part, prefix)
    return made


def _flat_source(source: JsonObject, field: str, part: str, prefix: str) -> JsonObject:
    values: JsonObject = section(source, part)
    made: JsonObject = {}
    if field == "object":
        made["target"] = section(source, "describedObject")
    if "name" in source:
        made["name"] = source["name"]
    if "container" in source:
        made["container"] = source["container"]
    identity: JsonObject = section(source, "metric")
    if identity:
        made["metricName"] = identity.get("name", "")
        if identity.get("selector") is not None:
            made["metricSelector" if field == "external" else "selector"] = identity["selector"]
    for name, value in (
        ("AverageUtilization", values.get("averageUtilization")),
        ("AverageValue", values.get("averageValue")),
        ("Value", values.get("value")),
    ):
        if value is not None:
            flattened = "averageValue" if field == "object" and name == "AverageValue" else f"{prefix}{name}"
            made[flattened] = value
    if prefix == "current":
        made.setdefault(f"current{_always_shown(field)}", "0")
    return made


def _always_shown(field: str) -> str:
    """Return the value in the status of a source that is not a pointer in version 1, so that it is zero if it is not set."""
    return "Value" if field in ("object", "external") else "AverageValue"


def _nested_metric(metric: JsonObject, part: str, prefix: str) -> JsonObject:
    """Convert a metric from the form before version 2, each source that is set."""
    made: JsonObject = {"type": metric.get("type", "")}
    for field in SOURCES.values():
        if metric.get(field) is not None:
            made[field] = _nested_source(metric[field], field, part, prefix)
    return made


def _nested_source(flat: JsonObject, field: str, part: str, prefix: str) -> JsonObject:
    made: JsonObject = {name: flat[name] for name in ("name", "container") if name in flat}
    if field == "object":
        made["describedObject"] = section(flat, "target")
    if "metricName" in flat:
        selector = flat.get("metricSelector", flat.get("selector"))
        made["metric"] = {"name": flat["metricName"]} | ({"selector": selector} if selector else {})
    values: JsonObject = {}
    if prefix == "current":
        always = _always_shown(field)
        values[f"{always[0].lower()}{always[1:]}"] = "0"
    for name in ("averageUtilization", "averageValue", "value"):
        flattened = f"{prefix}{name[0].upper()}{name[1:]}"
        value = flat.get(flattened, flat.get(name) if field == "object" else None)
        if value is not None:
            values[name] = value
    if part == "target":
        kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}
        values = {"type": next((kinds[name] for name in kinds if name in values), ""), **values}
    return {**made, part: values}


def _go_behavior(behavior: JsonObject) -> JsonObject:
    return {"ScaleUp": _go_rules(behavior.get("scaleUp")), "ScaleDown": _go_rules(behavior.get("scaleDown"))}


def _go_rules(rules: JsonObject | None) -> JsonObject | None:
    if rules is None:
        return None
    policies = [
        {"Type": item.get("type"), "Value": item.get("value"), "PeriodSeconds": item.get("periodSeconds")}
        for item in items(rules, "policies")
    ]
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies,
        "Tolerance": rules.get("tolerance"),
    }


def _json_behavior(behavior: JsonObject) -> JsonObject:
    def lower(value: Any) -> Any:
        if isinstance(value, dict):
            found = cast(JsonObject, value)
            return {key[0].lower() + key[1:]: lower(item) for key, item in found.items() if item is not None}
        if isinstance(value, list):
            return [lower(item) for item in cast(list[Any], value)]
        return value

    return lower(behavior)


def _keep_status(scaler: JsonObject, old: JsonObject) -> None:
    """Restore the annotations that stand for the status in version 1."""
    _restore_annotations(scaler, old, CURRENT, CONDITIONS)


def _keep_spec(scaler: JsonObject, old: JsonObject) -> None:
    """Restore the spec in a write of the status, with the annotations that stand for it in version 1."""
    restore(scaler, old, "spec")
    _restore_annotations(scaler, old, METRICS, BEHAVIOR)


def _restore_annotations(scaler: JsonObject, old: JsonObject, *names: str) -> None:
    if scaler["apiVersion"] != "autoscaling/v1":
        return
    before: dict[str, str] = section(old["metadata"], "annotations")
    kept: dict[str, str] = {
        name: text for name, text in section(scaler["metadata"], "annotations").items() if name not in names
    }
    _set_annotations(scaler, kept | {name: before[name] for name in names if name in before})


def _keep_stored(scaler: JsonObject, old: JsonObject, subresource: str) -> None:
    """Restore what a write in version 1 may not change in version 2, which has more detail."""
    restore(scaler, old, "spec" if subresource == "status" else "status")


def check_scaler(scaler: JsonObject) -> list[FieldError]:
    """Check a new autoscaler of either version."""
    return _SCALER("spec", convert(scaler, V2)["spec"])


def update_scaler(scaler: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check a changed autoscaler of either version; what was invalid before may stay."""
    spec, before = (convert(item, V2)["spec"] for item in (scaler, old))
    errors = _SCALER("spec", spec)
    if any(_version_problem(item["object"]) for item in _object_metrics(before)):
        errors = [error for error in errors if not _OBJECT_VERSION.fullmatch(error.field)]
    after, earlier = (section(item, "scaleTargetRef") for item in (spec, before))
    if all(after.get(name, "") == earlier.get(name, "") for name in ("apiVersion", "kind")):
        errors = [error for error in errors if error.field != "spec.scaleTargetRef.apiVersion"]
    return errors


def _object_metrics(spec: JsonObject) -> list[JsonObject]:
    return [
        item
        for item in items(spec, "metrics")
        if item.get("type") == "Object" and item.get("object") is not None
    ]


def _version_problem(source: JsonObject) -> bool:
    return section(source, "describedObject").get("apiVersion", "").count("/") > 1


def _some_group(path: str, reference: JsonObject | None) -> Iterator[FieldError]:
    """Check that the target's apiVersion has a group; the one scalable kind without a group needs none."""
    version, kind = ((reference or {}).get(name, "") for name in ("apiVersion", "kind"))
    if "/" not in version.removeprefix("/") and kind != "ReplicationController":
        yield problems.invalid(f"{path}.apiVersion", version, GROUP_MISSING)


def _replicas(path: str, spec: JsonObject) -> Iterator[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and most < least:
        yield problems.invalid(f"{path}.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _max_replicas(path: str, most: int | None) -> Iterator[FieldError]:
    if not most:
        yield problems.required(path)
    elif most < 0:
        yield problems.invalid(path, most, "must be greater than or equal to 1")


def _zero_replicas(path: str, spec: JsonObject) -> Iterator[FieldError]:
    kinds = {item.get("type") for item in items(spec, "metrics")}
    if spec.get("minReplicas") == 0 and not kinds & {"Object", "External"}:
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield problems.forbidden(f"{path}.metrics", text)


def _group_version(path: str, version: str | None) -> Iterator[FieldError]:
    if version and version.count("/") > 1:
        yield problems.invalid(path, version, f"unexpected GroupVersion string: {version}")


def _metric(path: str, metric: JsonObject) -> Iterator[FieldError]:
    kind = metric.get("type", "")
    known = sorted(SOURCES)
    if not kind:
        yield problems.required(f"{path}.type", "must specify a metric source type")
    if kind not in SOURCES:
        yield problems.not_supported(f"{path}.type", kind, known)
    given = [field for field in SOURCES.values() if metric.get(field) is not None]
    for field in given[:1]:
        yield from _METRICS[field](f"{path}.{field}", metric[field])
    if kind not in SOURCES:
        yield problems.not_supported(f"{path}.type", kind, known)
    elif metric.get(SOURCES[kind]) is None:
        text = "must populate information for the given metric source"
        yield problems.required(f"{path}.{SOURCES[kind]}", text)
    for field in given if len(given) != 1 else ():
        if field != SOURCES.get(kind):
            yield problems.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _target_type(path: str, kind: str | None) -> Iterator[FieldError]:
    if kind not in ("Utilization", "Value", "AverageValue"):
        text = "must be either Utilization, Value, or AverageValue"
        yield problems.invalid(path, kind or "", text)


def _positive(path: str, value: Any) -> Iterator[FieldError]:
    if check.quantity(value) <= check.quantity("0"):
        yield problems.invalid(path, str(value), "must be positive")


_REFERENCE = rules(
    ("kind", named(names.path_segment, required=True)),
    ("name", named(names.path_segment, required=True)),
    ("apiVersion", _group_version),
)
_TARGET = rules(
    ("type", required("must specify a metric target type"), _target_type),
    ("value?", _positive),
    ("averageValue?", _positive),
    ("averageUtilization?", at_least(1, "must be greater than 0")),
)
_RESOURCE_TARGET = rules(
    ("", _TARGET),
    (
        "{!averageUtilization}{!averageValue}.averageUtilization",
        required("must set either a target raw value or a target utilization"),
    ),
    (
        "{averageUtilization}.averageValue",
        absent("may not set both a target raw value and a target utilization"),
    ),
)
_METRICS = {
    "object": rules(
        ("describedObject", _REFERENCE),
        ("metric", _IDENTIFIER),
        ("target", _TARGET),
        (
            "target{!value}{!averageValue}.averageValue",
            required("must set either a target value or averageValue"),
        ),
    ),
    "external": rules(
        ("metric", _IDENTIFIER),
        ("target", _TARGET),
        (
            "target{!value}{!averageValue}.averageValue",
            required("must set either a target value for metric or a per-pod target"),
        ),
        (
            "target{averageValue}.value",
            absent("may not set both a target value for metric and a per-pod target"),
        ),
    ),
    "pods": rules(
        ("metric", _IDENTIFIER),
        ("target", _TARGET),
        ("target.averageValue", required("must specify a positive target averageValue")),
    ),
    "resource": rules(("name", required("must specify a resource name")), ("target", _RESOURCE_TARGET)),
    "containerResource": rules(
        ("name", required("must specify a resource name")),
        ("{name}.name", container_resource_name),
        ("container", named(names.dns1123_label, required="must specify a container")),
        ("target", _RESOURCE_TARGET),
    ),
}
_SCALER = rules(
    ("", _replicas),
    ("scaleTargetRef", _REFERENCE, _some_group),
    ("metrics[]", _metric),
    ("", _zero_replicas),
    ("behavior.scaleUp?", _SCALING),
    ("behavior.scaleDown?", _SCALING),
    # Declared.
    ("minReplicas?", check.not_negative),
    ("maxReplicas", _max_replicas),
)
_SCALER_STATUS = rules(
    ("status.currentReplicas", check.not_negative), ("status.desiredReplicas", check.not_negative)
)


def _default(scaler: JsonObject) -> None:
    spec: JsonObject = scaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if scaler["apiVersion"] == "autoscaling/v1":
        _default_v1(scaler, spec)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior: JsonObject | None = spec.get("behavior")
    if behavior is None:
        return
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    up: JsonObject = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]}
    down: JsonObject = {"selectPolicy": "Max", "policies": [dict(percent)]}
    behavior["scaleUp"] = {**up, **section(behavior, "scaleUp")}
    behavior["scaleDown"] = {**down, **section(behavior, "scaleDown")}


def _default_v1(scaler: JsonObject, spec: JsonObject) -> None:
    """Set the CPU target of a version 1 object that has no other metric."""
    annotations: dict[str, str] = section(scaler["metadata"], "annotations")
    if spec.get("targetCPUUtilizationPercentage") is None and not any(
        "/metrics" in key for key in annotations
    ):
        spec["targetCPUUtilizationPercentage"] = DEFAULT_UTILIZATION


def _scale_target(scaler: JsonObject) -> str:
    reference: JsonObject = section(scaler, "spec", "scaleTargetRef")
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _metrics_text(scaler: JsonObject) -> str:
    scaler = convert(scaler, V2)
    statuses: Sequence[JsonObject] = items(section(scaler, "status"), "currentMetrics")
    shown: list[str] = []
    for index, spec in enumerate(items(scaler["spec"], "metrics")):
        source = SOURCES.get(spec.get("type", ""))
        found: JsonObject = (statuses[index].get(source or "") or {}) if index < len(statuses) else {}
        shown.append(_metric_text(spec[source], found) if source else "<unknown type>")
    return some_of(shown, 2, NONE, ", ")


def _metric_text(source: JsonObject, found: JsonObject) -> str:
    target: JsonObject = section(source, "target")
    current: JsonObject = section(found, "current")
    name = f"{source['name']}: " if "name" in source else ""
    if target.get("averageValue") is not None:
        note = "" if name or "metric" not in source or "describedObject" not in source else " (avg)"
        return f"{name}{current.get('averageValue', '<unknown>')}/{target['averageValue']}{note}"
    if name:
        desired, now = target.get("averageUtilization"), current.get("averageUtilization")
        shown = "<unknown>" if now is None else f"{now}%"
        return f"{name}{shown}/{'<auto>' if desired is None else f'{desired}%'}"
    return f"{current.get('value', '<unknown>')}/{target.get('value', '0')}"


STRATEGIES = {
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        default=_default,
        validate=check_scaler,
        validate_update=update_scaler,
        validate_status_update=_SCALER_STATUS.validate_update,
        prepare_update=_keep_status,
        prepare_status_update=_keep_spec,
        reset_fields=SPEC_AND_STATUS,
        convert=convert,
        restore_stored=_keep_stored,
        storage_version="v2",
        has_generation=True,
        **printed(
            NAME,
            cell("Reference", _scale_target),
            cell("Targets", _metrics_text),
            cell("MinPods", lambda scaler: str(scaler["spec"].get("minReplicas", UNSET))),
            cell("MaxPods", "spec.maxReplicas", 0),
            cell("Replicas", "status.currentReplicas", 0),
            AGE,
        ),
    ),
}
