"""Containers: defaults and validation, with their ports, mounts, probes and lifecycle hooks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, QuantityError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.pods.environment import check_env, check_env_from
from kubewright.devserver.builtin.pods.security import check_container_security
from kubewright.devserver.builtin.resource_names import (
    can_be_overcommitted,
    container_resource_name,
    pod_resource_name,
)
from kubewright.devserver.objects import JsonObject, items, section, words

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")
_RESIZED = ("cpu", "memory")
_RESIZES = ("NotRequired", "RestartContainer")

Volumes = Mapping[str, JsonObject]
"""The volumes of a Pod that can be mounted, by name."""
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = words("initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold")
HOOKS = ("postStart", "preStop")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_MAX_IMAGE_LENGTH = 255
_IMAGE_ID = re.compile("[a-f0-9]{64}")
_IMAGE_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_IMAGE = re.compile(
    r"(?:(?P<host>[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?(?::[0-9]+)?|\[[a-fA-F0-9:]+\](?::[0-9]+)?)/)?"
    rf"(?P<path>{_IMAGE_PART.pattern}(?:/{_IMAGE_PART.pattern})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)


def pull_policy(image: str) -> str:
    """Return the default pull policy of an image: Always for the tag `latest`, or none, without a digest."""
    found = _IMAGE.fullmatch(image)
    if found is None or _IMAGE_ID.fullmatch(image):
        return "IfNotPresent"
    host, path, tag, digest = found.group("host", "path", "tag", "digest")
    # The part before the first slash is a host only if it looks like one; else it belongs to the path.
    is_host = host is not None and (host == "localhost" or "." in host or ":" in host or host != host.lower())
    if (host is not None and not is_host and not _IMAGE_PART.fullmatch(host)) or not path:
        return "IfNotPresent"
    if not is_host:
        path = f"library/{path}" if host is None else f"{host}/{path}"
    if len(path) > _MAX_IMAGE_LENGTH:
        return "IfNotPresent"
    return "Always" if not digest and tag in (None, "latest") else "IfNotPresent"


def default_container(container: JsonObject) -> None:
    """Set the defaults of a container."""
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("resources", {})
    for port in items(container, "ports"):
        port.setdefault("protocol", "TCP")
    for variable in items(container, "env"):
        reference = section(variable, "valueFrom").get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in PROBES:
        if container.get(name):
            _default_probe(container[name])
    lifecycle: JsonObject = section(container, "lifecycle")
    # The feature gate ContainerStopSignals is off, so the server drops the field.
    if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]
    for name in HOOKS:
        hook = lifecycle.get(name)
        if hook and hook.get("httpGet"):
            _default_http(hook["httpGet"])


def _default_probe(probe: JsonObject) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if probe.get("httpGet"):
        _default_http(probe["httpGet"])
    if probe.get("grpc"):
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _default_http(action: JsonObject) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def check_container(
    container: JsonObject, path: str, volumes: Volumes, spec: JsonObject
) -> Iterator[FieldError]:
    """Check a container, init container or ephemeral container of a Pod's spec."""
    yield from check.name(f"{path}.name", container.get("name"), names.dns1123_label)
    if not container.get("image"):
        yield problems.required(f"{path}.image")
    policy = container.get("terminationMessagePolicy", "")
    yield from check.choice(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    yield from _ports(items(container, "ports"), f"{path}.ports")
    yield from check_env(items(container, "env"), f"{path}.env")
    yield from check_env_from(items(container, "envFrom"), f"{path}.envFrom")
    yield from _mounts(container, f"{path}.volumeMounts", volumes)
    yield from _devices(container, f"{path}.volumeDevices", volumes)
    yield from check.choice(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), PULL_POLICIES)
    resources: JsonObject = section(container, "resources")
    yield from check_resources(resources, f"{path}.resources")
    yield from check_claims(items(resources, "claims"), spec, f"{path}.resources.claims")
    yield from _resize_policy(
        items(container, "resizePolicy"), f"{path}.resizePolicy", spec.get("restartPolicy", "")
    )
    host_users = spec.get("hostUsers") is not False
    yield from check_container_security(
        container.get("securityContext"), f"{path}.securityContext", host_users=host_users
    )


def host_port_conflicts(containers: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    """Report host ports that occur twice."""
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(items(container, "ports")):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                yield problems.duplicate(f"{path}[{index}].ports[{position}].hostPort", key)
            seen.add(key)


def check_resources(resources: JsonObject, path: str, *, of_pod: bool = False) -> Iterator[FieldError]:
    """Check the requests and limits of a container or of a whole Pod."""
    limits: dict[str, Any] = section(resources, "limits")
    requests: dict[str, Any] = section(resources, "requests")
    resource_name = pod_resource_name if of_pod else container_resource_name
    for name, value in limits.items():
        yield from resource_name(f"{path}.limits[{name}]", name)
        yield from check.resource_quantity(f"{path}.limits[{name}]", name, value)
        yield from _whole_pages(f"{path}.limits[{name}]", name, value)
    for name, value in requests.items():
        yield from resource_name(f"{path}.requests[{name}]", name)
        yield from check.resource_quantity(f"{path}.requests[{name}]", name, value)
        yield from _whole_pages(f"{path}.requests[{name}]", name, value)
        yield from _within_limit(name, value, limits, path)
    huge = any(name.startswith("hugepages-") for name in (*limits, *requests))
    if huge and not any(name in _RESIZED for name in (*limits, *requests)):
        yield problems.forbidden(path, "HugePages require cpu or memory")


def _whole_pages(path: str, name: str, value: Any) -> Iterator[FieldError]:
    """Check that an amount of huge pages is a number of whole pages."""
    if not name.startswith("hugepages-"):
        return
    try:
        page = int(Quantity(name.removeprefix("hugepages-")))
    except QuantityError:
        page = 0
    amount = int(check.quantity(value))
    if page <= 0 or amount % page:
        shown = str(check.quantity(value))
        yield problems.invalid(path, shown, f"{shown} is not positive integer multiple of {name}")


def check_claims(claims: Sequence[JsonObject], spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check the device claims of a container: each is a claim of the Pod, whole or single requests of it, once."""
    known = sorted({item["name"] for item in items(spec, "resourceClaims") if item.get("name")})
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield problems.required(where)
            continue
        if name in seen:
            yield problems.duplicate(where, name)
        else:
            if request:
                yield from check.named(f"{where}.request", request, names.dns1123_label(request))
            key = f"{name}/{request}" if request else name
            if key in seen:
                yield problems.duplicate(where, key)
            elif not request:
                parts = [other for other in seen if other.startswith(f"{name}/")]
                yield from [problems.duplicate(where, name) for _ in parts]
            seen.add(key)
        if name not in known:
            text = "must be one of the names in pod.spec.resourceClaims"
            shown = f": {', '.join(known)}" if known else " which is empty"
            yield FieldError("FieldValueNotFound", where, name, f"{text}{shown}")


def _within_limit(name: str, value: Any, limits: dict[str, Any], path: str) -> Iterator[FieldError]:
    overcommitted = can_be_overcommitted(name)
    if name not in limits:
        if not overcommitted:
            text = "Limit must be set for non overcommitable resources"
            yield problems.required(f"{path}.limits", text)
        return
    request, limit = check.quantity(value), check.quantity(limits[name])
    if not overcommitted and request != limit:
        text = f"must be equal to {name} limit of {limits[name]}"
        yield problems.invalid(f"{path}.requests", str(value), text)
    elif request > limit:
        text = f"must be less than or equal to {name} limit of {limits[name]}"
        yield problems.invalid(f"{path}.requests", str(value), text)


def _ports(ports: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        if name := port.get("name"):
            if reasons := names.port_name(name):
                yield from check.named(f"{where}.name", name, reasons)
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


def _mounts(container: JsonObject, path: str, volumes: Volumes) -> Iterator[FieldError]:
    seen: set[str] = set()
    devices: dict[str, str] = {
        item.get("name", ""): item.get("devicePath", "") for item in items(container, "volumeDevices")
    }
    for index, mount in enumerate(items(container, "volumeMounts")):
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
        if name in devices:
            yield problems.invalid(f"{where}.name", name, "must not already exist in volumeDevices")
        if folder in devices.values():
            text = "must not already exist as a path in volumeDevices"
            yield problems.invalid(f"{where}.mountPath", folder, text)
        yield from _below_mount(mount, path, where)
        yield from _propagation(mount, path, container)


def _below_mount(mount: JsonObject, path: str, where: str) -> Iterator[FieldError]:
    if mount.get("subPath"):
        yield from check.clean_relative_path(f"{path}.subPath", mount["subPath"])
    if mount.get("subPathExpr"):
        if mount.get("subPath"):
            text = "subPathExpr and subPath are mutually exclusive"
            yield problems.invalid(f"{where}.subPathExpr", mount["subPathExpr"], text)
        yield from check.clean_relative_path(f"{path}.subPathExpr", mount["subPathExpr"])


def _propagation(mount: JsonObject, path: str, container: JsonObject) -> Iterator[FieldError]:
    where, how = f"{path}.mountPropagation", mount.get("mountPropagation")
    yield from check.optional(where, how, _PROPAGATIONS)
    if how == "Bidirectional" and not section(container, "securityContext").get("privileged"):
        text = "Bidirectional mount propagation is available only to privileged containers"
        yield problems.forbidden(where, text)
    where, recursion = f"{path}.recursiveReadOnly", mount.get("recursiveReadOnly")
    if recursion is None or recursion == "Disabled":
        return
    if recursion not in _RECURSIONS:
        yield problems.not_supported(where, recursion, _RECURSIONS)
        return
    if not mount.get("readOnly"):
        yield problems.forbidden(where, "may only be specified when readOnly is true")
    if how not in (None, "None"):
        text = "may only be specified when mountPropagation is None or not specified"
        yield problems.forbidden(where, text)


def _devices(container: JsonObject, path: str, volumes: Volumes) -> Iterator[FieldError]:
    names_seen: set[str] = set()
    paths_seen: set[str] = set()
    mounts: dict[str, str] = {
        item.get("name", ""): item.get("mountPath", "") for item in items(container, "volumeMounts")
    }
    for index, device in enumerate(items(container, "volumeDevices")):
        where, name, file = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            yield problems.required(f"{where}.name")
        if name in names_seen:
            yield problems.invalid(f"{where}.name", name, "must be unique")
        if name not in volumes:
            yield problems.not_found(f"{where}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield problems.invalid(f"{where}.name", name, text)
        if not file:
            yield problems.required(f"{where}.devicePath")
        if file in paths_seen:
            yield problems.invalid(f"{where}.devicePath", file, "must be unique")
        if ".." in file.split("/"):
            yield problems.invalid(f"{where}.devicePath", file, "can not contain backsteps ('..')")
        else:
            paths_seen.add(file)
        if name in mounts:
            yield problems.invalid(f"{where}.name", name, "must not already exist in volumeMounts")
        if file in mounts.values():
            text = "must not already exist as a path in volumeMounts"
            yield problems.invalid(f"{where}.devicePath", file, text)
        if name:
            names_seen.add(name)


def _resize_policy(policies: Sequence[JsonObject], path: str, restart: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, how = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield problems.duplicate(f"{path}[{index}]", name)
        seen.add(name)
        yield from check.choice(path, name, _RESIZED)
        yield from check.choice(path, how, _RESIZES)
        if restart == "Never" and how != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield problems.invalid(path, how, text)


def check_handlers(container: JsonObject, path: str, spec: JsonObject) -> Iterator[FieldError]:
    """Check the lifecycle hooks and probes of a container of a Pod's spec."""
    grace = spec.get("terminationGracePeriodSeconds")
    lifecycle: JsonObject = section(container, "lifecycle")
    for name in HOOKS:
        if (hook := lifecycle.get(name)) is not None:
            yield from _handler(hook, f"{path}.lifecycle.{name}", grace)
    for kind in PROBES:
        if container.get(kind) is not None:
            yield from _probe(container[kind], f"{path}.{kind}", kind, grace)


def _probe(probe: JsonObject, path: str, kind: str, grace: int | None) -> Iterator[FieldError]:
    yield from _handler(probe, path, grace)
    yield from check.none_negative(probe, path, *_PROBE_NUMBERS)
    own, where = probe.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    if own is not None and own <= 0:
        yield problems.invalid(where, own, "must be greater than 0")
    if kind == "readinessProbe":
        if own is not None:
            yield problems.invalid(where, own, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield problems.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(action: JsonObject, path: str, grace: int | None) -> Iterator[FieldError]:
    given = [name for name in _HANDLERS if action.get(name) is not None]
    if not given:
        yield problems.required(path, "must specify a handler type")
        return
    yield from _action(given[0], action[given[0]], f"{path}.{given[0]}", grace)
    for extra in given[1:]:
        yield problems.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")


def _action(kind: str, action: Any, path: str, grace: int | None) -> Iterator[FieldError]:
    if kind == "exec" and not action.get("command"):
        yield problems.required(f"{path}.command")
    elif kind == "httpGet":
        yield from _http(action, path)
    elif kind == "tcpSocket":
        yield from check.port_or_name(f"{path}.port", action.get("port"))
    elif kind == "grpc":
        yield from check.port(f"{path}.port", action.get("port", 0))
    elif kind == "sleep" and grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield problems.invalid(path, action["seconds"], text)


def _http(action: JsonObject, path: str) -> Iterator[FieldError]:
    if not action.get("path"):
        yield problems.required(f"{path}.path")
    yield from check.port_or_name(f"{path}.port", action.get("port"))
    yield from check.one_of(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
    for header in items(action, "httpHeaders"):
        name = header.get("name", "")
        yield from check.named(f"{path}.httpHeaders", name, names.http_header_name(name))
