"""What a Pod asks for and may use, all its containers together."""

from collections.abc import Mapping
from typing import Any

from kubewright.api import Quantity
from kubewright.devserver.objects import JsonObject, items, section

Amounts = Mapping[str, Quantity]
_ZERO = Quantity("0")


def amounts(wire: Any) -> dict[str, Quantity]:
    """Read a resource list."""
    found: Mapping[str, Any] = wire or {}
    return {name: Quantity.from_wire(value) for name, value in found.items()}


def add(total: Amounts, more: Amounts) -> dict[str, Quantity]:
    """Sum up two resource lists."""
    return {name: total.get(name, _ZERO) + more.get(name, _ZERO) for name in (*total, *more)}


def pod_amounts(spec: JsonObject) -> tuple[dict[str, Quantity], dict[str, Quantity]]:
    """Give the requests and limits of a whole Pod."""
    requests, limits = (_total(spec, field) for field in ("requests", "limits"))
    overhead = amounts(spec.get("overhead"))
    if overhead:
        requests = add(requests, overhead)
        limits = {name: value + overhead.get(name, _ZERO) for name, value in limits.items()}
    return requests, limits


def _total(spec: JsonObject, field: str) -> dict[str, Quantity]:
    """Take what the Pod says of itself, else what its containers come to."""
    return {**container_amounts(spec, field), **amounts(section(spec, "resources").get(field))}


def container_amounts(spec: JsonObject, field: str) -> dict[str, Quantity]:
    """Add up containers and sidecars; other init containers run one by one before, beside the sidecars so far."""
    total: dict[str, Quantity] = {}
    for container in items(spec, "containers"):
        total = add(total, amounts(section(container, "resources").get(field)))
    sidecars: dict[str, Quantity] = {}
    greatest: dict[str, Quantity] = {}
    for container in items(spec, "initContainers"):
        own = amounts(section(container, "resources").get(field))
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
            own = sidecars
        else:
            own = add(own, sidecars)
        greatest = {name: max(greatest.get(name, _ZERO), own.get(name, _ZERO)) for name in (*greatest, *own)}
    total = add(total, sidecars)
    return {name: max(total.get(name, _ZERO), greatest.get(name, _ZERO)) for name in (*total, *greatest)}
