"""HorizontalPodAutoscalers in both of their versions; version 2 is what is stored."""

from collections.abc import Sequence
from typing import Any

from kubewright.devserver.builtin.autoscaling_checks import SOURCES, V2, check_scaler
from kubewright.devserver.builtin.autoscaling_versions import convert
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

DEFAULT_UTILIZATION = 80
_SHOWN_METRICS = 2


def _default(scaler: JsonObject) -> None:
    spec: JsonObject = scaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if scaler["apiVersion"] == "autoscaling/v1":
        _default_first(scaler, spec)
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


def _default_first(scaler: JsonObject, spec: JsonObject) -> None:
    """Fill in a version 1 object: one without any other metric looks at the processors."""
    annotations: dict[str, str] = section(scaler["metadata"], "annotations")
    if spec.get("targetCPUUtilizationPercentage") is None and not any(
        "/metrics" in key for key in annotations
    ):
        spec["targetCPUUtilizationPercentage"] = DEFAULT_UTILIZATION


def _row(scaler: JsonObject, now: float) -> list[Any]:
    scaler = convert(scaler, V2)
    spec, status = scaler["spec"], section(scaler, "status")
    reference: JsonObject = section(spec, "scaleTargetRef")
    return [
        scaler["metadata"]["name"],
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        _metrics(items(spec, "metrics"), items(status, "currentMetrics")),
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        object_age(scaler, now),
    ]


def _metrics(specs: Sequence[JsonObject], statuses: Sequence[JsonObject]) -> str:
    shown: list[str] = []
    for index, spec in enumerate(specs):
        source = SOURCES.get(spec.get("type", ""))
        found: JsonObject = (statuses[index].get(source or "") or {}) if index < len(statuses) else {}
        shown.append(_metric(spec[source], found) if source else "<unknown type>")
    more = len(shown) - _SHOWN_METRICS
    text = ", ".join(shown[:_SHOWN_METRICS]) or NONE
    return f"{text} + {more} more..." if more > 0 else text


def _metric(source: JsonObject, found: JsonObject) -> str:
    target: JsonObject = section(source, "target")
    current: JsonObject = section(found, "current")
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
        validate=check_scaler,
        validate_update=lambda new, old: check_scaler(new),
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
