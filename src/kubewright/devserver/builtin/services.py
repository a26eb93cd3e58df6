"""Services with their addresses and ports."""

import ipaddress
import random
from collections.abc import Sequence
from typing import Any

from kubewright.api import names, problems
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, labels_text, object_age, wide
from kubewright.devserver.builtin.service_checks import (
    check_service,
    needs_health_port,
    service_status,
    update_service,
)
from kubewright.devserver.builtin.service_families import choose_families
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.strategy import Column, Strategy
from kubewright.devserver.strategy.access import Access

CLUSTER_NETWORK = ipaddress.ip_network("10.0.0.0/24")
NODE_PORTS = range(30000, 32768)
# The real server gives out the lower addresses only when asked for or when no other is left.
_RESERVED_ADDRESSES = 16
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


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
    """Keep the addresses and ports that a client left out, as it may when it replaces a Service."""
    spec, before = new["spec"], section(old, "spec")
    _drop_what_its_type_had(spec, before)
    if spec["type"] == "ExternalName":
        if before.get("type") != "ExternalName":
            for name in _ADDRESS_FIELDS:
                if spec.get(name) == before.get(name):
                    spec.pop(name, None)
        return
    _follow_address(spec, before)
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


def _follow_address(spec: JsonObject, before: JsonObject) -> None:
    """Let the list of addresses follow the one, where a client changed only that."""
    wanted, given = spec.get("clusterIP"), items(spec, "clusterIPs")
    if not given and wanted and wanted == before.get("clusterIP"):
        spec["clusterIPs"] = items(before, "clusterIPs")
    elif wanted != before.get("clusterIP") and given == items(before, "clusterIPs"):
        spec["clusterIPs"] = [wanted] if wanted else []


def _drop_what_its_type_had(spec: JsonObject, before: JsonObject) -> None:
    """Take away what only the old type had, unless the client gave it another value: that is its mistake."""
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
    # What is refused anyway gets no address; the checks that follow say why.
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
    wanted = spec.get("clusterIP") or ""
    taken = {item["spec"].get("clusterIP") for item in others}
    if wanted and wanted != "None":
        text = ""
        if ipaddress.ip_address(wanted) not in CLUSTER_NETWORK:
            text = "the provided network does not match the current range"
        elif wanted in taken:
            text = "provided IP is already allocated"
        if text:
            error = problems.invalid("spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {text}")
            raise StatusError.invalid("", "Service", name, [error])
    if not wanted:
        hosts = [str(host) for host in CLUSTER_NETWORK.hosts()]
        upper, lower = hosts[_RESERVED_ADDRESSES:], hosts[:_RESERVED_ADDRESSES]
        free = [host for host in upper if host not in taken] or [host for host in lower if host not in taken]
        if not free:
            raise StatusError.internal(f"failed to allocate a serviceIP: range is full in {CLUSTER_NETWORK}")
        wanted = random.choice(free)
    spec["clusterIP"] = wanted
    spec["clusterIPs"] = [wanted]


def _allocate_ports(spec: JsonObject, others: list[JsonObject], name: str) -> None:
    taken = {
        (port.get("protocol"), port.get("nodePort"))
        for item in others
        for port in items(item["spec"], "ports")
    }
    for index, port in enumerate(items(spec, "ports")):
        wanted, protocol = port.get("nodePort"), port.get("protocol")
        if wanted and (protocol, wanted) in taken:
            text = "provided port is already allocated"
            error = problems.invalid(f"spec.ports[{index}].nodePort", wanted, text)
            raise StatusError.invalid("", "Service", name, [error])
        if wanted and wanted not in NODE_PORTS:
            span = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            text = f"provided port is not in the valid range. The range of valid ports is {span}"
            error = problems.invalid(f"spec.ports[{index}].nodePort", wanted, text)
            raise StatusError.invalid("", "Service", name, [error])
        if not wanted:
            free = [number for number in NODE_PORTS if (protocol, number) not in taken]
            port["nodePort"] = random.choice(free)
        taken.add((protocol, port["nodePort"]))


def _allocate_health_port(spec: JsonObject, others: list[JsonObject]) -> None:
    """Give a port at which nodes say whether they have a Pod, where traffic goes only to those that have."""
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
    wanted = spec.get("healthCheckNodePort")
    if wanted and wanted in taken:
        text = (
            f"failed to allocate requested HealthCheck NodePort {wanted}: provided port is already allocated"
        )
        raise StatusError.internal(text)
    own = {port.get("nodePort") for port in items(spec, "ports")}
    free = [number for number in NODE_PORTS if number not in taken and number not in own]
    spec["healthCheckNodePort"] = wanted or random.choice(free)


def _warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec, named = new["spec"], new["spec"].get("type") == "ExternalName"
    headless, outside = spec.get("clusterIP") == "None", bool(spec.get("externalIPs"))
    old_hints, mode = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    said = (
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
        *((True, text) for text in _address_warnings(spec)),
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
    return [text for holds, text in said if holds]


def _address_warnings(spec: JsonObject) -> list[str]:
    found: list[str] = []
    for field in ("externalIPs", "loadBalancerSourceRanges"):
        for index, text in enumerate(items(spec, field)):
            found += ip_checks.form_warnings(f"spec.{field}[{index}]", text)
    return found


def _row(service: JsonObject, now: float) -> list[Any]:
    spec = service["spec"]
    ports: list[str] = []
    for port in items(spec, "ports"):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port', 0)}{node}/{port.get('protocol', '')}")
    return [
        service["metadata"]["name"],
        spec.get("type"),
        spec.get("clusterIP") or NONE,
        _external(service),
        ",".join(ports) or NONE,
        object_age(service, now),
        labels_text(spec.get("selector")),
    ]


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
        columns=(
            NAME,
            Column("Type"),
            Column("Cluster-IP"),
            Column("External-IP"),
            Column("Port(s)"),
            AGE,
            wide("Selector"),
        ),
        row=_row,
        reset_fields=SPEC_AND_STATUS,
    ),
}
