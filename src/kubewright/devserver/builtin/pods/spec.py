"""Pod specs, by themselves and in templates: defaults and validation."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.pods.annotations import check_pod_annotations
from kubewright.devserver.builtin.pods.containers import (
    PROBES,
    Volumes,
    check_container,
    check_handlers,
    check_resources,
    default_container,
    host_port_conflicts,
)
from kubewright.devserver.builtin.pods.environment import check_file_volumes
from kubewright.devserver.builtin.pods.resources import check_pod_resources
from kubewright.devserver.builtin.pods.scheduling import check_affinity, check_spread, check_tolerations
from kubewright.devserver.builtin.pods.security import check_os, check_pod_security
from kubewright.devserver.builtin.pods.volumes import check_volumes, default_volume
from kubewright.devserver.builtin.rules import between, named, one_of, rules
from kubewright.devserver.objects import JsonObject, items, section

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_INT32 = 2147483647
_GROUPS = ("containers", "initContainers")
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
_NEVER_EPHEMERAL = "cannot be set for an Ephemeral Container"
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", *PROBES, "lifecycle"),
)


_ALL_GROUPS = ("initContainers", "containers", "ephemeralContainers")


def template_of(holder: JsonObject) -> JsonObject:
    """Return the Pod template of a workload's spec, after adding its missing parts."""
    template: JsonObject = holder.setdefault("template", {})
    template.setdefault("metadata", {})
    template.setdefault("spec", {})
    return template


def default_pod_spec(spec: JsonObject) -> None:
    """Set the defaults of a Pod's spec."""
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
    for group in _ALL_GROUPS:
        for container in items(spec, group):
            default_container(container)


def default_host_ports(spec: JsonObject) -> None:
    """Set the host ports of a Pod in the host's network; templates keep them missing."""
    if not spec.get("hostNetwork"):
        return
    for group in _GROUPS:
        for container in items(spec, group):
            for port in items(container, "ports"):
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def default_requests(spec: JsonObject) -> None:
    """Set requests that are missing to the limits; templates keep them missing."""
    for group in ("containers", "initContainers"):
        for container in items(spec, group):
            resources: JsonObject = section(container, "resources")
            limits: dict[str, Any] = section(resources, "limits")
            requests: dict[str, Any] = section(resources, "requests")
            missing = {name: value for name, value in limits.items() if name not in requests}
            if missing:
                resources["requests"] = {**requests, **missing}


def check_pod_spec(spec: JsonObject, path: str, pod: JsonObject | None = None) -> list[FieldError]:
    """Check the spec of this Pod, or of a template."""
    errors: list[FieldError] = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(problems.required(f"{path}.terminationGracePeriodSeconds"))
    name = "" if pod is None else pod["metadata"].get("name", "")
    volumes, found = check_volumes(items(spec, "volumes"), f"{path}.volumes", name)
    errors += found
    errors += _resource_claims(items(spec, "resourceClaims"), f"{path}.resourceClaims")
    errors += _containers(spec, f"{path}.containers", volumes)
    errors += _init_containers(spec, f"{path}.initContainers", volumes)
    errors += _ephemeral_containers(spec, f"{path}.ephemeralContainers", volumes)
    errors += check_pod_resources(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        errors += _host_ports(spec, path, always=pod is not None)
    errors += check.choice(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    errors += check.choice(f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    errors += check.labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    errors += check_pod_security(spec, path)
    errors += check_affinity(spec.get("affinity"), f"{path}.affinity")
    errors += _dns_config(spec, f"{path}.dnsConfig")
    errors += _gates(spec, path)
    errors += check_spread(items(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    errors += _host_users(spec, path)
    errors += _hostname_override(spec, path)
    errors += _OPTIONAL_FIELDS(path, spec)
    errors += check_os(spec, path)
    errors += check_file_volumes(spec, path, _ALL_GROUPS)
    return errors


def check_template(template: JsonObject, path: str) -> list[FieldError]:
    """Check a Pod template."""
    metadata: JsonObject = section(template, "metadata")
    errors = check.labels(f"{path}.labels", metadata.get("labels"))
    for key in section(metadata, "annotations"):
        errors += check.named(f"{path}.annotations", key, names.qualified_name(key.lower()))
    errors += check_pod_annotations(template, f"{path}.annotations")
    errors += check_pod_spec(section(template, "spec"), f"{path}.spec")
    if section(template, "spec").get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        errors.append(problems.forbidden(f"{path}.spec.ephemeralContainers", text))
    return errors


def _containers(spec: JsonObject, path: str, volumes: Volumes) -> Iterator[FieldError]:
    containers: Sequence[JsonObject] = items(spec, "containers")
    if not containers:
        yield problems.required(path)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes, spec)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        seen.add(name)
        yield from check_handlers(container, where, spec)
        yield from _restart_policy(container, where)
    yield from host_port_conflicts(containers, path)


_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255


def _restart_policy(container: JsonObject, path: str, *, init: bool = False) -> Iterator[FieldError]:
    policy, found = container.get("restartPolicy"), items(container, "restartPolicyRules")
    if policy is None and found:
        text = "must specify restartPolicy when restart rules are used"
        yield problems.required(f"{path}.restartPolicy", text)
    yield from check.optional(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    if policy is None and init:
        return
    if len(found) > _MAX_RESTART_RULES:
        yield problems.too_many(f"{path}.restartPolicyRules", len(found), _MAX_RESTART_RULES)
    for index, rule in enumerate(found):
        where, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        yield from check.one_of(f"{where}.action", rule.get("action", ""), _RESTART_ACTIONS)
        if codes is None:
            yield problems.required(f"{where}.exitCodes", "must be specified")
            continue
        yield from check.one_of(f"{where}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
        if len(items(codes, "values")) > _MAX_EXIT_CODES:
            count = len(items(codes, "values"))
            yield problems.too_many(f"{where}.exitCodes.values", count, _MAX_EXIT_CODES)


def _init_containers(spec: JsonObject, path: str, volumes: Volumes) -> Iterator[FieldError]:
    seen = {container.get("name", "") for container in items(spec, "containers")}
    for index, container in enumerate(items(spec, "initContainers")):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes, spec)
        yield from _restart_policy(container, where, init=True)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        elif name:
            seen.add(name)
        yield from host_port_conflicts([container], path)
        if container.get("restartPolicy") == "Always":
            yield from check_handlers(container, where, spec)
            continue
        for field in ("lifecycle", *PROBES):
            if container.get(field) is not None:
                yield problems.forbidden(f"{where}.{field}", _ONLY_SIDECARS)
        for position, policy in enumerate(items(container, "resizePolicy")):
            if policy.get("restartPolicy") == "RestartContainer":
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                place = f"{where}.resizePolicy[{position}].restartPolicy"
                yield problems.invalid(place, "RestartContainer", text)


def _ephemeral_containers(spec: JsonObject, path: str, volumes: Volumes) -> Iterator[FieldError]:
    others = [item.get("name", "") for group in _GROUPS for item in items(spec, group)]
    seen = set(others)
    for index, container in enumerate(items(spec, "ephemeralContainers")):
        where, name = f"{path}[{index}]", container.get("name", "")
        yield from check_container(container, where, volumes, spec)
        if name in seen:
            yield problems.duplicate(f"{where}.name", name)
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            yield problems.not_found(f"{where}.targetContainerName", target)
        for field in _NOT_EPHEMERAL:
            given = container.get(field)
            # The resources are not a pointer or a list in Go: an empty value counts as not set.
            if given or (given is not None and field != "resources"):
                yield problems.forbidden(f"{where}.{field}", _NEVER_EPHEMERAL)
        for position, mount in enumerate(items(container, "volumeMounts")):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    place = f"{where}.volumeMounts[{position}].{field}"
                    yield problems.forbidden(place, _NEVER_EPHEMERAL)


def _host_ports(spec: JsonObject, path: str, *, always: bool) -> Iterator[FieldError]:
    for index, container in enumerate(items(spec, "containers")):
        for position, port in enumerate(items(container, "ports")):
            host_port = port.get("hostPort", 0)
            if (always or host_port) and host_port != port.get("containerPort", 0):
                where = f"{path}.containers[{index}].ports[{position}].hostPort"
                text = "must match `containerPort` when `hostNetwork` is true"
                yield problems.invalid(where, host_port, text)


def _dns_config(spec: JsonObject, path: str) -> Iterator[FieldError]:
    config: JsonObject | None = spec.get("dnsConfig")
    servers, searches = items(config or {}, "nameservers"), items(config or {}, "searches")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield problems.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield problems.required(f"{path}.nameservers", text)
            return
    if len(servers) > 3:
        yield problems.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from ip_checks.address(f"{path}.nameservers[{index}]", server)
    if len(searches) > 32:
        yield problems.invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches).encode()) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        yield problems.invalid(f"{path}.searches", searches, text)
    for index, search in enumerate(searches):
        if search != ".":
            yield from check.search_path(f"{path}.searches[{index}]", search.removesuffix("."))
    for index, option in enumerate(items(config or {}, "options")):
        if not option.get("name"):
            yield problems.required(f"{path}.options[{index}]", "must not be empty")


def _gates(spec: JsonObject, path: str) -> Iterator[FieldError]:
    yield from _READINESS_GATES(path, spec)
    seen: set[str] = set()
    for index, gate in enumerate(items(spec, "schedulingGates")):
        where, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        yield from check.named(where, name, names.qualified_name(name))
        if name in seen:
            yield problems.duplicate(where, name)
        seen.add(name)


def _host_users(spec: JsonObject, path: str) -> Iterator[FieldError]:
    if spec.get("hostUsers") is not False:
        return
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            yield problems.forbidden(f"{path}.{shown}", "when `hostUsers` is false")
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, group)):
            if items(container, "volumeDevices"):
                where = f"{path}.{group}[{index}].volumeDevices"
                yield problems.forbidden(where, "when `hostUsers` is false")


def _resource_claims(claims: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield problems.required(f"{where}.name")
        elif name in seen:
            yield problems.duplicate(f"{where}.name", name)
        else:
            yield from check.named(f"{where}.name", name, names.dns1123_label(name))
            seen.add(name)
        sources = {field: claim.get(field) for field in ("resourceClaimName", "resourceClaimTemplateName")}
        given = [field for field, value in sources.items() if value is not None]
        if len(given) != 1:
            both = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            none = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            shown = {"Name": name, **check.struct(claim, "resourceClaimName resourceClaimTemplateName", None)}
            yield check.invalid_struct(where, shown, both if given else none)
        for field in given:
            yield from check.named(f"{where}.{field}", claim[field], names.dns1123_subdomain(claim[field]))


def _hostname_override(spec: JsonObject, path: str) -> Iterator[FieldError]:
    if (name := spec.get("hostnameOverride")) is None:
        return
    where = f"{path}.hostnameOverride"
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            yield problems.forbidden(where, f"may not be specified when {field} is true")
    if len(name.encode()) > 64:
        yield problems.too_long(where, 64)
    yield from check.named(where, name, names.dns1123_subdomain(name))


_READINESS_GATES = rules(("readinessGates[].conditionType", named(names.qualified_name, empty=True)))
_SUBDOMAIN, _LABEL = named(names.dns1123_subdomain), named(names.dns1123_label)
_OPTIONAL_FIELDS = rules(
    ("serviceAccountName", _SUBDOMAIN),
    ("nodeName", _SUBDOMAIN),
    ("activeDeadlineSeconds?", between(1, _MAX_INT32, f"must be between 1 and {_MAX_INT32}, inclusive")),
    ("hostname", _LABEL),
    ("subdomain", _LABEL),
    ("tolerations?", lambda path, found: check_tolerations(found, path)),
    ("hostAliases[].ip", lambda path, address: ip_checks.address(path, address or "")),
    ("hostAliases[].hostnames[]", named(names.dns1123_subdomain, empty=True)),
    ("priorityClassName", _SUBDOMAIN),
    ("runtimeClassName?", named(names.dns1123_subdomain, empty=True)),
    ("preemptionPolicy?", one_of("PreemptLowerPriority", "Never", required=True)),
    ("overhead?", lambda path, overhead: check_resources({"limits": overhead}, path)),
)
