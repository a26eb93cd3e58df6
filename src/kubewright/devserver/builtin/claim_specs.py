"""What a claim on storage asks for: by itself, in a volume, and in a template."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.objects import JsonObject, items, section

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def check_modes(modes: Sequence[str], path: str) -> Iterator[FieldError]:
    """Check in which ways a volume may be used."""
    for mode in modes:
        yield from check.one_of(path, mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        yield problems.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def check_claim_spec(spec: JsonObject, path: str = "spec") -> Iterator[FieldError]:
    """Check what a claim asks for."""
    modes: Sequence[str] = items(spec, "accessModes")
    if not modes:
        yield problems.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from check.label_selector(f"{path}.selector", spec.get("selector"))
    yield from check_modes(modes, f"{path}.accessModes")
    yield from _storage(section(section(spec, "resources"), "requests"), f"{path}.resources[storage]")
    if name := spec.get("storageClassName"):
        yield from check.named(f"{path}.storageClassName", name, names.dns1123_subdomain(name))
    if (mode := spec.get("volumeMode")) is not None:
        yield from check.one_of(f"{path}.volumeMode", mode, VOLUME_MODES)
    yield from _data_sources(spec, path)
    if name := spec.get("volumeAttributesClassName"):
        yield from check.named(f"{path}.volumeAttributesClassName", name, names.dns1123_subdomain(name))


def _storage(asked: dict[str, Any], path: str) -> Iterator[FieldError]:
    if "storage" not in asked:
        yield problems.required(path)
    elif check.quantity(asked["storage"]) <= check.quantity("0"):
        yield problems.invalid(path, str(asked["storage"]), check.NOT_POSITIVE)


def _data_sources(spec: JsonObject, path: str) -> Iterator[FieldError]:
    local, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, source in (("dataSource", local), ("dataSourceRef", reference)):
        if source is not None:
            yield from _data_source(source, f"{path}.{field}")
    if local is None or reference is None:
        return
    # The real server shows nothing where a value belongs.
    if reference.get("namespace"):
        text = "may not be specified when dataSourceRef.namespace is specified"
        yield problems.invalid(path, {}, text)
    elif any(local.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        yield problems.invalid(path, {}, "must match dataSourceRef")


def _data_source(source: JsonObject, path: str) -> Iterator[FieldError]:
    for field in ("name", "kind"):
        if not source.get(field):
            yield problems.required(f"{path}.{field}")
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield problems.invalid(path, source.get("kind", ""), text)
    if group:
        yield from check.named(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    if namespace := source.get("namespace"):
        yield from check.named(f"{path}.namespace", namespace, names.dns1123_label(namespace))
