"""Services: validation, IP families, and the allocation of cluster IPs and node ports."""

import ipaddress
import random
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.field_checks import duplicate_struct
from kubewright.devserver.builtin.printing import AGE, NAME, NONE, cell, labels_text, printed
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.strategy import Strategy
from kubewright.devserver.strategy.access import Access

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MAX_AFFINITY_SECONDS = 86400
_ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'"
_CLUSTER_FAMILY = "IPv4"
_OTHER_FAMILY = {"IPv4": "IPv6", "IPv6": "IPv4"}
_POLICY = "spec.ipFamilyPolicy"
CLUSTER_NETWORK = ipaddress.IPv4Network("10.0.0.0/16")
NODE_PORTS = range(30000, 32768)
# The real server allocates the lower addresses only on request or when no other is free.
_RESERVED_ADDRESSES = 256
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def needs_health_port(spec: JsonObject) -> bool:
    """Return True if a Service has a health check node port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check_service(service: JsonObject) -> list[FieldError]:
    """Check a Service, before or after the allocation of addresses and ports."""
    spec = service["spec"]
    kind, ports = spec.get("type", ""), items(spec, "ports")
    headless = spec.get("clusterIP") == "None"
    errors: list[FieldError] = []
    # Errors in addresses are reported without any others.
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
    if seconds is not None and not 0 < seconds <= _MAX_AFFINITY_SECONDS:
        text = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
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
    versions = [ipaddress.ip_address(item).version for item in found if not ip_checks.address("", item)]
    if len(found) > 1 and len(versions) == len(found) and len(set(versions)) < 2:
        text = "may specify no more than one IP for each IP family"
        yield problems.invalid("spec.clusterIPs", found, text)


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
    # The real server writes this field with a capital.
    path = "spec.LoadBalancerSourceRanges"
    if ranges and not balanced:
        yield problems.forbidden(path, _ONLY_LOAD_BALANCER)
    for index, item in enumerate(ranges):
        yield from ip_checks.network(f"{path}[{index}]", item.strip())
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield problems.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER)
    yield from _balancer_class(spec)


def _balancer_class(spec: JsonObject) -> Iterator[FieldError]:
    found, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if found is None:
        return
    if spec.get("type") != "LoadBalancer":
        yield problems.forbidden(path, _ONLY_LOAD_BALANCER)
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
    """Check the update of a Service."""
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
    # The real server checks the class twice.
    errors += _balancer_class(after)
    if needs_health_port(before) and needs_health_port(after):
        port = after.get("healthCheckNodePort", 0)
        if port != before.get("healthCheckNodePort", 0):
            errors.append(problems.forbidden("spec.healthCheckNodePort", check.IMMUTABLE))
    return errors + check_service(new)


def service_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check an update of a Service's status."""
    points: Sequence[JsonObject] = items(section(section(new, "status"), "loadBalancer"), "ingress")
    path = "status.loadBalancer.ingress"
    errors: list[FieldError] = []
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


def choose_families(spec: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Set the IP families of a Service, or return why it cannot have the requested ones.

    The cluster has IPv4 addresses only.
    """
    without_selector = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        kept = (old or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if without_selector else "SingleStack")
    if errors := [*_mismatched(spec), *_too_many(spec)]:
        return errors
    families: list[str] = list(items(spec, "ipFamilies"))
    if without_selector:
        families = families or [_CLUSTER_FAMILY]
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families.append(_OTHER_FAMILY[families[0]])
    elif errors := list(_not_configured(spec, families)):
        return errors
    spec["ipFamilies"] = families or [_CLUSTER_FAMILY]
    return []


def _mismatched(spec: JsonObject) -> Iterator[FieldError]:
    """Report addresses that are not of the requested family."""
    families: Sequence[str] = items(spec, "ipFamilies")
    for index, address in enumerate(items(spec, "clusterIPs")):
        if address == "None":
            return
        found = f"IPv{ipaddress.ip_address(address).version}"
        path = f"spec.clusterIPs[{index}]"
        if index >= len(families):
            if found != _CLUSTER_FAMILY:
                shown = f"{found} is not configured on this cluster"
                yield problems.invalid(path, items(spec, "clusterIPs"), shown)
        elif found != families[index]:
            text = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
            yield problems.invalid(path, address, text)


def _too_many(spec: JsonObject) -> Iterator[FieldError]:
    if spec["ipFamilyPolicy"] != "SingleStack":
        return
    for field, title in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
        if len(items(spec, field)) == 2:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {title} are specified"
            yield problems.invalid(_POLICY, spec["ipFamilyPolicy"], text)


def _not_configured(spec: JsonObject, families: Sequence[str]) -> Iterator[FieldError]:
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        yield problems.invalid(_POLICY, spec["ipFamilyPolicy"], text)
    for index, family in enumerate(families):
        if family != _CLUSTER_FAMILY:
            yield problems.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _default(service: JsonObject) -> None:
    spec: JsonObject = service.setdefault("spec", {})
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    if spec["sessionAffinity"] == "ClientIP":
        affinity: JsonObject = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        affinity.setdefault("timeoutSeconds", 10800)
    for port in items(spec, "ports"):
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if kind in _WITH_NODE_PORTS or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        points: Sequence[JsonObject] = items(section(section(service, "status"), "loadBalancer"), "ingress")
        for point in points:
            if point.get("ip"):
                point.setdefault("ipMode", "VIP")
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


def _prepare_create(service: JsonObject) -> None:
    service["status"] = {"loadBalancer": {}}
    spec: JsonObject = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    """Keep the addresses and ports that the client left out."""
    spec, before = new["spec"], section(old, "spec")
    _drop_fields_of_old_type(spec, before)
    if spec["type"] == "ExternalName":
        if before.get("type") != "ExternalName":
            for name in _ADDRESS_FIELDS:
                if spec.get(name) == before.get(name):
                    spec.pop(name, None)
        return
    _sync_addresses(spec, before)
    if not spec.get("clusterIP") and before.get("clusterIP"):
        for name in _ADDRESS_FIELDS:
            if not spec.get(name) and name in before:
                spec[name] = before[name]
    if needs_health_port(before) and needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]
    if spec["type"] not in _WITH_NODE_PORTS:
        return
    known = {port.get("name", ""): port.get("nodePort") for port in items(before, "ports")}
    kept = {port.get("nodePort") for port in items(spec, "ports")} & set(known.values())
    for port in items(spec, "ports"):
        number = known.get(port.get("name", ""))
        if not port.get("nodePort") and number and number not in kept:
            port["nodePort"] = number


def _sync_addresses(spec: JsonObject, before: JsonObject) -> None:
    """Update `clusterIPs` if the client changed only `clusterIP`."""
    requested, given = spec.get("clusterIP"), items(spec, "clusterIPs")
    if not given and requested and requested == before.get("clusterIP"):
        spec["clusterIPs"] = items(before, "clusterIPs")
    elif requested != before.get("clusterIP") and given == items(before, "clusterIPs"):
        spec["clusterIPs"] = [requested] if requested else []


def _drop_fields_of_old_type(spec: JsonObject, before: JsonObject) -> None:
    """Remove the fields that the new type does not have, unless the client changed them, which is an error."""
    kind, was = spec["type"], before.get("type")
    gone: list[str] = []
    if was == "LoadBalancer" != kind:
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if needs_health_port(before) and not needs_health_port(spec):
        gone.append("healthCheckNodePort")
    if was in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS:
        if not spec.get("externalIPs") or kind != "ClusterIP":
            gone.append("externalTrafficPolicy")
        ports, old = items(spec, "ports"), items(before, "ports")
        if [port.get("nodePort") for port in ports] == [port.get("nodePort") for port in old]:
            for port in ports:
                port.pop("nodePort", None)
    if kind == "ExternalName" != was:
        gone.append("internalTrafficPolicy")
    for name in gone:
        if spec.get(name) == before.get(name):
            spec.pop(name, None)


async def _allocate(api: Access, service: JsonObject, old: JsonObject | None) -> None:
    spec = service["spec"]
    # An invalid Service gets no address; validation reports the errors later.
    if spec["type"] == "ExternalName" or check_service(service):
        return
    others = [item for item in api.list("", "services") if not _same(item, service)]
    name = service["metadata"].get("name", "")
    if wrong := choose_families(spec, None if old is None else section(old, "spec")):
        raise StatusError.invalid("", "Service", name, wrong)
    _allocate_address(spec, others, name)
    if spec["type"] in _WITH_NODE_PORTS and spec.get("allocateLoadBalancerNodePorts", True):
        _allocate_ports(spec, others, name)
    _allocate_health_port(spec, others)


def _same(item: JsonObject, service: JsonObject) -> bool:
    return all(item["metadata"].get(part) == service["metadata"].get(part) for part in ("namespace", "name"))


def _allocate_address(spec: JsonObject, others: list[JsonObject], name: str) -> None:
    requested = spec.get("clusterIP") or ""
    taken = {item["spec"].get("clusterIP") for item in others}
    if requested and requested != "None":
        text = ""
        if ipaddress.ip_address(requested) not in CLUSTER_NETWORK:
            text = "the provided network does not match the current range"
        elif requested in taken:
            text = "provided IP is already allocated"
        if text:
            error = problems.invalid(
                "spec.clusterIPs", [requested], f"failed to allocate IP {requested}: {text}"
            )
            raise StatusError.invalid("", "Service", name, [error])
    if not requested:
        requested = _free_address(taken)
    spec["clusterIP"] = requested
    spec["clusterIPs"] = [requested]


def _free_address(taken: Collection[str | None]) -> str:
    """Return a random free address, from the lower part of the range only if the rest is in use."""
    size = CLUSTER_NETWORK.num_addresses - 1
    parts = (range(_RESERVED_ADDRESSES + 1, size), range(1, _RESERVED_ADDRESSES + 1))
    for part in parts:
        start = random.randrange(len(part))
        for offset in chain(part[start:], part[:start]):
            if (found := str(CLUSTER_NETWORK[offset])) not in taken:
                return found
    raise StatusError.internal(f"failed to allocate a serviceIP: range is full in {CLUSTER_NETWORK}")


def _allocate_ports(spec: JsonObject, others: list[JsonObject], name: str) -> None:
    taken = {
        (port.get("protocol"), port.get("nodePort"))
        for item in others
        for port in items(item["spec"], "ports")
    }
    for index, port in enumerate(items(spec, "ports")):
        requested, protocol = port.get("nodePort"), port.get("protocol")
        if requested and (protocol, requested) in taken:
            text = "provided port is already allocated"
            error = problems.invalid(f"spec.ports[{index}].nodePort", requested, text)
            raise StatusError.invalid("", "Service", name, [error])
        if requested and requested not in NODE_PORTS:
            span = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            text = f"provided port is not in the valid range. The range of valid ports is {span}"
            error = problems.invalid(f"spec.ports[{index}].nodePort", requested, text)
            raise StatusError.invalid("", "Service", name, [error])
        if not requested:
            free = [number for number in NODE_PORTS if (protocol, number) not in taken]
            port["nodePort"] = random.choice(free)
        taken.add((protocol, port["nodePort"]))


def _allocate_health_port(spec: JsonObject, others: list[JsonObject]) -> None:
    """Allocate the port of the health check."""
    if not needs_health_port(spec):
        return
    taken = {
        number
        for item in others
        for number in (
            item["spec"].get("healthCheckNodePort"),
            *(port.get("nodePort") for port in items(item["spec"], "ports")),
        )
    }
    requested = spec.get("healthCheckNodePort")
    if requested and requested in taken:
        text = f"failed to allocate requested HealthCheck NodePort {requested}: provided port is already allocated"
        raise StatusError.internal(text)
    own = {port.get("nodePort") for port in items(spec, "ports")}
    free = [number for number in NODE_PORTS if number not in taken and number not in own]
    spec["healthCheckNodePort"] = requested or random.choice(free)


def _warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec, named = new["spec"], new["spec"].get("type") == "ExternalName"
    headless, outside = spec.get("clusterIP") == "None", bool(spec.get("externalIPs"))
    old_hints, mode = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    found = (
        (
            old_hints in section(new["metadata"], "annotations"),
            f"annotation {old_hints} is deprecated, please use {mode} instead",
        ),
        (headless and spec.get("loadBalancerIP"), "spec.loadBalancerIP is ignored for headless services"),
        (headless and outside, "spec.externalIPs is ignored for headless services"),
        (
            headless and spec.get("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        *((True, text) for text in _warn_about_addresses(spec)),
        (
            outside and not headless and not named,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (named and outside, 'spec.externalIPs is ignored when spec.type is "ExternalName"'),
        (
            not named and spec.get("externalName"),
            'spec.externalName is ignored when spec.type is not "ExternalName"',
        ),
        (
            spec.get("trafficDistribution") == "PreferClose",
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
        ),
    )
    return [text for holds, text in found if holds]


def _warn_about_addresses(spec: JsonObject) -> list[str]:
    found: list[str] = []
    for field in ("externalIPs", "loadBalancerSourceRanges"):
        for index, text in enumerate(items(spec, field)):
            found += ip_checks.form_warnings(f"spec.{field}[{index}]", text)
    return found


def _ports_text(service: JsonObject) -> str:
    ports: list[str] = []
    for port in items(service["spec"], "ports"):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port', 0)}{node}/{port.get('protocol', '')}")
    return ",".join(ports) or NONE


def _external(service: JsonObject) -> str:
    spec = service["spec"]
    given: list[str] = list(items(spec, "externalIPs"))
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or ""
    if spec.get("type") != "LoadBalancer":
        return ",".join(given) or NONE
    points: Sequence[JsonObject] = items(section(section(service, "status"), "loadBalancer"), "ingress")
    found = {point.get("ip") or point.get("hostname") or "" for point in points} - {""}
    return ",".join([*sorted(found), *given]) or "<pending>"


STRATEGIES = {
    ("", "Service"): Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=keep_spec,
        before_commit=_allocate,
        validate=check_service,
        validate_update=update_service,
        validate_status_update=service_status,
        warnings=_warnings,
        name_check=names.dns1123_label,
        allow_create_on_update=True,
        returns_deleted=True,
        selectable_fields={
            "spec.clusterIP": text_at("spec", "clusterIP"),
            "spec.type": text_at("spec", "type"),
        },
        reset_fields=SPEC_AND_STATUS,
        **printed(
            NAME,
            cell("Type", "spec.type"),
            cell("Cluster-IP", "spec.clusterIP", NONE),
            cell("External-IP", _external),
            cell("Port(s)", _ports_text),
            AGE,
            cell("Selector", lambda service: labels_text(service["spec"].get("selector")), wide=True),
        ),
    ),
}
