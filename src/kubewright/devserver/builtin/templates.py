"""Pod specs, alone and inside templates: their defaults and what is refused in them."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.containers import (
    PROBES,
    check_container,
    check_handlers,
    host_port_conflicts,
)
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.builtin.volumes import check_volumes, default_volume, pull_policy
from kubewright.devserver.objects import Wire

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HOOKS = ("postStart", "preStop")
_MAX_INT32 = 2147483647
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


def template_of(holder: Wire) -> Wire:
    """Give the Pod template in a workload's spec, which is put there when it is missing."""
    template: Wire = holder.setdefault("template", {})
    template.setdefault("metadata", {})
    template.setdefault("spec", {})
    return template


def default_pod_spec(spec: Wire) -> None:
    """Fill in what a Pod's author may leave out."""
    for name, value in (
        ("restartPolicy", "Always"),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
        ("terminationGracePeriodSeconds", 30),
    ):
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for volume in items(spec, "volumes"):
        default_volume(volume)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in items(spec, group):
            default_container(container, host_network=bool(spec.get("hostNetwork")))


def default_container(container: Wire, *, host_network: bool = False) -> None:
    """Fill in what a container's author may leave out."""
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("resources", {})
    for port in items(container, "ports"):
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
    for variable in items(container, "env"):
        reference = section(variable, "valueFrom").get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in PROBES:
        if container.get(name):
            _default_probe(container[name])
    for name in _HOOKS:
        hook = section(container, "lifecycle").get(name)
        if hook and hook.get("httpGet"):
            _default_http(hook["httpGet"])


def default_requests(spec: Wire) -> None:
    """Ask for as much as is allowed where a container does not say; in Pods, never in templates."""
    for group in ("containers", "initContainers"):
        for container in items(spec, group):
            resources: Wire = section(container, "resources")
            limits: dict[str, Any] = section(resources, "limits")
            requests: dict[str, Any] = section(resources, "requests")
            missing = {name: value for name, value in limits.items() if name not in requests}
            if missing:
                resources["requests"] = {**requests, **missing}


def _default_probe(probe: Wire) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if probe.get("httpGet"):
        _default_http(probe["httpGet"])
    if probe.get("grpc"):
        probe["grpc"]["service"] = probe["grpc"].get("service") or ""


def _default_http(action: Wire) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def check_pod_spec(spec: Wire, path: str) -> list[FieldError]:
    """Check a Pod's spec."""
    errors: list[FieldError] = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(problems.required(f"{path}.terminationGracePeriodSeconds"))
    volumes, found = check_volumes(items(spec, "volumes"), f"{path}.volumes")
    errors += found
    containers: Sequence[Wire] = items(spec, "containers")
    errors += _containers(containers, f"{path}.containers", volumes)
    errors += _init_containers(spec, f"{path}.initContainers", volumes)
    errors += _ephemeral_containers(spec, f"{path}.ephemeralContainers", volumes)
    if spec.get("hostNetwork"):
        errors += _host_ports(spec, path)
    errors += check.choice(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    errors += check.choice(f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    errors += check.labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    if spec.get("dnsPolicy") == "None":
        errors += _dns_config(spec.get("dnsConfig"), f"{path}.dnsConfig")
    for index, gate in enumerate(items(spec, "readinessGates")):
        kind = gate.get("conditionType", "")
        where = f"{path}.readinessGates[{index}].conditionType"
        errors += check.named(where, kind, names.qualified_name(kind))
    errors += _scheduling_gates(items(spec, "schedulingGates"), f"{path}.schedulingGates")
    errors += _spread(items(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    errors += _names(spec, path)
    errors += check_tolerations(items(spec, "tolerations"), f"{path}.tolerations")
    for index, alias in enumerate(items(spec, "hostAliases")):
        errors += check.address(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))
    for field in ("priorityClassName", "runtimeClassName"):
        if value := spec.get(field):
            errors += check.named(f"{path}.{field}", value, names.dns1123_subdomain(value))
    return errors


def check_template(template: Wire, path: str) -> list[FieldError]:
    """Check a Pod template."""
    metadata: Wire = section(template, "metadata")
    errors = check.labels(f"{path}.labels", metadata.get("labels"))
    for key in section(metadata, "annotations"):
        errors += check.named(f"{path}.annotations", key, names.qualified_name(key.lower()))
    errors += check_pod_spec(section(template, "spec"), f"{path}.spec")
    if section(template, "spec").get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(problems.forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors


def _containers(containers: Sequence[Wire], path: str, volumes: Sequence[str]) -> Iterator[FieldError]:
    if not containers:
        yield problems.required(path)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        seen.add(name)
        yield from check_handlers(container, where)
    yield from host_port_conflicts(containers, path)


def _init_containers(spec: Wire, path: str, volumes: Sequence[str]) -> Iterator[FieldError]:
    seen = {container.get("name", "") for container in items(spec, "containers")}
    for index, container in enumerate(items(spec, "initContainers")):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        elif name:
            seen.add(name)
        yield from host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            yield from check_handlers(container, where)
            continue
        for field in ("lifecycle", *PROBES):
            if container.get(field) is not None:
                yield problems.forbidden(f"{where}.{field}", _ONLY_SIDECARS)


def _ephemeral_containers(spec: Wire, path: str, volumes: Sequence[str]) -> Iterator[FieldError]:
    main = [item.get("name", "") for item in items(spec, "containers")]
    seen = {*main, *(item.get("name", "") for item in items(spec, "initContainers"))}
    for index, container in enumerate(items(spec, "ephemeralContainers")):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in main:
            yield problems.not_found(f"{where}.targetContainerName", target)


def _host_ports(spec: Wire, path: str) -> Iterator[FieldError]:
    for group in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, group)):
            for position, port in enumerate(items(container, "ports")):
                if port.get("hostPort", 0) != port.get("containerPort", 0):
                    where = f"{path}.{group}[{index}].ports[{position}].hostPort"
                    text = "must match `containerPort` when `hostNetwork` is true"
                    yield problems.invalid(where, port.get("hostPort", 0), text)


def _dns_config(config: Wire | None, path: str) -> Iterator[FieldError]:
    if config is None:
        yield problems.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif not config.get("nameservers"):
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield problems.required(f"{path}.nameservers", text)


def _scheduling_gates(gates: Sequence[Wire], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from check.named(f"{path}[{index}]", name, names.qualified_name(name))
        if name in seen:
            yield problems.duplicate(f"{path}[{index}]", name)
        seen.add(name)


def _spread(constraints: Sequence[Wire], path: str) -> Iterator[FieldError]:
    for index, item in enumerate(constraints):
        where = f"{path}[{index}]"
        if item.get("maxSkew", 0) <= 0:
            yield problems.invalid(f"{where}.maxSkew", item.get("maxSkew", 0), "must be greater than zero")
        if not item.get("topologyKey"):
            yield problems.required(f"{where}.topologyKey", "can not be empty")
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield from check.one_of(f"{where}.whenUnsatisfiable", item.get("whenUnsatisfiable", ""), choices)
        yield from check.label_selector(f"{where}.labelSelector", item.get("labelSelector"))


def _names(spec: Wire, path: str) -> Iterator[FieldError]:
    for field in ("serviceAccountName", "nodeName"):
        if value := spec.get(field):
            yield from check.named(f"{path}.{field}", value, names.dns1123_subdomain(value))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        text = f"must be between 1 and {_MAX_INT32}, inclusive"
        yield problems.invalid(f"{path}.activeDeadlineSeconds", deadline, text)
    for field in ("hostname", "subdomain"):
        if value := spec.get(field):
            yield from check.named(f"{path}.{field}", value, names.dns1123_label(value))


def check_tolerations(tolerations: Sequence[Wire], path: str) -> Iterator[FieldError]:
    """Check tolerations."""
    for index, item in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator, value = item.get("key", ""), item.get("operator", ""), item.get("value", "")
        if key:
            yield from check.named(f"{where}.key", key, names.qualified_name(key))
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield problems.invalid(f"{where}.operator", operator, text)
        if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield problems.invalid(f"{where}.effect", item.get("effect", ""), text)
        if operator in ("", "Equal"):
            if troubles := names.label_value(value):
                yield problems.invalid(f"{where}.operator", value, ";".join(troubles))
        elif operator != "Exists":
            yield problems.not_supported(f"{where}.operator", operator, ("Equal", "Exists"))
        elif value:
            text = "value must be empty when `operator` is 'Exists'"
            yield problems.invalid(f"{where}.operator", value, text)
        if effect := item.get("effect"):
            yield from check.one_of(f"{where}.effect", effect, TAINT_EFFECTS)
