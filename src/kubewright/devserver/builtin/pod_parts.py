"""Parts of a Pod that are written by themselves: its node, its ephemeral containers, its resources."""

from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin.pod_level import check_resized
from kubewright.devserver.builtin.quality import quality_of
from kubewright.devserver.builtin.templates import check_pod_spec
from kubewright.devserver.builtin.writes import restore
from kubewright.devserver.objects import JsonObject, copy, items, section
from kubewright.devserver.strategy import Part

_GROUPS = ("containers", "initContainers")
_RESIZED = ("resources", "resizePolicy")
_MUTABLE = ("cpu", "memory")


def _only_ephemeral(new: JsonObject, old: JsonObject) -> None:
    added = new["spec"].get("ephemeralContainers")
    new["spec"] = copy(old["spec"])
    if added:
        new["spec"]["ephemeralContainers"] = added
    else:
        new["spec"].pop("ephemeralContainers", None)
    restore(new, old, "status")


def _check_ephemeral(new: JsonObject, old: JsonObject) -> list[FieldError]:
    path = "spec.ephemeralContainers"
    errors = check_pod_spec(new["spec"], "spec", new)
    after = {item.get("name"): item for item in items(new["spec"], "ephemeralContainers")}
    for item in items(old["spec"], "ephemeralContainers"):
        name = problems.quoted(item.get("name", ""))
        if item.get("name") not in after:
            text = f"existing ephemeral containers {name} may not be removed\n"
            errors.append(problems.forbidden(path, text))
        elif after[item.get("name")] != item:
            text = f"existing ephemeral containers {name} may not be changed\n"
            errors.append(problems.forbidden(path, text))
    return errors


def _only_resources(new: JsonObject, old: JsonObject) -> None:
    wanted = {group: {item.get("name"): item for item in items(new["spec"], group)} for group in _GROUPS}
    whole = new["spec"].get("resources")
    given = {group: items(new["spec"], group) for group in _GROUPS}
    new["spec"] = copy(old["spec"])
    restore(new["spec"], {} if whole is None else {"resources": whole}, "resources")
    for group in _GROUPS:
        if _names(given[group]) != _names(items(new["spec"], group)):
            # Other containers are refused, so they are kept for whoever does it.
            new["spec"][group] = given[group]
            continue
        for item in items(new["spec"], group):
            found = wanted[group].get(item.get("name"))
            for name in _RESIZED if found is not None else ():
                restore(item, found or {}, name)
    restore(new, old, "status")


def _names(containers: Sequence[JsonObject]) -> list[str]:
    return [item.get("name", "") for item in containers]


def _reordered(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    for group in _GROUPS:
        after, before = (_names(items(pod["spec"], group)) for pod in (new, old))
        if len(after) != len(before):
            text = f"{group} may not be added or removed on resize"
            yield problems.forbidden(f"spec.{group}", text)
            continue
        for index, (name, was) in enumerate(zip(after, before, strict=True)):
            if name != was:
                text = f"{group} may not be renamed or reordered on resize"
                yield problems.forbidden(f"spec.{group}[{index}].name", text)


def _check_resize(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = check_pod_spec(new["spec"], "spec", new)
    if quality_of(new) != quality_of(old):
        text = "Pod QOS Class may not change as a result of resizing"
        errors.append(problems.invalid("spec", quality_of(old), text))
    errors += check_resized(new["spec"], old["spec"])
    if others := list(_reordered(new, old)):
        return errors + others
    errors += _removed(new, old)
    if _fixed_amounts(new) != _fixed_amounts(old):
        errors.append(problems.forbidden("spec", "only cpu and memory resources are mutable"))
    return errors


def _amounts(container: JsonObject, kind: str) -> JsonObject:
    return section(section(container, "resources"), kind)


def _removed(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Find amounts that a resize would take away: it may only change them."""
    return [
        problems.forbidden(f"spec.{group}[{index}].resources.{kind}", f"resource {kind} cannot be removed")
        for group in _GROUPS
        for index, (after, before) in enumerate(
            zip(items(new["spec"], group), items(old["spec"], group), strict=True)
        )
        for kind in ("requests", "limits")
        if any(name in _MUTABLE and name not in _amounts(after, kind) for name in _amounts(before, kind))
    ]


def _fixed_amounts(pod: JsonObject) -> list[JsonObject]:
    return [
        {
            "policy": container.get("resizePolicy"),
            **{
                f"{kind} {name}": value
                for kind in ("requests", "limits")
                for name, value in _amounts(container, kind).items()
                if name not in _MUTABLE
            },
        }
        for group in _GROUPS
        for container in items(pod["spec"], group)
    ]


PARTS: Mapping[str, Part] = {
    "binding": Part(counts=False),
    "ephemeralcontainers": Part(_only_ephemeral, _check_ephemeral),
    "resize": Part(_only_resources, _check_resize),
}
