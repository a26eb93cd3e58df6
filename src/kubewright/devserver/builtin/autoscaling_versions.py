"""HorizontalPodAutoscalers between their versions: what version 1 has no field for goes into annotations."""

import json
from typing import Any, cast

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import JsonObject, copy, items, section

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT, CONDITIONS, BEHAVIOR = (
    f"{_PREFIX}{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def convert(scaler: JsonObject, target: GroupVersionKind) -> JsonObject:
    """Rewrite an autoscaler in another version."""
    if scaler["apiVersion"] == target.api_version:
        return scaler
    made: JsonObject = copy(scaler)
    made["apiVersion"] = target.api_version
    if target.version == "v1":
        _to_first(made)
    else:
        _to_second(made)
    return made


def _to_first(scaler: JsonObject) -> None:
    spec, status = scaler["spec"], scaler.setdefault("status", {})
    annotations: dict[str, str] = section(scaler["metadata"], "annotations")
    others: list[JsonObject] = []
    for metric in spec.pop("metrics", None) or ():
        percent = _processor(metric)
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


def _to_second(scaler: JsonObject) -> None:
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
        spec["behavior"] = _wire_behavior(json.loads(behavior))
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


def _processor(metric: JsonObject) -> int | None:
    resource: JsonObject = section(metric, "resource")
    percent = section(resource, "target").get("averageUtilization")
    return percent if metric.get("type") == "Resource" and resource.get("name") == "cpu" else None


def _flat_metric(metric: JsonObject, part: str, prefix: str) -> JsonObject:
    """Write a metric as the versions before 2 did: its target's or state's fields beside its name."""
    kind = metric.get("type", "")
    field = _SOURCES[kind]
    source: JsonObject = section(metric, field)
    values: JsonObject = section(source, part)
    made: JsonObject = {}
    if kind == "Object":
        made["target"] = section(source, "describedObject")
    if "name" in source:
        made["name"] = source["name"]
    if "container" in source:
        made["container"] = source["container"]
    identity: JsonObject = section(source, "metric")
    if identity:
        made["metricName"] = identity.get("name", "")
        if identity.get("selector") is not None:
            made["metricSelector" if kind == "External" else "selector"] = identity["selector"]
    for name, value in (
        ("AverageUtilization", values.get("averageUtilization")),
        ("AverageValue", values.get("averageValue")),
        ("Value", values.get("value")),
    ):
        if value is not None:
            made["averageValue" if kind == "Object" and name == "AverageValue" else f"{prefix}{name}"] = value
    if prefix == "current" and "name" in source:
        made.setdefault("currentAverageValue", "0")
    return {"type": kind, field: made}


def _nested_metric(metric: JsonObject, part: str, prefix: str) -> JsonObject:
    """Read a metric as the versions before 2 wrote it."""
    kind = metric.get("type", "")
    field = _SOURCES[kind]
    flat: JsonObject = section(metric, field)
    made: JsonObject = {name: flat[name] for name in ("name", "container") if name in flat}
    if kind == "Object":
        made["describedObject"] = section(flat, "target")
    if "metricName" in flat:
        selector = flat.get("metricSelector", flat.get("selector"))
        made["metric"] = {"name": flat["metricName"]} | ({"selector": selector} if selector else {})
    values: JsonObject = {}
    for name in ("averageUtilization", "averageValue", "value"):
        flattened = f"{prefix}{name[0].upper()}{name[1:]}"
        value = flat.get(flattened, flat.get(name) if kind == "Object" else None)
        if value is not None and (value != "0" or prefix == "target"):
            values[name] = value
    if part == "target":
        kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}
        values = {"type": next((kinds[name] for name in kinds if name in values), ""), **values}
    return {"type": kind, field: {**made, part: values}}


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


def _wire_behavior(behavior: JsonObject) -> JsonObject:
    def lower(value: Any) -> Any:
        if isinstance(value, dict):
            found = cast(JsonObject, value)
            return {key[0].lower() + key[1:]: lower(item) for key, item in found.items() if item is not None}
        if isinstance(value, list):
            return [lower(item) for item in cast(list[Any], value)]
        return value

    return lower(behavior)
