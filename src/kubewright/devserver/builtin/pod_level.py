"""Resources that a Pod has as a whole, beside those of its containers."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.containers import check_resources
from kubewright.devserver.builtin.pod_amounts import amounts, container_amounts
from kubewright.devserver.objects import JsonObject, items, section

_OVERCOMMITTED = ("cpu", "memory")
_HUGE = "hugepages-"


def default_whole(spec: JsonObject) -> None:
    """Ask for a Pod as a whole what its containers ask for, or what it is allowed; in Pods, never in templates."""
    whole: JsonObject | None = spec.get("resources")
    if not whole or not (whole.get("limits") or whole.get("requests")):
        return
    limits: dict[str, Any] = dict(section(whole, "limits"))
    requests: dict[str, Any] = dict(section(whole, "requests"))
    for name, total in container_amounts(spec, "limits").items():
        if name.startswith(_HUGE) and name not in requests:
            limits.setdefault(name, str(total))
    if not limits:
        return
    for name, total in container_amounts(spec, "requests").items():
        if name in _OVERCOMMITTED:
            requests.setdefault(name, str(total))
    for name, limit in limits.items():
        if name in _OVERCOMMITTED or name.startswith(_HUGE):
            requests.setdefault(name, limit)
    whole["limits"] = dict(sorted(limits.items()))
    if requests:
        whole["requests"] = dict(sorted(requests.items()))


def check_whole(spec: JsonObject, path: str) -> Iterator[FieldError]:
    """Check what a Pod as a whole may use: at least what its containers ask for together."""
    whole: JsonObject | None = spec.get("resources")
    if whole is None:
        return
    if section(spec, "os").get("name") == "windows":
        yield problems.forbidden(path, "may not be set for a windows pod")
        return
    if whole.get("claims") is not None:
        text = "claims may not be set for Resources at pod-level"
        yield problems.forbidden(f"{path}.claims", text)
        yield from _unknown_claims(spec, path)
    yield from check_resources(whole, path, of_pod=True)
    yield from _enough(spec, path)
    limits = amounts(whole.get("limits"))
    for index, container in enumerate(items(spec, "containers")):
        for name, limit in amounts(section(container, "resources").get("limits")).items():
            if name in limits and limit > limits[name]:
                text = f"must be less than or equal to pod limits of {limits[name]}"
                yield problems.invalid(f"{path}.containers[{index}][{name}].limits", str(limit), text)


def _unknown_claims(spec: JsonObject, path: str) -> Iterator[FieldError]:
    known = [item.get("name", "") for item in items(spec, "resourceClaims")]
    for index, claim in enumerate(items(section(spec, "resources"), "claims")):
        if (name := claim.get("name", "")) not in known:
            shown = "is empty" if not known else f"are {', '.join(map(problems.quoted, known))}"
            text = f"must be one of the names in pod.spec.resourceClaims which {shown}"
            yield FieldError("FieldValueNotFound", f"{path}.claims[{index}]", name, text)


def _enough(spec: JsonObject, path: str) -> Iterator[FieldError]:
    for field in ("requests", "limits"):
        given = amounts(section(section(spec, "resources"), field))
        for name, total in container_amounts(spec, field).items():
            if field == "limits" and not name.startswith(_HUGE):
                continue
            if name in given and total > given[name]:
                text = f"must be greater than or equal to aggregate container {field} of {total}"
                yield problems.invalid(f"{path}.{field}[{name}]", str(given[name]), text)


def check_resized(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    """Check what a resize does to a Pod as a whole: cpu and memory may change, and nothing may go."""
    after, before = new.get("resources"), old.get("resources")
    if not (after or before):
        return
    if before is not None and after is None:
        yield problems.forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    for kind in ("requests", "limits"):
        wanted, given = section(after or {}, kind), section(before or {}, kind)
        if any(name in _OVERCOMMITTED and name not in wanted for name in given):
            text = f"pod-level resource {kind} cannot be removed"
            yield problems.forbidden(f"spec.resources.{kind}", text)
    if any(_fixed(after, kind) != _fixed(before, kind) for kind in ("requests", "limits")):
        yield problems.forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _fixed(resources: JsonObject | None, kind: str) -> JsonObject:
    given = section(resources or {}, kind)
    return {name: check.quantity(value) for name, value in given.items() if name not in _OVERCOMMITTED}
