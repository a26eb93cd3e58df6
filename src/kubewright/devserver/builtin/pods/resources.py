"""Requests and limits of a whole Pod: totals, pod-level resources, QoS class."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, Quantity, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pods.containers import check_claims, check_resources
from kubewright.devserver.objects import JsonObject, copy, items, section

ResourceList = Mapping[str, Quantity]
_ZERO = Quantity("0")
_RESIZABLE = ("cpu", "memory")
_HUGE = "hugepages-"
_QOS_RESOURCES = ("cpu", "memory")


def quantities(wire: Any) -> dict[str, Quantity]:
    """Parse the quantities of a resource list; a missing one is empty."""
    found: Mapping[str, Any] = wire or {}
    return {name: Quantity.from_wire(value) for name, value in found.items()}


def add_resources(total: ResourceList, more: ResourceList) -> dict[str, Quantity]:
    """Return the sum of two resource lists."""
    return {name: total.get(name, _ZERO) + more.get(name, _ZERO) for name in (*total, *more)}


def resource_totals(spec: JsonObject) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """Return the total requests and limits of a Pod, with its overhead."""
    requests, limits = (_total(spec, field) for field in ("requests", "limits"))
    overhead = quantities(spec.get("overhead"))
    if overhead:
        requests = add_resources(requests, overhead)
        limits = {name: value + overhead.get(name, _ZERO) for name, value in limits.items()}
    return requests, limits


def _total(spec: JsonObject, field: str) -> dict[str, Quantity]:
    """Return the pod-level resources, and the totals of the containers for the other resources."""
    return {**container_totals(spec, field), **quantities(section(spec, "resources").get(field))}


def container_totals(spec: JsonObject, field: str) -> dict[str, Quantity]:
    """Return the total requests or limits of the containers.

    Containers and sidecars run together. Other init containers run one after the other, beside the sidecars that
    were started before, so of these only the greatest counts.
    """
    total: dict[str, Quantity] = {}
    for container in items(spec, "containers"):
        total = add_resources(total, quantities(section(container, "resources").get(field)))
    sidecars: dict[str, Quantity] = {}
    greatest: dict[str, Quantity] = {}
    for container in items(spec, "initContainers"):
        own = quantities(section(container, "resources").get(field))
        if container.get("restartPolicy") == "Always":
            sidecars = add_resources(sidecars, own)
            own = sidecars
        else:
            own = add_resources(own, sidecars)
        greatest = {name: max(greatest.get(name, _ZERO), own.get(name, _ZERO)) for name in (*greatest, *own)}
    total = add_resources(total, sidecars)
    return {name: max(total.get(name, _ZERO), greatest.get(name, _ZERO)) for name in (*total, *greatest)}


def default_pod_resources(spec: JsonObject, *, complete: bool = True) -> None:
    """Set the defaults of pod-level resources from those of the containers; templates do not have any.

    Without `complete`, as before Kubernetes 1.37: no requests without limits, and only limits of huge pages.
    """
    pod_level: JsonObject | None = spec.get("resources")
    if not pod_level or not (pod_level.get("limits") or pod_level.get("requests")):
        return
    limits: dict[str, Any] = dict(section(pod_level, "limits"))
    requests: dict[str, Any] = dict(section(pod_level, "requests"))
    for name, total in container_totals(spec, "limits").items():
        if name.startswith(_HUGE) and name not in requests:
            limits.setdefault(name, str(total))
    for name, total in container_totals(spec, "requests").items() if complete or limits else ():
        if name in _RESIZABLE:
            requests.setdefault(name, str(total))
    for name, limit in limits.items():
        if _of_pod(name):
            requests.setdefault(name, limit)
    containers = [
        section(section(container, "resources"), "limits")
        for group in ("containers", "initContainers", "ephemeralContainers")
        for container in items(spec, group)
    ]
    for name, total in container_totals(spec, "limits").items() if complete else ():
        if _of_pod(name) and name in requests and all(name in given for given in containers):
            limits.setdefault(name, str(max(total, check.quantity(requests[name]))))
    for field, given in (("limits", limits), ("requests", requests)):
        if given:
            pod_level[field] = dict(sorted(given.items()))


def _of_pod(name: str) -> bool:
    return name in _RESIZABLE or name.startswith(_HUGE)


def keep_pod_resources(new: JsonObject, old: JsonObject) -> None:
    """Keep the pod-level resources of a spec if an update has none: its client may not know the field."""
    if new.get("resources") is None and old.get("resources") is not None:
        new["resources"] = copy(old["resources"])


def check_pod_resources(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the pod-level resources, which must be enough for the containers."""
    pod_level: JsonObject | None = spec.get("resources")
    if pod_level is None:
        return
    if section(spec, "os").get("name") == "windows":
        yield problems.forbidden(path, "may not be set for a windows pod")
        return
    if pod_level.get("claims") is not None:
        text = "claims may not be set for Resources at pod-level"
        yield problems.forbidden(f"{path}.claims", text)
        yield from check_claims(items(pod_level, "claims"), spec, f"{path}.claims")
    yield from check_resources(pod_level, path, of_pod=True)
    yield from _enough(spec, path)
    limits = quantities(pod_level.get("limits"))
    for index, container in enumerate(items(spec, "containers")):
        for name, limit in quantities(section(container, "resources").get("limits")).items():
            if name in limits and limit > limits[name]:
                text = f"must be less than or equal to pod limits of {limits[name]}"
                yield problems.invalid(f"{path}.containers[{index}][{name}].limits", str(limit), text)


def _enough(spec: JsonObject, path: str) -> Iterator[FieldError]:
    for field in ("requests", "limits"):
        given = quantities(section(section(spec, "resources"), field))
        for name, total in container_totals(spec, field).items():
            if field == "limits" and not name.startswith(_HUGE):
                continue
            if name in given and total > given[name]:
                text = f"must be greater than or equal to aggregate container {field} of {total}"
                yield problems.invalid(f"{path}.{field}[{name}]", str(given[name]), text)


def check_resized_pod(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Check a resize of pod-level resources: only cpu and memory may change, none may be removed."""
    after, before = new.get("resources"), old.get("resources")
    if not (after or before):
        return
    for kind in ("requests", "limits"):
        desired, given = section(after or {}, kind), section(before or {}, kind)
        if any(name in _RESIZABLE and name not in desired for name in given):
            text = f"pod-level resource {kind} cannot be removed"
            yield problems.forbidden(f"spec.resources.{kind}", text)
    if any(_fixed(after, kind) != _fixed(before, kind) for kind in ("requests", "limits")):
        yield problems.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _fixed(resources: JsonObject | None, kind: str) -> JsonObject:
    given = section(resources or {}, kind)
    return {name: check.quantity(value) for name, value in given.items() if name not in _RESIZABLE}


def qos_class(pod: JsonObject) -> str:
    """Return the QoS class of a Pod: Guaranteed, Burstable or BestEffort."""
    spec: JsonObject = section(pod, "spec")
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    # Pod-level resources replace those of the containers.
    for holder in [spec] if spec.get("resources") else containers:
        resources: JsonObject = section(holder, "resources")
        requests = add_resources(requests, _counted(resources.get("requests")))
        own = _counted(resources.get("limits"))
        limits = add_resources(limits, own)
        guaranteed = guaranteed and len(own) == len(_QOS_RESOURCES)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _counted(wire: Any) -> dict[str, Quantity]:
    """Return the quantities that decide the QoS class: CPU and memory, if they are more than zero."""
    return {
        name: value for name, value in quantities(wire).items() if name in _QOS_RESOURCES and value > _ZERO
    }
