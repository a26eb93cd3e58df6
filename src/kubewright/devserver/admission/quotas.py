"""ResourceQuotas: the usage of objects, and the plugin that charges quotas for writes."""

from collections.abc import Mapping

from kubewright.api import Kind, Quantity, label_selector
from kubewright.devserver.builtin.pods.resources import (
    ResourceList,
    add_resources,
    quantities,
    resource_totals,
)
from kubewright.devserver.objects import JsonObject, items, meta, section
from kubewright.devserver.objects.clock import Clock, parse_time
from kubewright.devserver.objects.status import group_resource
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

_ZERO = Quantity("0")
_ONE = Quantity("1")
_SHORT = frozenset({"cpu", "memory", "ephemeral-storage"})
_DEMANDED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_PLAIN = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
    }
)
_DEVICE_GROUP, _DEVICE_CLAIMS = "resource.k8s.io", "resourceclaims"
_DEVICES_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
"""The end of the names under which quotas count the devices of a class."""
_MAX_DEVICES = 32
"""How many devices a request for all of them counts: the most that can be allocated to a claim."""
_ATTRIBUTES_CLASS = "VolumeAttributesClass"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"

Usage = dict[str, Quantity]


def is_counted(attributes: AdmissionAttributes) -> bool:
    """Return True if a write can change the usage of a quota."""
    group, _, plural = attributes.resource
    if not attributes.namespace or attributes.object is None:
        return False
    if attributes.operation == "CREATE":
        return not attributes.subresource
    if attributes.operation != "UPDATE":
        return False
    if (group, plural) == (_DEVICE_GROUP, _DEVICE_CLAIMS):
        return not attributes.subresource
    if group:
        return False
    if plural == "persistentvolumeclaims" and attributes.subresource == "status":
        return _claim_changes(attributes)
    if plural == "pods":
        return attributes.subresource == "resize" or (
            not attributes.subresource and _scope_changes(attributes)
        )
    return plural in ("services", "persistentvolumeclaims") and not attributes.subresource


def _scope_changes(attributes: AdmissionAttributes) -> bool:
    old, new = attributes.old_object or {}, attributes.object or {}
    return is_terminating(old) != is_terminating(new)


def _claim_changes(attributes: AdmissionAttributes) -> bool:
    """Return True if a write of a claim's status changes what it uses: while it is resized, or its class is changed."""
    old, new = attributes.old_object or {}, attributes.object or {}
    allocated = [section(claim, "status").get("allocatedResources") for claim in (old, new)]
    return allocated[0] != allocated[1] or _attributes_classes(old) != _attributes_classes(new)


def is_terminating(pod: JsonObject) -> bool:
    """Return True if a Pod has an active deadline."""
    return section(pod, "spec").get("activeDeadlineSeconds") is not None


def quota_usage(quota: JsonObject, kind: Kind, obj: JsonObject, now: float) -> Usage:
    """Return what an object uses of a quota, under every name it may have there; none where it is out of scope."""
    inside = in_scope(quota, kind.group, kind.plural, obj)
    return usage_of(kind.group, kind.plural, obj, now) if inside else {}


def usage_of(group: str, plural: str, obj: JsonObject, now: float) -> Usage:
    """Return what an object uses, under every name a quota may give it."""
    used: Usage = {f"count/{group_resource(group, plural)}": _ONE}
    if (group, plural) == (_DEVICE_GROUP, _DEVICE_CLAIMS):
        return _device_usage(section(obj, "spec", "devices"), used)
    if group:
        return used
    if plural in _PLAIN:
        used[plural] = _ONE
    if plural == "pods":
        return _pod_usage(obj, used, now)
    if plural == "services":
        return _service_usage(section(obj, "spec"), used)
    if plural == "persistentvolumeclaims":
        return _claim_usage(obj, used)
    return used


def _device_usage(devices: JsonObject, used: Usage) -> Usage:
    """Count the devices that a ResourceClaim requests, by class; of alternatives, the most of each class."""
    for request in items(devices, "requests"):
        most: Usage = {}
        for choice in items(request, "firstAvailable") or [section(request, "exactly")]:
            name = f"{choice.get('deviceClassName', '')}{_DEVICES_OF_CLASS}"
            counts = {"ExactCount": choice.get("count", 0), "All": _MAX_DEVICES}
            count = Quantity(counts.get(choice.get("allocationMode", ""), 0))
            most[name] = max(most.get(name, _ZERO), count)
        if request.get("exactly") is not None or items(request, "firstAvailable"):
            used = add_resources(used, most)
    return used


def _pod_usage(pod: JsonObject, used: Usage, now: float) -> Usage:
    counted = {"count/pods": used["count/pods"]}
    if section(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return counted
    deleted, grace = meta(pod).get("deletionTimestamp"), meta(pod).get("deletionGracePeriodSeconds")
    if deleted and grace is not None and parse_time(deleted) + grace < now:
        return counted
    requests, limits = resource_totals(section(pod, "spec"))
    return {**used, **container_usage(requests, limits)}


def container_usage(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Usage:
    """Return requests and limits under the names that quotas use, such as `requests.cpu`."""
    used: Usage = {}
    for name, value in requests.items():
        used[f"requests.{name}"] = value
        if name in _SHORT or name.startswith("hugepages-"):
            used[name] = value
    for name, value in limits.items():
        if name in _SHORT:
            used[f"limits.{name}"] = value
    return used


def _service_usage(spec: JsonObject, used: Usage) -> Usage:
    kind, ports = spec.get("type"), items(spec, "ports")
    if kind == "LoadBalancer":
        used["services.loadbalancers"] = _ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if kind in ("LoadBalancer", "NodePort"):
        used["services.nodeports"] = Quantity(len(ports))
    return used


def _claim_usage(claim: JsonObject, used: Usage) -> Usage:
    spec: JsonObject = section(claim, "spec")
    annotated = section(claim, "metadata", "annotations").get(_CLASS_ANNOTATION)
    name = spec.get("storageClassName") if annotated is None else annotated
    prefix = f"{name}.storageclass.storage.k8s.io/" if name else ""
    if prefix:
        used[f"{prefix}persistentvolumeclaims"] = _ONE
    storage = quantities(section(spec, "resources").get("requests")).get("storage")
    if storage is not None:
        # While a claim is resized, the larger size counts.
        allocated = quantities(section(claim, "status").get("allocatedResources")).get("storage", _ZERO)
        used["requests.storage"] = max(storage, allocated)
        if prefix:
            used[f"{prefix}requests.storage"] = max(storage, allocated)
    return used


def _attributes_classes(claim: JsonObject) -> set[str]:
    """Return the VolumeAttributesClasses of a claim: the wanted one, the present one, and one that it changes to."""
    status: JsonObject = section(claim, "status")
    names: tuple[str | None, ...] = (
        section(claim, "spec").get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        section(status, "modifyVolumeStatus").get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}


def unmet_demands(pod: JsonObject, limited: set[str]) -> str:
    """Return, as messages, which containers lack the requests or limits that a quota requires."""
    spec = section(pod, "spec")
    if section(spec, "resources"):
        return ""
    missing: dict[str, set[str]] = {}
    for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
        resources = section(container, "resources")
        present = container_usage(quantities(resources.get("requests")), quantities(resources.get("limits")))
        for name in (limited & _DEMANDED) - present.keys():
            missing.setdefault(name, set()).add(container["name"])
    if not missing:
        return ""
    return "must specify " + "; ".join(
        f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)
    )


def in_scope(quota: JsonObject, group: str, plural: str, obj: JsonObject) -> bool:
    """Return True if an object is in the scopes of a quota."""
    spec = section(quota, "spec")
    selectors: list[JsonObject] = [
        {"scopeName": name, "operator": "Exists"} for name in items(spec, "scopes")
    ]
    selectors += items(section(spec, "scopeSelector"), "matchExpressions")
    if not selectors:
        return True
    scopes = {"pods": _pod_in_scope, "persistentvolumeclaims": _claim_in_scope}
    matches = scopes.get(plural) if not group else None
    return matches is not None and all(matches(selector, obj) for selector in selectors)


def _claim_in_scope(selector: JsonObject, claim: JsonObject) -> bool:
    if selector.get("scopeName") != _ATTRIBUTES_CLASS:
        return False
    found = _attributes_classes(claim)
    if not found:
        return _selects(selector, "")
    return any(_selects(selector, name) for name in found)


def _selects(selector: JsonObject, name: str) -> bool:
    """Return True if a scope selects a class by its name, which may be empty."""
    scope, operator = selector["scopeName"], selector.get("operator")
    if operator == "Exists":
        return bool(name)
    expression = {"key": scope, "operator": operator, "values": selector.get("values")}
    return label_selector({"matchExpressions": [expression]}).matches({scope: name} if name else {})


def _pod_in_scope(selector: JsonObject, pod: JsonObject) -> bool:
    spec, name = section(pod, "spec"), selector.get("scopeName")
    if name in ("Terminating", "NotTerminating"):
        return is_terminating(pod) == (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        return _is_best_effort(spec) == (name == "BestEffort")
    if name == "PriorityClass":
        return _selects(selector, spec.get("priorityClassName", ""))
    return name == "CrossNamespacePodAffinity" and _crosses_namespaces(spec)


def _is_best_effort(spec: JsonObject) -> bool:
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    given = (
        quantities(section(item, "resources").get(field))
        for item in containers
        for field in ("requests", "limits")
    )
    return not any(value for found in given for value in found.values())


def _crosses_namespaces(spec: JsonObject) -> bool:
    terms: list[JsonObject] = []
    for sort in ("podAffinity", "podAntiAffinity"):
        affinity = section(spec, "affinity", sort)
        terms += items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        weighted = items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += [item.get("podAffinityTerm") or {} for item in weighted]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


class ResourceQuotas(AdmissionPlugin):
    """Charge the ResourceQuotas of a namespace for a write, or reject it."""

    def __init__(self, api: Access, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Check all quotas, then charge them."""
        if not is_counted(attributes):
            return
        quotas = self._api.list("", "resourcequotas", attributes.namespace)
        charged = [quota for quota in quotas if self._charge(quota, attributes) is not None]
        if attributes.dry_run:
            return
        for quota in charged:
            await self._api.update(
                "",
                "resourcequotas",
                attributes.namespace,
                meta(quota)["name"],
                lambda fresh: self._write(fresh, attributes),
                subresource="status",
            )

    def _write(self, quota: JsonObject, attributes: AdmissionAttributes) -> None:
        used = self._charge(quota, attributes)
        if used is not None:
            section(quota, "status")["used"] = {name: str(value) for name, value in used.items()}

    def _charge(self, quota: JsonObject, attributes: AdmissionAttributes) -> Usage | None:
        """Return the usage after the write, or None if the quota does not apply; raise if the quota is exceeded."""
        group, _, plural = attributes.resource
        obj, old = attributes.object or {}, attributes.old_object
        if not in_scope(quota, group, plural, obj):
            return None
        hard = quantities(section(quota, "status").get("hard"))
        used = quantities(section(quota, "status").get("used"))
        usage = usage_of(group, plural, obj, self._clock.seconds())
        limited = hard.keys() & {*usage, *_possible(group, plural, hard)}
        name = meta(quota)["name"]
        if (group, plural) == ("", "pods") and (why := unmet_demands(obj, set(limited))):
            raise attributes.forbidden(f"failed quota: {name}: {why}")
        if not limited <= used.keys():
            raise attributes.forbidden(
                f"status unknown for quota: {name}, resources: {','.join(sorted(limited))}"
            )
        if old is not None and in_scope(quota, group, plural, old):
            before = usage_of(group, plural, old, self._clock.seconds())
            usage = {key: max(value - before.get(key, _ZERO), _ZERO) for key, value in usage.items()}
        added = {key: value for key, value in usage.items() if key in hard and value}
        if not added:
            return None
        total = add_resources(used, added)
        exceeded = sorted(key for key in added if total[key] > hard[key])
        if exceeded:
            requested, present, limits = (_shown(part, exceeded) for part in (added, used, hard))
            raise attributes.forbidden(
                f"exceeded quota: {name}, requested: {requested}, used: {present}, limited: {limits}",
            )
        return total


def _possible(group: str, plural: str, hard: ResourceList) -> set[str]:
    """Return the names by which a quota may limit this kind, though the object at hand does not use them."""
    if (group, plural) != ("", "pods"):
        return set()
    return {
        name for name in hard if name.startswith(("limits.", "requests.")) and name != "requests.storage"
    } | (hard.keys() & {"cpu", "memory", "ephemeral-storage"})


def _shown(part: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={part[name]}" for name in names if name in part)
