"""HorizontalPodAutoscalers: conversion between both versions, validation, defaults; version 2 is stored."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from kubewright.api import FieldError, GroupVersionKind, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pods.containers import resource_name
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, UNSET, cell, printed, some_of
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
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
    """Convert a metric to the form before version 2: the fields of its target or status beside its name."""
    kind = metric.get("type", "")
    field = SOURCES[kind]
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
    """Convert a metric from the form before version 2."""
    kind = metric.get("type", "")
    field = SOURCES[kind]
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


def _json_behavior(behavior: JsonObject) -> JsonObject:
    def lower(value: Any) -> Any:
        if isinstance(value, dict):
            found = cast(JsonObject, value)
            return {key[0].lower() + key[1:]: lower(item) for key, item in found.items() if item is not None}
        if isinstance(value, list):
            return [lower(item) for item in cast(list[Any], value)]
        return value

    return lower(behavior)


_MAX_WINDOW = 3600
_MAX_PERIOD = 1800
_TARGETS = ("Utilization", "Value", "AverageValue")


def check_scaler(scaler: JsonObject) -> list[FieldError]:
    """Check an autoscaler of either version."""
    spec: JsonObject = convert(scaler, V2)["spec"]
    errors: list[FieldError] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    text = "must be greater than or equal to 1"
    if least is not None and least < 1:
        errors.append(problems.invalid("spec.minReplicas", least, text))
    if most == 0:
        errors.append(problems.required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        errors.append(problems.invalid("spec.maxReplicas", most, text))
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        errors.append(problems.invalid("spec.maxReplicas", most, text))
    errors += _reference(section(spec, "scaleTargetRef"), "spec.scaleTargetRef", grouped=True)
    for index, metric in enumerate(items(spec, "metrics")):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(item.get("type") in ("Object", "External") for item in items(spec, "metrics")):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(problems.forbidden("spec.metrics", text))
    for direction in ("scaleUp", "scaleDown"):
        rules: JsonObject | None = section(spec, "behavior").get(direction)
        if rules is not None:
            errors += _rules(rules, f"spec.behavior.{direction}")
    return errors


def _reference(reference: JsonObject, path: str, *, grouped: bool) -> Iterator[FieldError]:
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if not value:
            yield problems.required(f"{path}.{field}")
        else:
            yield from check.named(f"{path}.{field}", value, names.path_segment(value))
    version = reference.get("apiVersion", "")
    core = version == "v1" and reference.get("kind") == "ReplicationController"
    if version.count("/") > 1:
        yield problems.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif grouped and not version.rpartition("/")[0] and not core:
        yield problems.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _rules(rules: JsonObject, path: str) -> Iterator[FieldError]:
    window, where = rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        yield problems.invalid(where, window, "must be greater than or equal to zero")
    if window is not None and window > _MAX_WINDOW:
        yield problems.invalid(where, window, f"must be less than or equal to {_MAX_WINDOW}")
    if (choice := rules.get("selectPolicy")) is not None:
        yield from check.one_of(f"{path}.selectPolicy", choice, ("Disabled", "Max", "Min"))
    if not items(rules, "policies"):
        yield problems.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(items(rules, "policies")):
        where = f"{path}.policies[{index}]"
        yield from check.one_of(f"{where}.type", policy.get("type", ""), ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if policy.get(field, 0) <= 0:
                yield problems.invalid(f"{where}.{field}", policy.get(field, 0), check.NOT_POSITIVE)
        period = policy.get("periodSeconds", 0)
        if period > _MAX_PERIOD:
            text = f"must be less than or equal to {_MAX_PERIOD}"
            yield problems.invalid(f"{where}.periodSeconds", period, text)
    if (tolerance := rules.get("tolerance")) is not None:
        yield from check.resource_quantity(f"{path}.tolerance", "", tolerance)


def _metric(metric: JsonObject, path: str) -> Iterator[FieldError]:
    kind = metric.get("type", "")
    known = sorted(SOURCES)
    if not kind:
        yield problems.required(f"{path}.type", "must specify a metric source type")
    if kind not in SOURCES:
        yield problems.not_supported(f"{path}.type", kind, known)
    given = [field for field in SOURCES.values() if metric.get(field) is not None]
    for field in given[:1]:
        yield from _CHECKS[field](metric[field], f"{path}.{field}")
    if kind not in SOURCES:
        yield problems.not_supported(f"{path}.type", kind, known)
    elif metric.get(SOURCES[kind]) is None:
        text = "must populate information for the given metric source"
        yield problems.required(f"{path}.{SOURCES[kind]}", text)
    for field in given if len(given) != 1 else ():
        if field != SOURCES.get(kind):
            yield problems.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _identifier(metric: JsonObject, path: str) -> Iterator[FieldError]:
    name = metric.get("name", "")
    if not name:
        yield problems.required(f"{path}.name", "must specify a metric name")
    else:
        yield from check.named(f"{path}.name", name, names.path_segment(name))


def _target(target: JsonObject, path: str) -> Iterator[FieldError]:
    kind = target.get("type", "")
    if not kind:
        yield problems.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGETS:
        text = "must be either Utilization, Value, or AverageValue"
        yield problems.invalid(f"{path}.type", kind, text)
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and check.quantity(value) <= check.quantity("0"):
            yield problems.invalid(f"{path}.{field}", str(value), "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield problems.invalid(f"{path}.averageUtilization", share, "must be greater than 0")


def _object(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _reference(section(source, "describedObject"), f"{path}.describedObject", grouped=False)
    yield from _identifier(section(source, "metric"), f"{path}.metric")
    target: JsonObject = section(source, "target")
    yield from _target(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        text = "must set either a target value or averageValue"
        yield problems.required(f"{path}.target.averageValue", text)


def _external(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _identifier(section(source, "metric"), f"{path}.metric")
    target: JsonObject = section(source, "target")
    yield from _target(target, f"{path}.target")
    given = [name for name in ("value", "averageValue") if target.get(name) is not None]
    if not given:
        text = "must set either a target value for metric or a per-pod target"
        yield problems.required(f"{path}.target.averageValue", text)
    if len(given) > 1:
        text = "may not set both a target value for metric and a per-pod target"
        yield problems.forbidden(f"{path}.target.value", text)


def _pods(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _identifier(section(source, "metric"), f"{path}.metric")
    target: JsonObject = section(source, "target")
    yield from _target(target, f"{path}.target")
    if target.get("averageValue") is None:
        text = "must specify a positive target averageValue"
        yield problems.required(f"{path}.target.averageValue", text)


def _resource(source: JsonObject, path: str) -> Iterator[FieldError]:
    if not source.get("name"):
        yield problems.required(f"{path}.name", "must specify a resource name")
    yield from _resource_target(section(source, "target"), f"{path}.target")


def _resource_target(target: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _target(target, path)
    given = [name for name in ("averageUtilization", "averageValue") if target.get(name) is not None]
    if not given:
        text = "must set either a target raw value or a target utilization"
        yield problems.required(f"{path}.averageUtilization", text)
    if len(given) > 1:
        text = "may not set both a target raw value and a target utilization"
        yield problems.forbidden(f"{path}.averageValue", text)


def _container_resource(source: JsonObject, path: str) -> Iterator[FieldError]:
    name, container = source.get("name", ""), source.get("container", "")
    if not name:
        yield problems.required(f"{path}.name", "must specify a resource name")
    else:
        yield from resource_name(f"{path}.name", name)
    if not container:
        yield problems.required(f"{path}.container", "must specify a container")
    else:
        yield from check.named(f"{path}.container", container, names.dns1123_label(container))
    yield from _resource_target(section(source, "target"), f"{path}.target")


_CHECKS: dict[str, Callable[[JsonObject, str], Iterator[FieldError]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


DEFAULT_UTILIZATION = 80


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
        prepare_status_update=keep_spec,
        validate=check_scaler,
        validate_update=lambda new, old: check_scaler(new),
        reset_fields=SPEC_AND_STATUS,
        convert=convert,
        storage_version="v2",
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
