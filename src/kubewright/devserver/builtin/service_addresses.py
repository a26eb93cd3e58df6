"""The ranges that Services get their addresses from, and the addresses that are taken."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "networking.k8s.io"
_RANGES = "spec.cidrs"


def _address_name(name: str) -> list[str]:
    return [error.detail for error in ip_checks.canonical_address("", name)]


def _validate_address(obj: JsonObject) -> list[FieldError]:
    path = "spec.parentRef"
    parent: JsonObject | None = section(obj, "spec").get("parentRef")
    if parent is None:
        return [problems.required(path)]
    group = parent.get("group", "")
    errors = check.named(f"{path}.group", group, names.dns1123_subdomain(group)) if group else []
    for field in ("resource", "name", "namespace"):
        value = parent.get(field, "")
        if value:
            errors += check.named(f"{path}.{field}", value, names.path_segment(value))
        elif field != "namespace":
            errors.append(problems.required(f"{path}.{field}"))
    return errors


def _update_address(new: JsonObject, old: JsonObject) -> list[FieldError]:
    parent: JsonObject | None = section(new, "spec").get("parentRef")
    if parent == section(old, "spec").get("parentRef"):
        return []
    fields = ("group", "resource", "namespace", "name")
    shown = None if parent is None else {name.capitalize(): parent.get(name, "") for name in fields}
    return [invalid_struct("spec.parentRef", shown, check.IMMUTABLE)]


def _validate_range(obj: JsonObject) -> list[FieldError]:
    ranges: Sequence[str] = items(section(obj, "spec"), "cidrs")
    if not ranges:
        return [problems.required(_RANGES, "at least one CIDR required")]
    if len(ranges) > 2:
        return [invalid_struct(_RANGES, {"CIDRs": ranges}, "may only hold up to 2 values")]
    errors = [
        error
        for index, item in enumerate(ranges)
        for error in ip_checks.canonical_network(f"{_RANGES}[{index}]", item)
    ]
    found = [network.version for item in ranges if (network := ip_checks.parse_network(item)) is not None]
    if len(found) > len(set(found)):
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(problems.invalid(_RANGES, ranges, text))
    return errors


def _update_range(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Let a range get a second one of the other family; all else stays."""
    after, before = items(section(new, "spec"), "cidrs"), items(section(old, "spec"), "cidrs")
    widened = len(before) == 1 and len(after) == 2
    if len(after) != len(before) and not widened:
        return [problems.invalid(_RANGES, after or None, check.IMMUTABLE)]
    errors = [
        problems.invalid(f"{_RANGES}[{index}]", item, check.IMMUTABLE)
        for index, (item, was) in enumerate(zip(after, before, strict=False))
        if item != was
    ]
    return errors + (_validate_range(new) if widened else [])


def _range_row(obj: JsonObject, now: float) -> list[Any]:
    ranges = ",".join(items(section(obj, "spec"), "cidrs"))
    return [obj["metadata"]["name"], ranges, object_age(obj, now)]


def _address_row(obj: JsonObject, now: float) -> list[Any]:
    """Give an address's cells: one more than it has columns, as the real server does."""
    shown, parent = NONE, section(obj, "spec").get("parentRef")
    if parent is not None:
        kind = ".".join(
            part for part in (parent.get("resource", ""), parent.get("group", "")) if part
        ).lower()
        shown = "/".join(part for part in (kind, parent.get("namespace", ""), parent.get("name", "")) if part)
    return [obj["metadata"]["name"], shown, object_age(obj, now)]


STRATEGIES = {
    (GROUP, "ServiceCIDR"): Strategy(
        validate=_validate_range,
        validate_update=_update_range,
        columns=(NAME, Column("CIDRs"), AGE),
        row=_range_row,
    ),
    (GROUP, "IPAddress"): Strategy(
        validate=_validate_address,
        validate_update=_update_address,
        name_check=_address_name,
        columns=(NAME, Column("ParentRef")),
        row=_address_row,
    ),
}
