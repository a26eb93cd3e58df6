"""Warnings about Pods and Pod templates that are valid but probably a mistake."""

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from kubewright.api import Quantity, names, problems
from kubewright.devserver.objects import JsonObject, items, section

Warn = Callable[[JsonObject, JsonObject | None], list[str]]

_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_BYTES = (
    ("limits", "memory"),
    ("requests", "memory"),
    ("limits", "ephemeral-storage"),
    ("requests", "ephemeral-storage"),
)
_ADVICE = "which can result in surprising behavior; a DNS label is recommended"


def warn_about_pod(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a new Pod; an update has none."""
    if old is not None:
        return []
    return [*_name(new, "the Pod's hostname"), *_spec(new["spec"], "spec")]


def warn_about_template(*path: str, named: bool = False) -> Warn:
    """Return the function that warns about the Pod template at a path; `named` if Pods get the object's name."""

    def warn(new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        template = new
        for name in path:
            template = section(template, name)
        found = _name(new, "Pod names and hostnames") if named and old is None else []
        return [*found, *_spec(section(template, "spec"), f"{'.'.join(path)}.spec")]

    return warn


def _name(obj: JsonObject, use: str) -> list[str]:
    reasons = names.dns1123_label(obj["metadata"].get("name", ""))
    return [f"metadata.name: this is used in {use}, {_ADVICE}: [{' '.join(reasons)}]"] if reasons else []


def _spec(spec: JsonObject, path: str) -> Iterator[str]:
    yield from _node_preferences(
        section(section(spec, "affinity"), "nodeAffinity"), f"{path}.affinity.nodeAffinity"
    )
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        if constraint.get("labelSelector") is None:
            where = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            yield f"{where}: a null labelSelector results in matching no pod"
    for index, volume in enumerate(items(spec, "volumes")):
        for kind, text in _DEPRECATED_VOLUMES.items():
            if volume.get(kind) is not None:
                yield f"{path}.volumes[{index}].{kind}: {text}"
    yield from _repeated(items(spec, "hostAliases"), "ip", f"{path}.hostAliases")
    yield from _repeated(items(spec, "imagePullSecrets"), "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractions(section(spec, "overhead"), ("memory", "ephemeral-storage"), f"{path}.overhead")
    containers = list(_containers(spec, path))
    for place, container in containers:
        yield from _fractional_bytes(section(container, "resources"), f"{place}.resources")
        yield from _hidden_variables(items(container, "env"), f"{place}.env")
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = f"{path}.terminationGracePeriodSeconds"
        yield f"{where}: must be >= 0; negative values are invalid and will be treated as 1"
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _null_selectors(section(section(spec, "affinity"), name), f"{path}.affinity.{name}")
    for index, server in enumerate(items(section(spec, "dnsConfig"), "nameservers")):
        yield from warn_about_address(f"{path}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(items(spec, "hostAliases")):
        yield from warn_about_address(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))


def _node_preferences(nodes: JsonObject, path: str) -> Iterator[str]:
    for index, term in enumerate(items(nodes, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}].preference.matchExpressions"
        for number, item in enumerate(items(section(term, "preference"), "matchExpressions")):
            for position, value in enumerate(items(item, "values")):
                for text in names.label_value(value):
                    yield f"{where}[{number}].values[{position}]: {value} is invalid, {text}"


def _null_selectors(pods: JsonObject, path: str) -> Iterator[str]:
    terms = [(f"{path}.{_REQUIRED}[{index}]", term) for index, term in enumerate(items(pods, _REQUIRED))]
    terms += [
        (f"{path}.{_PREFERRED}[{index}].podAffinityTerm", section(term, "podAffinityTerm"))
        for index, term in enumerate(items(pods, _PREFERRED))
    ]
    for where, term in terms:
        if term.get("labelSelector") is None:
            yield f"{where}.labelSelector: a null labelSelector results in matching no pod"


def warn_about_address(path: str, value: str) -> Iterator[str]:
    """Warn about an IP address that is not in canonical form."""
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    shown = problems.quoted(value)
    if mapped is not None:
        yield f"{path}: non-standard IP address {shown} is invalid: use {problems.quoted(str(mapped))}"
    elif str(found) != value:
        usual = problems.quoted(str(found))
        yield f"{path}: IPv6 address {shown} should be in RFC 5952 canonical format ({usual})"


def _containers(spec: JsonObject, path: str) -> Iterator[tuple[str, JsonObject]]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, group)):
            yield f"{path}.{group}[{index}]", container


def _repeated(entries: list[Any], key: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        value = entry.get(key, "")
        if value in seen:
            yield f"{path}[{index}].{key}: duplicate {key} {problems.quoted(value)}"
        seen.add(value)


def _fractional_bytes(resources: JsonObject, path: str) -> Iterator[str]:
    for kind, name in _BYTES:
        yield from _fractions(section(resources, kind), (name,), f"{path}.{kind}")


def _fractions(resources: JsonObject, kinds: tuple[str, ...], path: str) -> Iterator[str]:
    for name in kinds:
        if name in resources and Quantity(resources[name]).value % 1:
            text = problems.quoted(str(resources[name]))
            yield f"{path}[{name}]: fractional byte value {text} is invalid, must be an integer"


def _hidden_variables(variables: list[Any], path: str) -> Iterator[str]:
    """Warn about a variable that is set twice, unless the second value contains the first."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable["name"], variable.get("value", "")
        reference = f"$({name})"
        builds = variable.get("valueFrom") is None and reference in value and value != reference
        if name in seen and not builds:
            hides = f"hides previous definition of {problems.quoted(name)}"
            yield f"{path}[{index}]: {hides}, which may be dropped when using apply"
        seen.add(name)


def _ports(containers: list[tuple[str, JsonObject]]) -> Iterator[str]:
    ports = [
        (f"{place}.ports[{index}]", port)
        for place, container in containers
        for index, port in enumerate(items(container, "ports"))
    ]
    for number, (place, port) in enumerate(ports):
        for other_place, other in ports[:number]:
            if all(port.get(key) == other.get(key) for key in ("containerPort", "protocol")):
                yield from _overlapping_ports(place, port, other_place, other)
    first: dict[str, str] = {}
    for place, port in ports:
        if name := port.get("name"):
            other_place = first.setdefault(name, place)
            if other_place != place:
                note = f"services and probes that select ports by name will use {other_place}"
                yield f"{place}: duplicate port name {problems.quoted(name)} with {other_place}, {note}"


def _overlapping_ports(place: str, port: JsonObject, other_place: str, other: JsonObject) -> Iterator[str]:
    (address, number), (other_address, other_number) = (
        (item.get("hostIP", ""), item.get("hostPort", 0)) for item in (port, other)
    )
    if (address, number) == (other_address, other_number):
        yield f"{place}: duplicate port definition with {other_place}"
    elif not number or not other_number:
        yield f"{place}: overlapping port definition with {other_place}"
    elif number == other_number and bool(address) != bool(other_address):
        yield f"{place}: dangerously ambiguous port definition with {other_place}"
