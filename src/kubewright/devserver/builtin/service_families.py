"""The families of a Service's addresses, on a cluster that has those of IPv4 only."""

import ipaddress
from collections.abc import Iterator, Sequence

from kubewright.api import FieldError, problems
from kubewright.devserver.objects import JsonObject, items

_HERE = "IPv4"
_OTHER = {"IPv4": "IPv6", "IPv6": "IPv4"}
_POLICY = "spec.ipFamilyPolicy"


def choose_families(spec: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Say which families a Service has where its author does not, or find why it cannot have those it wants."""
    free_standing = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        kept = (old or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = kept or ("RequireDualStack" if free_standing else "SingleStack")
    if errors := [*_mismatched(spec), *_too_many(spec)]:
        return errors
    families: list[str] = list(items(spec, "ipFamilies"))
    if free_standing:
        families = families or [_HERE]
        if len(families) < 2 and spec["ipFamilyPolicy"] != "SingleStack":
            families.append(_OTHER[families[0]])
    elif errors := list(_not_here(spec, families)):
        return errors
    spec["ipFamilies"] = families or [_HERE]
    return []


def _mismatched(spec: JsonObject) -> Iterator[FieldError]:
    """Find addresses that are not of the family that was asked for."""
    families: Sequence[str] = items(spec, "ipFamilies")
    for index, address in enumerate(items(spec, "clusterIPs")):
        if address == "None":
            return
        found = f"IPv{ipaddress.ip_address(address).version}"
        path = f"spec.clusterIPs[{index}]"
        if index >= len(families):
            if found != _HERE:
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


def _not_here(spec: JsonObject, families: Sequence[str]) -> Iterator[FieldError]:
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        yield problems.invalid(_POLICY, spec["ipFamilyPolicy"], text)
    for index, family in enumerate(families):
        if family != _HERE:
            yield problems.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
