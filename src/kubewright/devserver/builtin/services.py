"""Services with their addresses and ports, and the endpoints behind them."""

import ipaddress
import random
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.access import Access
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, labels_text, object_age, wide
from kubewright.devserver.objects import Wire
from kubewright.devserver.status import StatusError
from kubewright.devserver.strategy import Column, Strategy

CLUSTER_NETWORK = ipaddress.ip_network("10.0.0.0/24")
NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def _default(service: Wire) -> None:
    spec: Wire = service.setdefault("spec", {})
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("type", "ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port["port"]
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")


def _prepare_create(service: Wire) -> None:
    service["status"] = {"loadBalancer": {}}


def _prepare_update(new: Wire, old: Wire) -> None:
    """Keep the addresses that a client left out, as it may when it replaces a Service."""
    spec, before = new["spec"], old.get("spec") or {}
    if spec.get("type") != "ExternalName" and not spec.get("clusterIP") and before.get("clusterIP"):
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if name in before:
                spec.setdefault(name, before[name])
                spec[name] = spec[name] or before[name]
    known = {(port.get("name", ""), port["port"]): port.get("nodePort") for port in before.get("ports") or ()}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and known.get((port.get("name", ""), port["port"])):
                port["nodePort"] = known[port.get("name", ""), port["port"]]


async def _allocate(api: Access, service: Wire, old: Wire | None) -> None:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        for name in ("clusterIP", "clusterIPs"):
            spec.pop(name, None)
        return
    others = [item for item in api.list("", "services") if not _same(item, service)]
    _allocate_address(spec, others, service["metadata"].get("name", ""))
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts", True):
        _allocate_ports(spec, others, service["metadata"].get("name", ""))


def _same(item: Wire, service: Wire) -> bool:
    return all(item["metadata"].get(part) == service["metadata"].get(part) for part in ("namespace", "name"))


def _allocate_address(spec: Wire, others: list[Wire], name: str) -> None:
    wanted = spec.get("clusterIP") or ""
    if wanted == "None":
        spec["clusterIPs"] = ["None"]
        return
    taken = {item["spec"].get("clusterIP") for item in others}
    if wanted and wanted in taken:
        detail = "failed to allocate IP " + wanted + ": provided IP is already allocated"
        raise StatusError.invalid(
            "", "Service", name, [problems.invalid("spec.clusterIPs", [wanted], detail)]
        )
    if not wanted:
        free = [str(host) for host in CLUSTER_NETWORK.hosts() if str(host) not in taken]
        if not free:
            raise StatusError.internal(f"failed to allocate a serviceIP: range is full in {CLUSTER_NETWORK}")
        wanted = random.choice(free[16:] or free)
    spec["clusterIP"] = wanted
    spec["clusterIPs"] = [wanted]


def _allocate_ports(spec: Wire, others: list[Wire], name: str) -> None:
    taken = {port.get("nodePort") for item in others for port in item["spec"].get("ports") or ()}
    for index, port in enumerate(spec.get("ports") or ()):
        wanted = port.get("nodePort")
        if wanted and wanted in taken:
            error = problems.invalid(
                f"spec.ports[{index}].nodePort", wanted, "provided port is already allocated"
            )
            raise StatusError.invalid("", "Service", name, [error])
        if not wanted:
            port["nodePort"] = random.choice([number for number in NODE_PORTS if number not in taken])
        taken.add(port["nodePort"])


def _validate(service: Wire) -> list[FieldError]:
    spec = service["spec"]
    errors: list[FieldError] = []
    if spec.get("type") not in _TYPES:
        errors.append(problems.not_supported("spec.type", spec.get("type"), _TYPES))
    ports: list[Wire] = spec.get("ports") or []
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and spec.get("type") != "ExternalName":
        errors.append(problems.required("spec.ports", ""))
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        errors.append(problems.required("spec.externalName", ""))
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            errors.append(problems.required(f"{path}.name", ""))
        elif name:
            errors += [problems.invalid(f"{path}.name", name, text) for text in names.dns1123_label(name)]
            if name in seen:
                errors.append(problems.duplicate(f"{path}.name", name))
            seen.add(name)
        if not 0 < port.get("port", 0) < 65536:
            errors.append(
                problems.invalid(
                    f"{path}.port", port.get("port", 0), "must be between 1 and 65535, inclusive"
                )
            )
        target = port.get("targetPort")
        if isinstance(target, int) and not 0 < target < 65536:
            errors.append(
                problems.invalid(f"{path}.targetPort", target, "must be between 1 and 65535, inclusive")
            )
        node = port.get("nodePort", 0)
        if node and node not in NODE_PORTS:
            detail = f"provided port is not in the valid range. The range of valid ports is {NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            errors.append(problems.invalid(f"{path}.nodePort", node, detail))
    return errors


def _validate_update(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate(new)
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if (
        before
        and after != before
        and "ExternalName" not in (old["spec"].get("type"), new["spec"].get("type"))
    ):
        errors.append(problems.invalid("spec.clusterIPs[0]", [after], "may not change once set"))
    return errors


def _row(service: Wire, now: float) -> list[Any]:
    spec = service["spec"]
    ports = [
        f"{port['port']}:{port['nodePort']}/{port['protocol']}"
        if port.get("nodePort")
        else f"{port['port']}/{port['protocol']}"
        for port in spec.get("ports") or ()
    ]
    return [
        service["metadata"]["name"],
        spec.get("type"),
        spec.get("clusterIP") or NONE,
        _external(service),
        ",".join(ports) or NONE,
        object_age(service, now),
        labels_text(spec.get("selector")),
    ]


def _external(service: Wire) -> str:
    spec = service["spec"]
    given = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    if spec.get("type") == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        given = [item.get("ip") or item.get("hostname") for item in ingress] + given
        return ",".join(given) or "<pending>"
    return ",".join(given) or NONE


def _endpoints_row(obj: Wire, now: float) -> list[Any]:
    found = [
        f"{address['ip']}:{port['port']}" if port else address["ip"]
        for subset in obj.get("subsets") or ()
        for port in (subset.get("ports") or [None])
        for address in subset.get("addresses") or ()
    ]
    text = ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "")
    return [obj["metadata"]["name"], text or NONE, object_age(obj, now)]


def _slice_row(obj: Wire, now: float) -> list[Any]:
    ports = [str(port.get("port") or "*") for port in obj.get("ports") or ()]
    addresses = [
        address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()
    ]
    text = ",".join(addresses[:3]) + (f" + {len(addresses) - 3} more..." if len(addresses) > 3 else "")
    return [
        obj["metadata"]["name"],
        obj.get("addressType"),
        ",".join(ports) or "<unset>",
        text or "<unset>",
        object_age(obj, now),
    ]


def _default_slice(obj: Wire) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _spec_text(name: str) -> Any:
    return lambda service: str((service.get("spec") or {}).get(name) or "")


STRATEGIES = {
    ("", "Service"): Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        before_commit=_allocate,
        validate=_validate,
        validate_update=_validate_update,
        name_check=names.dns1035_label,
        allow_create_on_update=True,
        returns_deleted=True,
        selectable_fields={"spec.clusterIP": _spec_text("clusterIP"), "spec.type": _spec_text("type")},
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
    ),
    ("", "Endpoints"): Strategy(
        allow_create_on_update=True, columns=(NAME, Column("Endpoints"), AGE), row=_endpoints_row
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        default=_default_slice,
        has_generation=True,
        columns=(NAME, Column("AddressType"), Column("Ports"), Column("Endpoints"), AGE),
        row=_slice_row,
    ),
}
