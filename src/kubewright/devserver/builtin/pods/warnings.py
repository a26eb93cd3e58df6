"""Warnings about Pods and Pod templates that are valid but probably a mistake."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kubewright.api import names, problems
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.deprecations import (
    NODE_LABELS,
    VOLUME_PLUGINS,
    warn_about_claim_spec,
    warn_about_fractions,
    warn_about_node_terms,
    warn_about_plugins,
    warn_about_requirements,
)
from kubewright.devserver.builtin.pods.annotations import CONTAINER_SECCOMP, POD_SECCOMP
from kubewright.devserver.objects import JsonObject, items, section

Warn = Callable[[JsonObject, JsonObject | None], list[str]]

# In the order in which kube-apiserver warns about them; ephemeral volumes stand between the two groups.
_PLUGINS = {
    "photonPersistentDisk": VOLUME_PLUGINS["photonPersistentDisk"],
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": VOLUME_PLUGINS["scaleIO"],
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": VOLUME_PLUGINS["storageos"],
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": VOLUME_PLUGINS["glusterfs"],
}
_LATER_PLUGINS = {name: VOLUME_PLUGINS[name] for name in ("cephfs", "rbd")}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_SECCOMP_TEXT = 'non-functional in v1.27+; use the "seccompProfile" field instead'
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_APP_ARMOR_TEXT = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_MAPPED_VOLUMES = {"configMap": "name", "secret": "secretName", "downwardAPI": "name"}
"""Volumes that map keys to paths, each with the field of its source's name."""
_CERTIFICATE_PATHS = {
    "certificateChainPath": "chain",
    "keyPath": "key",
    "credentialBundlePath": "credential bundle",
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
    return [*_name(new, "the Pod's hostname"), *_spec(new, "")]


def warn_about_pod_status(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about the addresses in the status of a Pod."""
    return [
        warning
        for field in ("podIPs", "hostIPs")
        for index, entry in enumerate(items(section(new, "status"), field))
        for warning in ip_checks.form_warnings(f"status.{field}[{index}].ip", entry.get("ip", ""))
    ]


def warn_about_template(*path: str, named: bool = False, of_old: bool = False) -> Warn:
    """Return the function that warns about the Pod template at a path; `named` if Pods get the object's name.

    With `of_old`, an update is warned about the old template, which is a bug of kube-apiserver.
    """

    def warn(new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        template = old if of_old and old is not None else new
        for name in path:
            template = section(template, name)
        found = _name(new, "Pod names and hostnames") if named and old is None else []
        return [*found, *_spec(template, f"{'.'.join(path)}.")]

    return warn


def _name(obj: JsonObject, use: str) -> list[str]:
    reasons = names.dns1123_label(obj["metadata"].get("name", ""))
    return [f"metadata.name: this is used in {use}, {_ADVICE}: [{' '.join(reasons)}]"] if reasons else []


def _spec(template: JsonObject, start: str) -> Iterator[str]:
    """Warn about a Pod, or about a template whose fields have paths that start with a text."""
    spec, path = section(template, "spec"), f"{start}spec"
    annotations: dict[str, str] = section(template, "metadata", "annotations")
    for key in section(spec, "nodeSelector"):
        if key in NODE_LABELS:
            yield f"{path}.nodeSelector[{key}]: {NODE_LABELS[key]}"
    yield from _node_affinity(section(spec, "affinity", "nodeAffinity"), f"{path}.affinity.nodeAffinity")
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        where, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in NODE_LABELS:
            yield f"{where}.topologyKey: {key} is {NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: a null labelSelector results in matching no pod"
    for key, text in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{start}metadata.annotations[{key}]: {text}"
    for index, volume in enumerate(items(spec, "volumes")):
        where = f"{path}.volumes[{index}]"
        yield from warn_about_plugins(volume, where, _PLUGINS)
        claim = section(volume, "ephemeral", "volumeClaimTemplate", "spec")
        yield from warn_about_claim_spec(claim, f"{where}.ephemeral.volumeClaimTemplate.spec")
        yield from warn_about_plugins(volume, where, _LATER_PLUGINS)
    for volume in items(spec, "volumes"):
        yield from _overlapping_paths(volume)
    yield from _repeated(items(spec, "hostAliases"), "ip", f"{path}.hostAliases")
    yield from _repeated(items(spec, "imagePullSecrets"), "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from warn_about_fractions(
        section(spec, "overhead"), ("memory", "ephemeral-storage"), f"{path}.overhead"
    )
    if POD_SECCOMP in annotations and not section(spec, "securityContext").get("seccompProfile"):
        yield f"{start}metadata.annotations[{POD_SECCOMP}]: {_SECCOMP_TEXT}"
    containers = list(_containers(spec, path))
    for place, container in containers:
        yield from _container_annotations(annotations, container, spec, start)
        yield from _fractional_bytes(section(container, "resources"), f"{place}.resources")
        yield from _hidden_variables(items(container, "env"), f"{place}.env")
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = f"{path}.terminationGracePeriodSeconds"
        yield f"{where}: must be >= 0; negative values are invalid and will be treated as 1"
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _null_selectors(section(section(spec, "affinity"), name), f"{path}.affinity.{name}")
    for index, server in enumerate(items(section(spec, "dnsConfig"), "nameservers")):
        yield from ip_checks.form_warnings(f"{path}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(items(spec, "hostAliases")):
        yield from ip_checks.form_warnings(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))


def _node_affinity(nodes: JsonObject, path: str) -> Iterator[str]:
    yield from warn_about_node_terms(section(nodes, _REQUIRED), f"{path}.{_REQUIRED}")
    for index, term in enumerate(items(nodes, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}].preference.matchExpressions"
        requirements = items(section(term, "preference"), "matchExpressions")
        yield from warn_about_requirements(requirements, where, check_values=True)


def _container_annotations(
    annotations: Mapping[str, str], container: JsonObject, spec: JsonObject, start: str
) -> Iterator[str]:
    """Warn about annotations that stand for fields of a container's security context."""
    context, name = section(container, "securityContext"), container.get("name", "")
    if (key := f"{CONTAINER_SECCOMP}{name}") in annotations and not context.get("seccompProfile"):
        yield f"{start}metadata.annotations[{key}]: {_SECCOMP_TEXT}"
    key = f"{APP_ARMOR}{name}"
    # The annotations of a Pod itself are copied to the fields.
    if not start or key not in annotations or context.get("appArmorProfile"):
        return
    profile = section(spec, "securityContext").get("appArmorProfile")
    if profile is None or profile != app_armor_profile(annotations[key]):
        yield f"{start}metadata.annotations[{key}]: {_APP_ARMOR_TEXT}"


def app_armor_profile(annotation: str) -> JsonObject | None:
    """Return the field that an annotation stands for."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    name = annotation.removeprefix("localhost/")
    return {"type": "Localhost", "localhostProfile": name} if name != annotation and name else None


class _Path(NamedTuple):
    """A path in a volume, and the source that puts a file there."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        quoted = problems.quoted(self.path)
        return f"{quoted} ({self.source})" if self.source else quoted

    def overlaps(self, other: "_Path") -> bool:
        mine, others = f"{self.path}/", f"{other.path}/"
        return bool(self.path and other.path) and (mine.startswith(others) or others.startswith(mine))


def _overlapping_paths(volume: JsonObject) -> Iterator[str]:
    """Warn about files of a volume that hide each other."""
    for field, name in _MAPPED_VOLUMES.items():
        source = volume.get(field)
        if source is not None:
            shown = _shown_source(field, source.get(name, ""))
            files = [_Path(item.get("path", "")) for item in items(source, "items")]
            yield from _collisions(volume["name"], shown, files)
    if volume.get("projected") is None:
        return
    paths: list[_Path] = []
    for source in items(volume["projected"], "sources"):
        if not any(part is not None for part in source.values()):
            yield f"volume {problems.quoted(volume['name'])} (Projected) has no sources provided"
        paths += _projected_paths(source)
    yield from _collisions(volume["name"], "Projected", paths)


def _collisions(volume: str, shown: str, paths: Sequence[_Path]) -> Iterator[str]:
    seen: list[_Path] = []
    for found in paths:
        path = _Path(found.path.rstrip("/"), found.source)
        for other in seen:
            if path.overlaps(other):
                yield f"volume {problems.quoted(volume)} ({shown}): overlapping paths: {path} with {other}"
        seen.append(path)


def _shown_source(field: str, name: str) -> str:
    title = f"{field[0].upper()}{field[1:]}"
    return title if field == "downwardAPI" else f"{title} {problems.quoted(name)}"


def _projected_paths(source: JsonObject) -> list[_Path]:
    for field in _MAPPED_VOLUMES:
        part = source.get(field)
        if part is not None and part.get("items") is not None:
            shown = _shown_source(field, part.get("name", ""))
            return [_Path(item.get("path", ""), shown) for item in items(part, "items")]
    if (token := source.get("serviceAccountToken")) is not None:
        return [_Path(token.get("path", ""), "ServiceAccountToken")]
    if (bundle := source.get("clusterTrustBundle")) is not None:
        name = bundle.get("name")
        shown = problems.quoted(bundle.get("signerName", "") if name is None else name)
        return [_Path(bundle.get("path", ""), f"ClusterTrustBundle {shown}")]
    certificate = section(source, "podCertificate")
    return [
        _Path(certificate[field], f"PodCertificate {shown}")
        for field, shown in _CERTIFICATE_PATHS.items()
        if certificate.get(field)
    ]


def _null_selectors(pods: JsonObject, path: str) -> Iterator[str]:
    terms = [(f"{path}.{_REQUIRED}[{index}]", term) for index, term in enumerate(items(pods, _REQUIRED))]
    terms += [
        (f"{path}.{_PREFERRED}[{index}].podAffinityTerm", section(term, "podAffinityTerm"))
        for index, term in enumerate(items(pods, _PREFERRED))
    ]
    for where, term in terms:
        if term.get("labelSelector") is None:
            yield f"{where}.labelSelector: a null labelSelector results in matching no pod"


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
        yield from warn_about_fractions(section(resources, kind), (name,), f"{path}.{kind}")


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
        if port.get("hostIP") and not port.get("hostPort"):
            # The port is shown as a Go struct.
            shown = (
                f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort', 0)} "
                f"Protocol:{port.get('protocol', '')} HostIP:{port['hostIP']}}}"
            )
            yield f"{place}: hostIP set without hostPort: {shown}"
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
