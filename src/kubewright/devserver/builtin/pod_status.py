"""What a kubelet says of a Pod: its addresses, its node to be, its conditions."""

import ipaddress
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.objects import JsonObject, items, section


def agree_on_addresses(status: JsonObject) -> None:
    """Let the one address and the list of them say the same; of two the older field is believed."""
    first, given = status.get("podIP"), items(status, "podIPs")
    if first and (not given or given[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif given and not first and given[0].get("ip"):
        status["podIP"] = given[0]["ip"]


def check_pod_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check what changed in a Pod's status."""
    status, before = section(new, "status"), section(old, "status")
    errors = [
        error
        for index, condition in enumerate(items(status, "conditions"))
        for error in check.named(
            f"status.conditions[{index}].Type",
            condition.get("type", ""),
            names.qualified_name(condition.get("type", "")),
        )
    ]
    node = status.get("nominatedNodeName", "")
    if node and node != before.get("nominatedNodeName"):
        errors += check.named("status.nominatedNodeName", node, names.dns1123_subdomain(node))
    if (generation := status.get("observedGeneration", 0)) < 0:
        text = "must be a non-negative integer"
        errors.append(problems.invalid("status.observedGeneration", generation, text))
    for field in ("podIPs", "hostIPs"):
        errors += _addresses(items(status, field), items(before, field), f"status.{field}")
    hosts: Sequence[JsonObject] = items(status, "hostIPs")
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        text = "must be equal to `hostIP`"
        errors.append(problems.invalid("status.hostIPs[0].ip", hosts[0].get("ip", ""), text))
    return errors


def _addresses(given: Sequence[JsonObject], known: Sequence[JsonObject], path: str) -> Iterator[FieldError]:
    kept = {item.get("ip", "") for item in known}
    found = [item.get("ip", "") for item in given]
    for index, address in enumerate(found):
        if address not in kept:
            yield from ip_checks.address(f"{path}[{index}]", address)
    families = [ipaddress.ip_address(item).version for item in found if ip_checks.is_address(item)]
    if len(families) > len(set(families)):
        shown = [{"IP": item} for item in found]
        yield invalid_struct(path, shown, "may specify no more than one IP for each IP family")
