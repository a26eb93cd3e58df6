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
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC, text_at
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
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def needs_health_port(spec: JsonObject) -> bool:
    """Return True if a Service has a health check node port."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _is_external(spec: JsonObject) -> bool:
    """Return True if a Service can be reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in _WITH_NODE_PORTS or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def check_service(service: JsonObject) -> list[FieldError]:
    """Check a Service, before or after the allocation of addresses and ports."""
    spec = service["spec"]
    kind, ports = spec.get("type", ""), items(spec, "ports")
    headless = _is_headless(spec)
    errors = _topology(service)
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
    errors += _addresses(spec)
    for index, item in enumerate(items(spec, "externalIPs")):
        path = f"spec.externalIPs[{index}]"
        errors += ip_checks.address(path, item) or ip_checks.endpoint_address(path, item)
    errors += check.choice("spec.type", kind, _TYPES)
    errors += _node_ports(kind, ports)
    errors += _repeated_ports(ports)
    errors += _balancing(service)
    return errors + list(_traffic(spec))


def _is_headless(spec: JsonObject) -> bool:
    return items(spec, "clusterIPs") == ["None"]


def _topology(service: JsonObject) -> list[FieldError]:
    annotations: dict[str, str] = section(service["metadata"], "annotations")
    mode, hints = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    text = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
    return [problems.invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, text)]


def _external_name(spec: JsonObject) -> Iterator[FieldError]:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield problems.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    name = (spec.get("externalName") or "").removesuffix(".")
    yield from check.name("spec.externalName", name, names.dns1123_subdomain)


def _affinity(spec: JsonObject) -> Iterator[FieldError]:
    kind, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
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
    """Check the addresses and families; the real server does so before it allocates addresses, and again later."""
    if spec.get("type") == "ExternalName":
        return
    first, given = spec.get("clusterIP") or "", items(spec, "clusterIPs")
    if first and not given:
        yield problems.required("spec.clusterIPs")
    elif first and given[0] != first:
        yield problems.invalid("spec.clusterIPs", given, "first value must match `clusterIP`")
    elif given and not first:
        yield problems.invalid("spec.clusterIPs", given, "must be empty when `clusterIP` is not specified")
    families: Sequence[str] = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        yield from check.one_of(path, family, _FAMILIES)
        if family in families[:index]:
            yield problems.duplicate(path, family)
    yield from check.optional("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILY_POLICIES)
    wrong: list[FieldError] = []
    for index, address in enumerate(given):
        if (index, address) != (0, "None"):
            wrong += ip_checks.address(f"spec.clusterIPs[{index}]", address)
        elif len(given) > 1:
            wrong.append(
                problems.invalid("spec.clusterIPs", given, "'None' must be the first and only value")
            )
    yield from wrong
    if len(given) > 2:
        yield problems.invalid("spec.clusterIPs", given, "may only hold up to 2 values")
    if wrong or _is_headless(spec):
        return
    versions = [f"IPv{ip_checks.parse_address(item).version}" for item in given]
    if len(given) > 1 and len(set(versions)) < 2:
        text = "may specify no more than one IP for each IP family"
        yield problems.invalid("spec.clusterIPs", given, text)
    for index, (family, version) in enumerate(zip(families, versions, strict=False)):
        if family in _FAMILIES and family != version:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield problems.invalid(f"spec.clusterIPs[{index}]", given[index], text)


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


def _balancing(service: JsonObject) -> Iterator[FieldError]:
    spec: JsonObject = service["spec"]
    balanced, ranges = spec.get("type") == "LoadBalancer", items(spec, "loadBalancerSourceRanges")
    annotated: str | None = section(service["metadata"], "annotations").get(_SOURCE_RANGES)
    if ranges:
        # The real server writes this field with a capital.
        path = "spec.LoadBalancerSourceRanges"
        networks = [(f"{path}[{index}]", item) for index, item in enumerate(ranges)]
    else:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        networks = [(path, item) for item in (annotated or "").split(",") if (annotated or "").strip()]
    if (ranges or annotated is not None) and not balanced:
        yield problems.forbidden(path, _ONLY_LOAD_BALANCER)
    for where, item in networks:
        yield from ip_checks.network(where, item.strip())
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
    outside = _is_external(spec)
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
    yield from check.optional("spec.trafficDistribution", spec.get("trafficDistribution"), _DISTRIBUTIONS)


def update_service(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check the update of a Service."""
    after, before = new["spec"], old["spec"]
    errors = list(_changed_addresses(after, before))
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


def _changed_addresses(after: JsonObject, before: JsonObject) -> Iterator[FieldError]:
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    if _is_headless(after) and _is_headless(before):
        return
    new, old = items(after, "clusterIPs"), items(before, "clusterIPs")
    compared = len(old) if len(old) == len(new) else 1
    for index, (item, was) in enumerate(zip(new[:compared], old[:compared], strict=False)):
        if item != was:
            yield problems.invalid(f"spec.clusterIPs[{index}]", new, "may not change once set")
    if old and not new:
        yield problems.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
    if len(old) > 1 == len(new) and after.get("ipFamilyPolicy") != "SingleStack":
        text = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        yield problems.invalid(_POLICY, after.get("ipFamilyPolicy"), text)


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
    if errors := list(_addresses(spec)):
        return errors
    _release_second_family(spec, old or {})
    if errors := [*_reduced(spec, old or {}), *_too_many(spec), *_unknown_families(spec)]:
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


def _release_second_family(spec: JsonObject, old: JsonObject) -> None:
    """Remove the second family if only the policy changes, to single-stack."""
    families = items(spec, "ipFamilies")
    if spec["ipFamilyPolicy"] == "SingleStack" and families == items(old, "ipFamilies"):
        spec["ipFamilies"] = families[:1]


def _reduced(spec: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    requested, before = items(spec, "ipFamilies"), items(old, "ipFamilies")
    if requested and len(requested) < len(before) and spec["ipFamilyPolicy"] != "SingleStack":
        text = "must be 'SingleStack' to release the secondary IP family"
        yield problems.invalid(_POLICY, spec["ipFamilyPolicy"], text)


def _unknown_families(spec: JsonObject) -> Iterator[FieldError]:
    """Report addresses whose family is not requested by name and not configured."""
    given = items(spec, "clusterIPs")
    for index in range(len(items(spec, "ipFamilies")), len(given)):
        if given[index] == "None":
            return
        found = f"IPv{ip_checks.parse_address(given[index]).version}"
        if found != _CLUSTER_FAMILY:
            text = f"{found} is not configured on this cluster"
            yield problems.invalid(f"spec.clusterIPs[{index}]", given, text)


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
    if _is_external(spec):
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


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    """Keep the addresses and ports that the client left out."""
    spec, before = new["spec"], section(old, "spec")
    _drop_fields_of_old_type(spec, before)
    if spec["type"] != "LoadBalancer":
        new["status"] = {**section(new, "status"), "loadBalancer": {}}
    if "ExternalName" not in (spec["type"], before.get("type")):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    _match_addresses(spec, before)
    if spec["type"] == "ExternalName":
        _drop_addresses(spec, before)
        return
    if needs_health_port(before) and needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before["healthCheckNodePort"]
    if not _needs_node_ports(spec) or not _needs_node_ports(before):
        return
    known = {port.get("name", ""): port.get("nodePort") for port in items(before, "ports")}
    kept = {port.get("nodePort") for port in items(spec, "ports")} & set(known.values())
    for port in items(spec, "ports"):
        number = known.get(port.get("name", ""))
        if not port.get("nodePort") and number and number not in kept:
            port["nodePort"] = number


def _needs_node_ports(spec: JsonObject) -> bool:
    """Return True if each port of a Service gets a node port."""
    if spec.get("type") == "LoadBalancer":
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return spec.get("type") == "NodePort"


def _match_addresses(spec: JsonObject, before: JsonObject) -> None:
    """Update `clusterIPs` if the client changed only `clusterIP`."""
    given, had = spec.get("clusterIP", ""), before.get("clusterIP", "")
    if given == had:
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = before["clusterIPs"]
    elif items(spec, "clusterIPs") == items(before, "clusterIPs"):
        if given:
            spec["clusterIPs"] = [given]
        else:
            spec.pop("clusterIPs", None)


def _drop_addresses(spec: JsonObject, before: JsonObject) -> None:
    """Remove the addresses of a Service that becomes an ExternalName, unless the client changed them."""
    if before.get("type") == "ExternalName":
        return
    for fields in (("clusterIP", "clusterIPs"), ("ipFamilies",), ("ipFamilyPolicy",)):
        if all(spec.get(name) == before.get(name) for name in fields):
            for name in fields:
                spec.pop(name, None)


def _drop_fields_of_old_type(spec: JsonObject, before: JsonObject) -> None:
    """Remove the fields that the new type does not have, unless the client changed them, which is an error."""
    kind, was = spec["type"], before.get("type")
    gone: list[str] = []
    if was == "LoadBalancer" != kind:
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if needs_health_port(before) and not needs_health_port(spec):
        gone.append("healthCheckNodePort")
    if _is_external(before) and not _is_external(spec):
        gone.append("externalTrafficPolicy")
    if was in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS:
        ports, old = items(spec, "ports"), items(before, "ports")
        if [port.get("nodePort") for port in ports] == [port.get("nodePort") for port in old]:
            for port in ports:
                port.pop("nodePort", None)
    if kind == "ExternalName" != was:
        gone.append("internalTrafficPolicy")
    for name in gone:
        if spec.get(name) == before.get(name):
            spec.pop(name, None)


async def _allocate(api: Access, new: JsonObject, old: JsonObject | None, *, dry_run: bool) -> None:
    spec, before = new["spec"], None if old is None else section(old, "spec")
    if before is None and spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["type"] == "ExternalName":
        return
    services = api.list("", "services")
    name = new["metadata"].get("name", "")
    if wrong := choose_families(spec, before):
        raise StatusError.invalid("", "Service", name, wrong)
    if not _is_headless(spec) and (before is None or before.get("type") == "ExternalName"):
        _allocate_address(spec, services, name, dry_run=dry_run)
    allocation = _PortAllocation(services, dry_run=dry_run)
    if spec["type"] in _WITH_NODE_PORTS:
        if before is None:
            _allocate_new_ports(spec, name, allocation)
        else:
            _allocate_changed_ports(spec, before, name, allocation)
    if needs_health_port(spec) and (before is None or not needs_health_port(before)):
        _allocate_health_port(spec, allocation)


def _allocate_address(spec: JsonObject, services: Sequence[JsonObject], name: str, *, dry_run: bool) -> None:
    taken = {item["spec"].get("clusterIP") for item in services}
    requested = spec.get("clusterIP", "")
    text = _unusable(requested, taken, dry_run=dry_run) if requested else ""
    address = requested or _free_address(taken)
    if not text and not name and not dry_run:
        # kube-apiserver creates an IPAddress with a reference to the Service, before it validates the Service.
        text = f'IPAddress.networking.k8s.io "{address}" is invalid: spec.parentRef.name: Required value'
    if text:
        why = f"failed to allocate IP{requested and f' {requested}'}: {text}"
        error = problems.invalid("spec.clusterIPs", spec.get("clusterIPs", [""]), why)
        raise StatusError.invalid("", "Service", name, [error])
    if not requested:
        spec["clusterIP"] = address
        spec["clusterIPs"] = [address]


def _unusable(requested: str, taken: Collection[str | None], *, dry_run: bool) -> str:
    """Return why an address cannot be allocated; as in kube-apiserver, a dry run does not see those in use."""
    address = ip_checks.parse_address(requested)
    ends = (CLUSTER_NETWORK.network_address, CLUSTER_NETWORK.broadcast_address)
    if address not in CLUSTER_NETWORK or address in ends:
        if not dry_run:
            return "the provided network does not match the current range"
        valid = f"The range of valid IPs is {CLUSTER_NETWORK}"
        return f"the provided IP ({requested}) is not in the valid range. {valid}"
    return "provided IP is already allocated" if requested in taken and not dry_run else ""


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


class _PortAllocation:
    """Node ports that one request allocates, each number once for all protocols.

    As in kube-apiserver, a dry run does not see the range of them.
    """

    def __init__(self, services: Sequence[JsonObject], *, dry_run: bool) -> None:
        specs = [item["spec"] for item in services]
        self._taken = {port.get("nodePort") for spec in specs for port in items(spec, "ports")}
        self._taken |= {spec.get("healthCheckNodePort") for spec in specs}
        self._dry_run = dry_run

    def take(self, number: int) -> str:
        """Allocate a number; return why it cannot be allocated, or nothing."""
        if number not in NODE_PORTS and not self._dry_run:
            span = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            return f"provided port is not in the valid range. The range of valid ports is {span}"
        if number in self._taken:
            return "provided port is already allocated"
        self._taken.add(number)
        return ""

    def take_any(self) -> int:
        """Allocate a number that is free."""
        number = random.choice([number for number in NODE_PORTS if number not in self._taken])
        self._taken.add(number)
        return number


def _take_port(allocation: _PortAllocation, name: str, index: int, number: int) -> None:
    if text := allocation.take(number):
        error = problems.invalid(f"spec.ports[{index}].nodePort", number, text)
        raise StatusError.invalid("", "Service", name, [error])


def _allocated_ports(spec: JsonObject) -> list[tuple[int, JsonObject]]:
    """Return the ports of a Service that have a node port or get one, with their indexes."""
    every = _needs_node_ports(spec)
    return [(index, port) for index, port in enumerate(items(spec, "ports")) if every or port.get("nodePort")]


def _allocate_new_ports(spec: JsonObject, name: str, allocation: _PortAllocation) -> None:
    """Allocate the node ports of a new Service; ports with the same number share one."""
    shared: dict[int, int] = {}
    for index, port in _allocated_ports(spec):
        number, own = port.get("port", 0), port.get("nodePort", 0)
        if number not in shared:
            same = [item for item in items(spec, "ports") if item.get("port", 0) == number]
            requested: int = next((item["nodePort"] for item in same if item.get("nodePort")), 0)
            if requested:
                _take_port(allocation, name, index, requested)
            shared[number] = port["nodePort"] = requested or allocation.take_any()
        elif not own:
            port["nodePort"] = shared[number]
        elif own != shared[number]:
            _take_port(allocation, name, index, own)


def _allocate_changed_ports(
    spec: JsonObject, before: JsonObject, name: str, allocation: _PortAllocation
) -> None:
    """Allocate the node ports of a Service that it did not have before."""
    known = {port.get("nodePort") for port in items(before, "ports")}
    seen: set[tuple[str, int]] = set()
    for index, port in _allocated_ports(spec):
        if not port.get("nodePort"):
            port["nodePort"] = allocation.take_any()
        elif port["nodePort"] not in known:
            _take_port(allocation, name, index, port["nodePort"])
            known.add(port["nodePort"])
        pair = (port.get("protocol", ""), port["nodePort"])
        if pair in seen:
            raise StatusError.unknown(f"duplicate nodePort: {{{pair[0]} {pair[1]}}}")
        seen.add(pair)


def _allocate_health_port(spec: JsonObject, allocation: _PortAllocation) -> None:
    """Allocate the port of the health check."""
    requested = spec.get("healthCheckNodePort")
    if not requested:
        spec["healthCheckNodePort"] = allocation.take_any()
    elif text := allocation.take(requested):
        raise StatusError.internal(f"failed to allocate requested HealthCheck NodePort {requested}: {text}")


def _warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec, named = new["spec"], new["spec"].get("type") == "ExternalName"
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    outside, cluster = bool(spec.get("externalIPs")), spec.get("clusterIP") not in (None, "", "None")
    found = (
        (
            _TOPOLOGY_HINTS in section(new["metadata"], "annotations"),
            f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead",
        ),
        *((cluster, text) for text in _warn_about_addresses(spec, "clusterIPs")),
        (headless and spec.get("loadBalancerIP"), "spec.loadBalancerIP is ignored for headless services"),
        (headless and outside, "spec.externalIPs is ignored for headless services"),
        (
            headless and spec.get("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        *((True, text) for text in _warn_about_addresses(spec, "externalIPs")),
        (
            outside and not headless and not named,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        *(
            (True, text)
            for text in ip_checks.form_warnings("spec.loadBalancerIP", spec.get("loadBalancerIP", ""))
        ),
        *((True, text) for text in _warn_about_addresses(spec, "loadBalancerSourceRanges")),
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


def _warn_about_addresses(spec: JsonObject, field: str) -> list[str]:
    return [
        warning
        for index, text in enumerate(items(spec, field))
        for warning in ip_checks.form_warnings(f"spec.{field}[{index}]", text)
    ]


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
        before_commit=_allocate,
        validate=check_service,
        validate_update=update_service,
        validate_status_update=service_status,
        warnings=_warnings,
        status_warnings=ip_checks.warn_about_load_balancer,
        name_check=names.dns1123_label,
        allow_create_on_update=True,
        returns_deleted=True,
        selectable_fields={
            "spec.clusterIP": text_at("spec", "clusterIP"),
            "spec.type": text_at("spec", "type"),
        },
        **STATUS_KEEPS_SPEC,
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
