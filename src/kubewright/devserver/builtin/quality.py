"""A Pod's quality of service: how its requests and limits rank it when a node runs out."""

from kubewright.devserver.objects import JsonObject, items, section

_COUNTED = ("cpu", "memory")


def quality_of(pod: JsonObject) -> str:
    """Tell Guaranteed, Burstable or BestEffort."""
    spec: JsonObject = section(pod, "spec")
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    any_given, all_equal = False, True
    # What is said of the Pod as a whole counts alone.
    for container in [spec] if spec.get("resources") else containers:
        resources: JsonObject = section(container, "resources")
        requests, limits = section(resources, "requests"), section(resources, "limits")
        any_given = any_given or any(name in requests or name in limits for name in _COUNTED)
        all_equal = all_equal and all(
            name in limits and requests.get(name) == limits[name] for name in _COUNTED
        )
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if all_equal else "Burstable"
