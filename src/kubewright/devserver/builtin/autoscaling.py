"""HorizontalPodAutoscalers in both of their versions; version 2 is what is stored."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import FieldError, GroupVersionKind, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.autoscaling_versions import convert
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column, Strategy

V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
DEFAULT_UTILIZATION = 80
SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_SHOWN_METRICS = 2


def _default(scaler: Wire) -> None:
    spec: Wire = scaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if scaler["apiVersion"] == "autoscaling/v1":
        _default_first(scaler, spec)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior: Wire | None = spec.get("behavior")
    if behavior is None:
        return
    pods = {"type": "Pods", "value": 4, "periodSeconds": 15}
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    up: Wire = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [pods, percent]}
    down: Wire = {"selectPolicy": "Max", "policies": [dict(percent)]}
    behavior["scaleUp"] = {**up, **section(behavior, "scaleUp")}
    behavior["scaleDown"] = {**down, **section(behavior, "scaleDown")}


def _default_first(scaler: Wire, spec: Wire) -> None:
    """Fill in a version 1 object: one without any other metric looks at the processors."""
    annotations: dict[str, str] = section(scaler["metadata"], "annotations")
    if spec.get("targetCPUUtilizationPercentage") is None and not any(
        "/metrics" in key for key in annotations
    ):
        spec["targetCPUUtilizationPercentage"] = DEFAULT_UTILIZATION


def _validate(scaler: Wire) -> list[FieldError]:
    spec: Wire = convert(scaler, V2)["spec"]
    errors: list[FieldError] = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 1:
        text = "must be greater than or equal to 1"
        errors.append(problems.invalid("spec.minReplicas", least, text))
    if most < 1:
        errors.append(problems.required("spec.maxReplicas", "must be set and greater than 0"))
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        errors.append(problems.invalid("spec.maxReplicas", most, text))
    errors += _check_target(section(spec, "scaleTargetRef"))
    for index, metric in enumerate(items(spec, "metrics")):
        errors += _check_metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(item.get("type") in ("Object", "External") for item in items(spec, "metrics")):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(problems.forbidden("spec.metrics", text))
    return errors


def _check_target(reference: Wire) -> list[FieldError]:
    path = "spec.scaleTargetRef"
    errors = [problems.required(f"{path}.{name}") for name in ("kind", "name") if not reference.get(name)]
    version = reference.get("apiVersion", "")
    core = version == "v1" and reference.get("kind") == "ReplicationController"
    if "/" not in version and not core:
        errors.append(problems.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return errors


def _check_metric(metric: Wire, path: str) -> list[FieldError]:
    kind = metric.get("type", "")
    if not kind:
        return [problems.required(f"{path}.type", "must specify a metric source type")]
    if kind not in SOURCES:
        # The real server says it twice: once for the metric, once for its source.
        return [problems.not_supported(f"{path}.type", kind, tuple(SOURCES))] * 2
    source: Wire | None = metric.get(SOURCES[kind])
    where = f"{path}.{SOURCES[kind]}"
    if source is None:
        return [problems.required(where, "must populate information for the given metric source")]
    errors: list[FieldError] = []
    if "esource" in kind and not source.get("name"):
        errors.append(problems.required(f"{where}.name", "must specify a resource name"))
    return errors + _check_metric_target(
        section(source, "target"), f"{where}.target", resource="esource" in kind
    )


def _check_metric_target(target: Wire, path: str, *, resource: bool) -> list[FieldError]:
    kind = target.get("type", "")
    if not kind:
        return [problems.required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        text = "must be either Utilization, Value, or AverageValue"
        return [problems.invalid(f"{path}.type", kind, text)]
    if resource and target.get("averageUtilization") is None and target.get("averageValue") is None:
        text = "must set either a target raw value or a target utilization"
        return [problems.required(f"{path}.averageUtilization", text)]
    return check.none_negative(target, path, "averageUtilization")


def _row(scaler: Wire, now: float) -> list[Any]:
    scaler = convert(scaler, V2)
    spec, status = scaler["spec"], section(scaler, "status")
    reference: Wire = section(spec, "scaleTargetRef")
    return [
        scaler["metadata"]["name"],
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        _metrics(items(spec, "metrics"), items(status, "currentMetrics")),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        object_age(scaler, now),
    ]


def _metrics(specs: Sequence[Wire], statuses: Sequence[Wire]) -> str:
    shown: list[str] = []
    for index, spec in enumerate(specs):
        source = SOURCES.get(spec.get("type", ""))
        found: Wire = (statuses[index].get(source or "") or {}) if index < len(statuses) else {}
        shown.append(_metric(spec[source], found) if source else "<unknown type>")
    more = len(shown) - _SHOWN_METRICS
    text = ", ".join(shown[:_SHOWN_METRICS]) or NONE
    return f"{text} + {more} more..." if more > 0 else text


def _metric(source: Wire, found: Wire) -> str:
    target: Wire = section(source, "target")
    current: Wire = section(found, "current")
    name = f"{source['name']}: " if "name" in source else ""
    if target.get("averageValue") is not None:
        about = "" if name or "metric" not in source or "describedObject" not in source else " (avg)"
        return f"{name}{current.get('averageValue', '<unknown>')}/{target['averageValue']}{about}"
    if name:
        wanted, now = target.get("averageUtilization"), current.get("averageUtilization")
        left = "<unknown>" if now is None else f"{now}%"
        return f"{name}{left}/{'<auto>' if wanted is None else f'{wanted}%'}"
    return f"{current.get('value', '<unknown>')}/{target.get('value', '0')}"


STRATEGIES = {
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        default=_default,
        prepare_status_update=keep_spec,
        validate=_validate,
        validate_update=lambda new, old: _validate(new),
        columns=(
            NAME,
            Column("Reference"),
            Column("Targets"),
            Column("MinPods"),
            Column("MaxPods"),
            Column("Replicas"),
            AGE,
        ),
        row=_row,
        reset_fields=SPEC_AND_STATUS,
        convert=convert,
        storage_version="v2",
    ),
}
