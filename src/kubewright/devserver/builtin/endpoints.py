"""Endpoints and EndpointSlices: where the Pods behind a Service are."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin import ip_checks
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_SHOWN = 3


def _default_endpoints(obj: JsonObject) -> None:
    for subset in items(obj, "subsets"):
        for port in items(subset, "ports"):
            port["protocol"] = port.get("protocol") or "TCP"


def _validate_endpoints(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, subset in enumerate(items(obj, "subsets")):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            text = "must specify `addresses` or `notReadyAddresses`"
            errors.append(problems.required(path, text))
        for part in ("addresses", "notReadyAddresses"):
            for position, item in enumerate(items(subset, part)):
                where, value = f"{path}.{part}[{position}].ip", item.get("ip", "")
                if found := ip_checks.address(where, value):
                    # The real server looks twice, once to see that the address is no special one.
                    errors += [*found, problems.invalid(where, value, "must be a valid IP address")]
        for position, port in enumerate(items(subset, "ports")):
            where = f"{path}.ports[{position}]"
            errors += check.port(f"{where}.port", port.get("port", 0))
            errors += check.choice(f"{where}.protocol", port.get("protocol"), check.PROTOCOLS)
    return errors


def _shown(found: Sequence[str], nothing: str) -> str:
    more = len(found) - _SHOWN
    text = ",".join(found[:_SHOWN]) or nothing
    return f"{text} + {more} more..." if more > 0 else text


def _endpoints_row(obj: JsonObject, now: float) -> list[Any]:
    found: list[str] = []
    for subset in items(obj, "subsets"):
        addresses = [item.get("ip", "") for item in items(subset, "addresses")]
        ports: Sequence[JsonObject] = items(subset, "ports")
        if not ports:
            found += addresses
        for port in ports:
            found += [f"{address}:{port.get('port', 0)}" for address in addresses]
    return [obj["metadata"]["name"], _shown(found, NONE), object_age(obj, now)]


def _default_slice(obj: JsonObject) -> None:
    for port in items(obj, "ports"):
        if port.get("name") is None:
            port["name"] = ""
        if port.get("protocol") is None:
            port["protocol"] = "TCP"


def _relabelled_slice(new: JsonObject, old: JsonObject) -> None:
    """Count a change of labels too: they say which Service a slice belongs to."""
    if section(new["metadata"], "labels") != section(old["metadata"], "labels"):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _validate_slice(obj: JsonObject) -> list[FieldError]:
    kind = obj.get("addressType", "")
    errors = check.choice("addressType", kind, _ADDRESS_TYPES)
    for index, port in enumerate(items(obj, "ports")):
        name = port.get("name") or ""
        if name:
            errors += check.named(f"ports[{index}].name", name, names.dns1123_label(name))
        errors += check.one_of(f"ports[{index}].protocol", port.get("protocol"), check.PROTOCOLS)
    for index, endpoint in enumerate(items(obj, "endpoints")):
        path, addresses = f"endpoints[{index}].addresses", items(endpoint, "addresses")
        if not addresses:
            errors.append(problems.required(path, "must contain at least 1 address"))
        for position, value in enumerate(addresses):
            if kind == "FQDN":
                errors += check.named(f"{path}[{position}]", value, names.dns1123_subdomain(value))
            else:
                errors += ip_checks.address(f"{path}[{position}]", value)
    return errors


def _update_slice(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _validate_slice(new)
    return errors + check.unchanged("addressType", new.get("addressType"), old.get("addressType"))


def _slice_row(obj: JsonObject, now: float) -> list[Any]:
    ports = [str(port.get("port") or "*") for port in items(obj, "ports")]
    addresses = [item for endpoint in items(obj, "endpoints") for item in items(endpoint, "addresses")]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        _shown(ports, "<unset>"),
        _shown(addresses, "<unset>"),
        object_age(obj, now),
    ]


STRATEGIES = {
    ("", "Endpoints"): Strategy(
        default=_default_endpoints,
        validate=_validate_endpoints,
        validate_update=lambda new, old: _validate_endpoints(new),
        deprecation=DEPRECATED,
        allow_create_on_update=True,
        columns=(NAME, Column("Endpoints"), AGE),
        row=_endpoints_row,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        default=_default_slice,
        prepare_update=_relabelled_slice,
        validate=_validate_slice,
        validate_update=_update_slice,
        has_generation=True,
        columns=(NAME, Column("AddressType"), Column("Ports"), Column("Endpoints"), AGE),
        row=_slice_row,
    ),
}
