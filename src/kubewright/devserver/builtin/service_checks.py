"""What is refused in a Service."""

from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.conditions import check_conditions
from kubewright.devserver.builtin.go_structs import duplicate_struct
from kubewright.devserver.objects import JsonObject, items, section

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 86400
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"


def needs_health_port(spec: JsonObject) -> bool:
    """Tell whether nodes are asked if they have a Pod of the Service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check_service(service: JsonObject) -> list[FieldError]:
    """Check a Service, be it before or after it was given what it did not ask for."""
    spec = service["spec"]
    kind, ports = spec.get("type", ""), items(spec, "ports")
    headless = spec.get("clusterIP") == "None"
    errors: list[FieldError] = []
    # Addresses come first: those that cannot be are told alone.
    if kind != "ExternalName" and (wrong := list(_addresses(spec))):
        return wrong
    if not ports and not headless and kind != "ExternalName":
        errors.append(problems.required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and headless:
        text = f"may not be set to 'None' for {kind} services"
        errors.append(problems.invalid("spec.clusterIPs[0]", "None", text))
    if kind == "ExternalName":
        errors += _external_name(spec)
    errors += _ports(ports)
    errors += check.labels("spec.selector", spec.get("selector"))
    errors += _affinity(spec)
    for index, item in enumerate(items(spec, "externalIPs")):
        path = f"spec.externalIPs[{index}]"
        errors += ip_checks.address(path, item) or ip_checks.endpoint_address(path, item)
    errors += check.choice("spec.type", kind, _TYPES)
    errors += _node_ports(kind, ports)
    errors += _repeated_ports(ports)
    errors += _balancing(spec)
    return errors + list(_traffic(spec))


def _external_name(spec: JsonObject) -> Iterator[FieldError]:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield problems.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        yield from check.named("spec.externalName", name, names.dns1123_subdomain(name))
    else:
        yield problems.required("spec.externalName")


def _affinity(spec: JsonObject) -> Iterator[FieldError]:
    kind, config, path = (
        spec.get("sessionAffinity"),
        spec.get("sessionAffinityConfig"),
        "spec.sessionAffinityConfig",
    )
    yield from check.choice("spec.sessionAffinity", kind, ("ClientIP", "None"))
    if kind == "None" and config is not None:
        yield problems.forbidden(path, "must not be set when session affinity is None")
    if kind != "ClientIP":
        return
    seconds = section(section(spec, "sessionAffinityConfig"), "clientIP").get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        text = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        yield problems.invalid(f"{path}.clientIP.timeoutSeconds", seconds, text)


def _addresses(spec: JsonObject) -> Iterator[FieldError]:
    first, given = spec.get("clusterIP") or "", items(spec, "clusterIPs")
    if first and given and given[0] != first:
        yield problems.invalid("spec.clusterIPs", given, "first value must match `clusterIP`")
    elif given and not first:
        yield problems.invalid("spec.clusterIPs", given, "must be empty when `clusterIP` is not specified")
    families: Sequence[str] = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        yield from check.one_of(path, family, _FAMILIES)
        if family in families[:index]:
            yield problems.duplicate(path, family)
    if (policy := spec.get("ipFamilyPolicy")) is not None:
        yield from check.one_of("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    found = given or ([first] if first else [])
    if found[:1] == ["None"] and len(found) > 1:
        yield problems.invalid("spec.clusterIPs", found, "'None' must be the first and only value")
    for index, address in enumerate(found):
        if (index, address) != (0, "None"):
            yield from ip_checks.address(f"spec.clusterIPs[{index}]", address)
    if len(found) > 2:
        yield problems.invalid("spec.clusterIPs", found, "may only hold up to 2 values")


def _ports(ports: Sequence[JsonObject]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name", "")
        if not name and len(ports) > 1:
            yield problems.required(f"{path}.name")
        elif name:
            yield from check.named(f"{path}.name", name, names.dns1123_label(name))
            if name in seen:
                yield problems.duplicate(f"{path}.name", name)
            seen.add(name)
        yield from check.port(f"{path}.port", port.get("port", 0))
        yield from check.choice(f"{path}.protocol", port.get("protocol"), check.PROTOCOLS)
        yield from check.port_or_name(f"{path}.targetPort", port.get("targetPort"))
        if (protocol := port.get("appProtocol")) is not None:
            yield from check.named(f"{path}.appProtocol", protocol, names.qualified_name(protocol))


def _node_ports(kind: str, ports: Sequence[JsonObject]) -> Iterator[FieldError]:
    given = [(index, port) for index, port in enumerate(ports) if port.get("nodePort")]
    for index, _ in given if kind == "ClusterIP" else ():
        text = "may not be used when `type` is 'ClusterIP'"
        yield problems.forbidden(f"spec.ports[{index}].nodePort", text)
    seen: set[tuple[str, int]] = set()
    for index, port in given:
        key = (port.get("protocol", ""), port["nodePort"])
        if key in seen:
            yield problems.duplicate(f"spec.ports[{index}].nodePort", port["nodePort"])
        seen.add(key)


def _repeated_ports(ports: Sequence[JsonObject]) -> Iterator[FieldError]:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        protocol, number = key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            yield duplicate_struct(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0})
        seen.add(key)


def _balancing(spec: JsonObject) -> Iterator[FieldError]:
    balanced, ranges = spec.get("type") == "LoadBalancer", items(spec, "loadBalancerSourceRanges")
    # The real server, too, writes this field with a capital.
    path = "spec.LoadBalancerSourceRanges"
    if ranges and not balanced:
        yield problems.forbidden(path, _ONLY_BALANCED)
    for index, item in enumerate(ranges):
        yield from ip_checks.network(f"{path}[{index}]", item.strip())
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield problems.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    yield from _balancer_class(spec)


def _balancer_class(spec: JsonObject) -> Iterator[FieldError]:
    found, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if found is None:
        return
    if spec.get("type") != "LoadBalancer":
        yield problems.forbidden(path, _ONLY_BALANCED)
    else:
        yield from check.named(path, found, names.qualified_name(found))


def _traffic(spec: JsonObject) -> Iterator[FieldError]:
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy") or ""
    outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    path = "spec.externalTrafficPolicy"
    if not outside and policy:
        yield problems.invalid(path, policy, "may only be set for externally-accessible services")
    elif outside:
        yield from check.choice(path, policy, ("Cluster", "Local"))
    port, path = spec.get("healthCheckNodePort", 0), "spec.healthCheckNodePort"
    if port and not needs_health_port(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield problems.invalid(path, port, text)
    elif port:
        yield from check.port(path, port)
    path = "spec.internalTrafficPolicy"
    inside = spec.get("internalTrafficPolicy")
    if inside is None and kind in ("ClusterIP", "LoadBalancer", "NodePort"):
        yield problems.required(path)
    elif inside is not None:
        yield from check.one_of(path, inside, ("Cluster", "Local"))
    if (distribution := spec.get("trafficDistribution")) is not None:
        yield from check.one_of("spec.trafficDistribution", distribution, _DISTRIBUTIONS)


def update_service(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check the change of a Service."""
    after, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    named = "ExternalName" in (before.get("type"), after.get("type"))
    if before.get("clusterIP") and after.get("clusterIP") != before["clusterIP"] and not named:
        text = "may not change once set"
        errors.append(problems.invalid("spec.clusterIPs[0]", [after.get("clusterIP")], text))
    if after.get("type") == before.get("type") == "LoadBalancer":
        found = after.get("loadBalancerClass")
        if found != before.get("loadBalancerClass"):
            errors.append(problems.invalid("spec.loadBalancerClass", found, "may not change once set"))
    # The real server looks at the class twice.
    errors += _balancer_class(after)
    if needs_health_port(before) and needs_health_port(after):
        port = after.get("healthCheckNodePort", 0)
        if port != before.get("healthCheckNodePort", 0):
            errors.append(problems.forbidden("spec.healthCheckNodePort", check.IMMUTABLE))
    return errors + check_service(new)


def service_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check what is told of a Service's load balancer."""
    points: Sequence[JsonObject] = items(section(section(new, "status"), "loadBalancer"), "ingress")
    path = "status.loadBalancer.ingress"
    errors = list(check_conditions(items(section(new, "status"), "conditions"), "status.conditions"))
    if points and new["spec"].get("type") != "LoadBalancer":
        errors.append(problems.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
        return errors
    for index, point in enumerate(points):
        errors += _balancer_point(point, f"{path}[{index}]")
    return errors


def _balancer_point(point: JsonObject, path: str) -> Iterator[FieldError]:
    address, mode, host = point.get("ip"), point.get("ipMode"), point.get("hostname")
    if address:
        yield from ip_checks.address(f"{path}.ip", address)
    if mode is not None:
        if not address:
            yield problems.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
        else:
            yield from check.one_of(f"{path}.ipMode", mode, ("Proxy", "VIP"))
    elif address:
        yield problems.required(f"{path}.ipMode", "must be specified when `ip` is set")
    if host:
        yield from check.named(f"{path}.hostname", host, names.dns1123_subdomain(host))
        if ip_checks.is_address(host):
            yield problems.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")
