"""LimitRanges: defaults for containers without requests and limits, and the limits of all."""

from collections.abc import Iterator, Mapping

from kubewright.api import Quantity
from kubewright.devserver.builtin.pods.resources import ResourceList, quantities, resource_totals
from kubewright.devserver.objects import JsonObject, items, meta, section
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(AdmissionPlugin):
    """Set defaults from the LimitRanges of the namespace, and reject what violates them."""

    resources: frozenset[tuple[str, str]] = frozenset({("", "pods"), ("", "persistentvolumeclaims")})

    def __init__(self, api: Access) -> None:
        self._api = api

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Set the default requests and limits of containers."""
        if attributes.kind.kind != "Pod" or attributes.object is None or not _is_concerned(attributes):
            return
        for limit_range in self._ranges(attributes):
            _complete(attributes.object, limit_range)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Reject what violates a LimitRange."""
        if attributes.object is None or not _is_concerned(attributes):
            return
        for limit_range in self._ranges(attributes):
            limits: list[JsonObject] = items(section(limit_range, "spec"), "limits")
            # kube-apiserver reports the violations of the first LimitRange that is violated, each once.
            found = list(dict.fromkeys(text for limit in limits for text in _violations(limit, attributes)))
            if found:
                raise attributes.forbidden(found[0] if len(found) == 1 else f"[{', '.join(found)}]")

    def _ranges(self, attributes: AdmissionAttributes) -> list[JsonObject]:
        return self._api.list("", "limitranges", attributes.namespace)


def _is_concerned(attributes: AdmissionAttributes) -> bool:
    if attributes.kind.group or attributes.kind.kind not in ("Pod", "PersistentVolumeClaim"):
        return False
    if attributes.operation == "UPDATE" and attributes.kind.kind == "Pod":
        return attributes.subresource == "resize"
    return not attributes.subresource and attributes.operation in ("CREATE", "UPDATE")


def _containers(pod: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    spec = section(pod, "spec")
    for title, field in (("container", "containers"), ("init container", "initContainers")):
        for container in items(spec, field):
            yield title, container


def _complete(pod: JsonObject, limit_range: JsonObject) -> None:
    requests: JsonObject = {}
    limits: JsonObject = {}
    for limit in items(section(limit_range, "spec"), "limits"):
        if limit.get("type") == "Container":
            requests |= limit.get("defaultRequest") or {}
            limits |= limit.get("default") or {}
    notes: list[str] = []
    for title, container in _containers(pod):
        resources: JsonObject = container.setdefault("resources", {})
        for field, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
            present: JsonObject = resources.get(field) or {}
            missing = sorted(defaults.keys() - present.keys())
            if missing:
                resources[field] = {**present, **{name: defaults[name] for name in missing}}
                notes.append(f"{', '.join(missing)} {word} for {title} {container['name']}")
    if notes:
        annotations = dict(meta(pod).get("annotations") or {})
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"
        meta(pod)["annotations"] = annotations


def _violations(limit: JsonObject, attributes: AdmissionAttributes) -> list[str]:
    sort, obj = limit.get("type", ""), attributes.object or {}
    if attributes.kind.kind == "PersistentVolumeClaim":
        requests = quantities(section(obj, "spec", "resources").get("requests"))
        return list(_claim_violations(limit, requests)) if sort == "PersistentVolumeClaim" else []
    if sort == "Container":
        return [
            text
            for _, container in _containers(obj)
            for text in _pod_violations(
                limit,
                quantities(section(container, "resources").get("requests")),
                quantities(section(container, "resources").get("limits")),
            )
        ]
    if sort == "Pod":
        return list(_pod_violations(limit, *resource_totals(section(obj, "spec"))))
    return []


def _claim_violations(limit: JsonObject, requests: ResourceList) -> Iterator[str]:
    sort = limit["type"]
    yield from _below(sort, quantities(limit.get("min")), requests, {})
    for name, most in quantities(limit.get("max")).items():
        if name not in requests:
            yield f"maximum {name} usage per {sort} is {most}.  No request is specified"
        elif requests[name] > most:
            yield f"maximum {name} usage per {sort} is {most}, but request is {requests[name]}"


def _pod_violations(limit: JsonObject, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    sort = limit["type"]
    yield from _below(sort, quantities(limit.get("min")), requests, limits)
    for name, most in quantities(limit.get("max")).items():
        if name not in limits:
            yield f"maximum {name} usage per {sort} is {most}.  No limit is specified"
        elif limits[name] > most:
            yield f"maximum {name} usage per {sort} is {most}, but limit is {limits[name]}"
        elif name in requests and requests[name] > most:
            yield f"maximum {name} usage per {sort} is {most}, but request is {requests[name]}"
    for name, ratio in quantities(limit.get("maxLimitRequestRatio")).items():
        yield from _above_ratio(sort, name, ratio, requests, limits)


def _below(
    sort: str, least: Mapping[str, Quantity], requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    for name, bound in least.items():
        if name not in requests:
            yield f"minimum {name} usage per {sort} is {bound}.  No request is specified"
        elif requests[name] < bound:
            yield f"minimum {name} usage per {sort} is {bound}, but request is {requests[name]}"
        elif name in limits and limits[name] < bound:
            yield f"minimum {name} usage per {sort} is {bound}, but limit is {limits[name]}"


def _above_ratio(
    sort: str, name: str, ratio: Quantity, requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    title = f"{name} max limit to request ratio per {sort} is {ratio}"
    zero = Quantity("0")
    if requests.get(name, zero) == zero:
        yield f"{title}, but no request is specified or request is 0"
    elif limits.get(name, zero) == zero:
        yield f"{title}, but no limit is specified or limit is 0"
    else:
        observed = float(limits[name].value / requests[name].value)
        if observed > float(ratio.value):
            yield f"{title}, but provided ratio is {observed:f}"
