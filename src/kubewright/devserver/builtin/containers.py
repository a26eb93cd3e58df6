"""What is refused in a container."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.objects import Wire

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_ENV_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "spec.hostNetwork",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_ENV_FIELDS_ALLOWED = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_ENV_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SECURITY_FIELDS = {
    "capabilities": "Capabilities",
    "privileged": "Privileged",
    "seLinuxOptions": "SELinuxOptions",
    "windowsOptions": "WindowsOptions",
    "runAsUser": "RunAsUser",
    "runAsGroup": "RunAsGroup",
    "runAsNonRoot": "RunAsNonRoot",
    "readOnlyRootFilesystem": "ReadOnlyRootFilesystem",
    "allowPrivilegeEscalation": "AllowPrivilegeEscalation",
    "procMount": "ProcMount",
    "seccompProfile": "SeccompProfile",
    "appArmorProfile": "AppArmorProfile",
}


def check_container(container: Wire, path: str, volumes: Collection[str]) -> list[FieldError]:
    """Check what containers of all sorts have in common."""
    name = container.get("name", "")
    errors = check.named(f"{path}.name", name, names.dns1123_label(name)) if name else []
    if not name:
        errors.append(problems.required(f"{path}.name"))
    if not container.get("image"):
        errors.append(problems.required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy", "")
    errors += check.choice(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    errors += _ports(items(container, "ports"), f"{path}.ports")
    errors += _env(items(container, "env"), f"{path}.env")
    errors += _env_from(items(container, "envFrom"), f"{path}.envFrom")
    errors += _mounts(items(container, "volumeMounts"), f"{path}.volumeMounts", volumes)
    errors += check.choice(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), PULL_POLICIES)
    errors += check_resources(section(container, "resources"), f"{path}.resources")
    errors += _security(container.get("securityContext"), f"{path}.securityContext")
    return errors


def check_handlers(container: Wire, path: str) -> list[FieldError]:
    """Check lifecycle hooks and probes."""
    errors: list[FieldError] = []
    for name, hook in section(container, "lifecycle").items():
        if name in ("postStart", "preStop"):
            errors += _handler(hook, f"{path}.lifecycle.{name}")
    for kind in PROBES:
        if container.get(kind) is not None:
            errors += _probe(container[kind], f"{path}.{kind}", kind)
    return errors


def host_port_conflicts(containers: Sequence[Wire], path: str) -> list[FieldError]:
    """Find ports of the host that two containers want."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(items(container, "ports")):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                errors.append(problems.duplicate(f"{path}[{index}].ports[{position}].hostPort", key))
            seen.add(key)
    return errors


def check_resources(resources: Wire, path: str) -> list[FieldError]:
    """Check requests and limits."""
    limits: dict[str, Any] = section(resources, "limits")
    requests: dict[str, Any] = section(resources, "requests")
    errors: list[FieldError] = []
    for name, value in limits.items():
        errors += resource_name(f"{path}.limits[{name}]", name)
        errors += check.amount(f"{path}.limits[{name}]", name, value)
    for name, value in requests.items():
        errors += resource_name(f"{path}.requests[{name}]", name)
        errors += check.amount(f"{path}.requests[{name}]", name, value)
        errors += _within_limit(name, value, limits, path)
    return errors


def _within_limit(name: str, value: Any, limits: dict[str, Any], path: str) -> list[FieldError]:
    overcommitted = not check.is_extended(name) and not name.startswith("hugepages-")
    if name not in limits:
        text = "Limit must be set for non overcommitable resources"
        return [] if overcommitted else [problems.required(f"{path}.limits", text)]
    asked, limit = check.quantity(value), check.quantity(limits[name])
    if asked > limit:
        text = f"must be less than or equal to {name} limit of {limits[name]}"
        return [problems.invalid(f"{path}.requests", str(value), text)]
    if not overcommitted and asked != limit:
        text = f"must be equal to {name} limit of {limits[name]}"
        return [problems.invalid(f"{path}.requests", str(value), text)]
    return []


def resource_name(path: str, name: str) -> list[FieldError]:
    """Check the name of a resource that containers can have."""
    if troubles := names.qualified_name(name):
        return check.named(path, name, troubles)
    if "/" in name or name in _STANDARD_RESOURCES or name.startswith("hugepages-"):
        return []
    return [
        problems.invalid(path, name, "must be a standard resource type or fully qualified"),
        problems.invalid(path, name, "must be a standard resource for containers"),
    ]


def _ports(ports: Sequence[Wire], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if name := port.get("name"):
            if troubles := names.port_name(name):
                yield from check.named(f"{where}.name", name, troubles)
            elif name in seen:
                yield problems.duplicate(f"{where}.name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            yield problems.required(f"{where}.containerPort")
        else:
            yield from check.port(f"{where}.containerPort", number)
        if host := port.get("hostPort", 0):
            yield from check.port(f"{where}.hostPort", host)
        yield from check.choice(f"{where}.protocol", port.get("protocol", ""), check.PROTOCOLS)


def _env(env: Sequence[Wire], path: str) -> Iterator[FieldError]:
    for index, variable in enumerate(env):
        where = f"{path}[{index}]"
        name = variable.get("name", "")
        if not name:
            yield problems.required(f"{where}.name")
        elif not _ENV_NAME.fullmatch(name):
            yield problems.invalid(f"{where}.name", name, _ENV_RULE)
        if variable.get("valueFrom") is not None:
            yield from _env_source(variable, f"{where}.valueFrom")


def _env_source(variable: Wire, path: str) -> Iterator[FieldError]:
    source: Wire = variable["valueFrom"]
    given = [kind for kind in _ENV_SOURCES if source.get(kind) is not None]
    for kind in given:
        yield from _ENV_CHECKS[kind](source[kind], f"{path}.{kind}")
    if not given:
        listed = ", ".join(f"`{name}`" for name in _ENV_SOURCES[:-1])
        yield problems.invalid(path, "", f"must specify one of: {listed} or `{_ENV_SOURCES[-1]}`")
    elif variable.get("value"):
        yield problems.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield problems.invalid(path, "", "may not have more than one field specified at a time")


def _field_reference(reference: Wire, path: str) -> Iterator[FieldError]:
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        yield problems.required(f"{path}.apiVersion")
    elif not field:
        yield problems.required(f"{path}.fieldPath")
    elif re.fullmatch(r"metadata\.(annotations|labels)\['.*'\]", field):
        return
    elif field not in _ENV_FIELDS:
        text = f"error converting fieldPath: field label not supported: {field}"
        yield problems.invalid(f"{path}.fieldPath", field, text)
    elif field not in _ENV_FIELDS_ALLOWED:
        yield problems.not_supported(f"{path}.fieldPath", field, sorted(_ENV_FIELDS_ALLOWED))


def _resource_reference(reference: Wire, path: str) -> Iterator[FieldError]:
    name = reference.get("resource", "")
    if not name:
        yield problems.required(f"{path}.resource")
    elif name not in _ENV_RESOURCES and ".hugepages-" not in name:
        yield problems.not_supported(f"{path}.resource", name, _ENV_RESOURCES)


def _key_reference(reference: Wire, path: str) -> Iterator[FieldError]:
    if not reference.get("key"):
        yield problems.required(f"{path}.key")
    else:
        yield from check.named(f"{path}.key", reference["key"], names.config_key(reference["key"]))


def _file_reference(reference: Wire, path: str) -> Iterator[FieldError]:
    for name in ("volumeName", "path", "key"):
        if not reference.get(name):
            yield problems.required(f"{path}.{name}")


_ENV_CHECKS: dict[str, Callable[[Wire, str], Iterator[FieldError]]] = {
    "fieldRef": _field_reference,
    "resourceFieldRef": _resource_reference,
    "configMapKeyRef": _key_reference,
    "secretKeyRef": _key_reference,
    "fileKeyRef": _file_reference,
}


def _env_from(sources: Sequence[Wire], path: str) -> Iterator[FieldError]:
    for index, source in enumerate(sources):
        prefix = source.get("prefix", "")
        if prefix and not _ENV_NAME.fullmatch(prefix):
            yield problems.invalid(f"{path}[{index}].prefix", prefix, _ENV_RULE)
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            if not source[kind].get("name"):
                yield problems.required(f"{path}[{index}].{kind}.name")
        if not given:
            yield problems.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield problems.invalid(path, "", "may not have more than one field specified at a time")


def _mounts(mounts: Sequence[Wire], path: str, volumes: Collection[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        name, folder = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield problems.required(f"{where}.name")
        if name not in volumes:
            yield problems.not_found(f"{where}.name", name)
        if not folder:
            yield problems.required(f"{where}.mountPath")
        if folder in seen:
            yield problems.invalid(f"{where}.mountPath", folder, "must be unique")
        seen.add(folder)
        if mount.get("subPath"):
            yield from check.clean_relative_path(f"{path}.subPath", mount["subPath"])
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                yield problems.invalid(f"{where}.subPathExpr", mount["subPathExpr"], text)
            yield from check.clean_relative_path(f"{path}.subPathExpr", mount["subPathExpr"])


def _probe(probe: Wire, path: str, kind: str) -> Iterator[FieldError]:
    yield from _handler(probe, path)
    yield from check.none_negative(
        probe,
        path,
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    )
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield problems.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe" and grace is not None:
        text = "must not be set for readinessProbes"
        yield problems.invalid(f"{path}.terminationGracePeriodSeconds", grace, text)
    if kind != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield problems.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(action: Wire, path: str) -> Iterator[FieldError]:
    given = [name for name in _HANDLERS if action.get(name) is not None]
    if not given:
        yield problems.required(path, "must specify a handler type")
    for extra in given[1:]:
        yield problems.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    if given[:1] == ["exec"] and not action["exec"].get("command"):
        yield problems.required(f"{path}.exec.command")
    if given[:1] == ["httpGet"]:
        http = action["httpGet"]
        yield from check.port_or_name(f"{path}.httpGet.port", http.get("port"))
        yield from check.one_of(f"{path}.httpGet.scheme", http.get("scheme", ""), ("HTTP", "HTTPS"))
        for header in items(http, "httpHeaders"):
            name = header.get("name", "")
            yield from check.named(f"{path}.httpGet.httpHeaders", name, names.http_header_name(name))
    if given[:1] == ["tcpSocket"]:
        yield from check.port_or_name(f"{path}.tcpSocket.port", action["tcpSocket"].get("port"))
    if given[:1] == ["grpc"]:
        yield from check.port(f"{path}.grpc.port", action["grpc"].get("port", 0))


def _security(context: Wire | None, path: str) -> Iterator[FieldError]:
    if context is None:
        return
    for name in ("runAsUser", "runAsGroup"):
        value = context.get(name)
        if value is not None and not 0 <= value <= 2147483647:
            yield problems.invalid(f"{path}.{name}", value, "must be between 0 and 2147483647, inclusive")
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        shown = {go_name: context.get(name) for name, go_name in _SECURITY_FIELDS.items()}
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid_struct(path, shown, text)
