"""A Pod's quality of service: how its requests and limits rank it when a node runs out."""

from kubewright.devserver.objects import Wire

_COUNTED = ("cpu", "memory")


def quality_of(pod: Wire) -> str:
    """Tell Guaranteed, Burstable or BestEffort."""
    spec: Wire = pod.get("spec") or {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    any_given, all_equal = False, True
    for container in containers:
        resources: Wire = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        any_given = any_given or any(name in requests or name in limits for name in _COUNTED)
        all_equal = all_equal and all(
            name in limits and requests.get(name) == limits[name] for name in _COUNTED
        )
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if all_equal else "Burstable"
