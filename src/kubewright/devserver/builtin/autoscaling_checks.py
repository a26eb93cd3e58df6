"""What is refused in a HorizontalPodAutoscaler."""

from collections.abc import Callable, Iterator

from kubewright.api import FieldError, GroupVersionKind, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.autoscaling_versions import convert
from kubewright.devserver.builtin.containers import resource_name
from kubewright.devserver.objects import JsonObject, items, section

V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
# In the order in which the real server looks at them.
SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800
_TARGETS = ("Utilization", "Value", "AverageValue")


def check_scaler(scaler: JsonObject) -> list[FieldError]:
    """Check an autoscaler, in either version."""
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
    if window is not None and window > _LONGEST_WINDOW:
        yield problems.invalid(where, window, f"must be less than or equal to {_LONGEST_WINDOW}")
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
        if period > _LONGEST_PERIOD:
            text = f"must be less than or equal to {_LONGEST_PERIOD}"
            yield problems.invalid(f"{where}.periodSeconds", period, text)
    if (tolerance := rules.get("tolerance")) is not None:
        yield from check.amount(f"{path}.tolerance", "", tolerance)


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
