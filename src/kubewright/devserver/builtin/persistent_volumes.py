"""Volumes of the cluster: what they are made of, who may use them, and what becomes of them."""

import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, object_age, short_modes, wide
from kubewright.devserver.builtin.claim_specs import VOLUME_MODES, check_modes
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.scheduling import check_node_selector
from kubewright.devserver.builtin.volume_sources import SHARED_CHECKS, check_driver
from kubewright.devserver.builtin.volumes import default_source
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

_RECLAIM = ("Delete", "Recycle", "Retain")
_SOURCE_RULE = "spec.persistentvolumesource is immutable after creation"
_AFFINITY_RULE = f"{check.IMMUTABLE}, except for updating from beta label to GA"
_NOT_SOURCES = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)
_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _default(volume: JsonObject) -> None:
    spec: JsonObject = volume.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def _new(volume: JsonObject) -> None:
    volume["status"] = {"phase": "Pending"}
    volume["status"]["lastPhaseTransitionTime"] = volume["metadata"].get("creationTimestamp")


def _sources(spec: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES}


def _validate(volume: JsonObject) -> list[FieldError]:
    spec = volume["spec"]
    modes: Sequence[str] = items(spec, "accessModes")
    errors: list[FieldError] = [] if modes else [problems.required("spec.accessModes")]
    errors += check_modes(modes, "spec.accessModes")
    errors += _capacity(spec.get("capacity"))
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        errors += check.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    errors += _affinity(spec)
    errors += _source(spec)
    if name := spec.get("storageClassName"):
        errors += check.named("spec.storageClassName", name, names.dns1123_subdomain(name))
    if (mode := spec.get("volumeMode")) is not None:
        errors += check.one_of("spec.volumeMode", mode, VOLUME_MODES)
    return [*errors, *_attributes(spec)]


def _capacity(capacity: dict[str, Any] | None) -> Iterator[FieldError]:
    if not capacity:
        yield problems.required("spec.capacity")
    if not capacity or set(capacity) != {"storage"}:
        yield problems.not_supported("spec.capacity", capacity, ("storage",))
    for name, value in (capacity or {}).items():
        path, found = f"spec.capacity[{name}]", check.quantity(value)
        if found < Quantity("0"):
            yield problems.invalid(path, int(found), "must be a valid resource quantity")
        if found <= Quantity("0"):
            yield problems.invalid(path, str(value), check.NOT_POSITIVE)


def _affinity(spec: JsonObject) -> Iterator[FieldError]:
    if spec.get("nodeAffinity") is None:
        return
    if (required := section(spec, "nodeAffinity").get("required")) is None:
        text = "must specify required node constraints"
        yield problems.required("spec.nodeAffinity.required", text)
    else:
        yield from check_node_selector(required, "spec.nodeAffinity.required")


def _source(spec: JsonObject) -> Iterator[FieldError]:
    kinds = list(_sources(spec))
    for extra in kinds[1:]:
        yield problems.forbidden(f"spec.{extra}", "may not specify more than 1 volume type")
    if not kinds:
        yield problems.required("spec", "must specify a volume type")
        return
    kind, source = kinds[0], spec[kinds[0]]
    if kind == "csi":
        yield from _csi(source, "spec.csi")
    elif kind == "local":
        yield from _local(source, spec)
    elif kind in SHARED_CHECKS:
        # The oldest of all kinds has kept the name that it had at first.
        path = "spec.persistentDisk" if kind == "gcePersistentDisk" else f"spec.{kind}"
        yield from SHARED_CHECKS[kind](source, path)
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if kind == "hostPath" and recycled and posixpath.normpath(source.get("path") or ".") == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield problems.forbidden("spec.persistentVolumeReclaimPolicy", text)


def _csi(source: JsonObject, path: str) -> Iterator[FieldError]:
    yield from check_driver(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        yield problems.required(f"{path}.volumeHandle")
    for field in _SECRETS:
        secret: JsonObject | None = source.get(field)
        for name, rule in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label)):
            if secret is not None and not secret.get(name):
                yield problems.required(f"{path}.{field}.{name}")
            elif secret is not None:
                yield from check.named(f"{path}.{field}.{name}", secret[name], rule(secret[name]))


def _local(source: JsonObject, spec: JsonObject) -> Iterator[FieldError]:
    folder = source.get("path", "")
    if not folder:
        yield problems.required("spec.local.path")
    elif ".." in folder.split("/"):
        yield problems.invalid("spec.local.path", folder, "must not contain '..'")
    if spec.get("nodeAffinity") is None:
        yield problems.required("spec.nodeAffinity", "Local volume requires node affinity")


def _attributes(spec: JsonObject) -> Iterator[FieldError]:
    name, path = spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if name is None:
        return
    if not name:
        yield problems.required(path, "an empty string is disallowed")
    else:
        yield from check.named(path, name, names.dns1123_subdomain(name))
    if spec.get("csi") is None:
        yield problems.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    # The real server, too, looks at a changed volume twice.
    errors = _validate(new) * 2
    sources, kept = _sources(after), _sources(before)
    if "csi" in sources and not section(kept, "csi").get("controllerExpandSecretRef"):
        sources["csi"] = {
            name: value for name, value in sources["csi"].items() if name != "controllerExpandSecretRef"
        }
    if sources != kept:
        errors.append(problems.forbidden("spec.persistentvolumesource", _SOURCE_RULE))
    errors += check.unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))
    affinity: JsonObject | None = after.get("nodeAffinity")
    if before.get("nodeAffinity") is not None and affinity != before["nodeAffinity"]:
        errors.append(invalid_struct("nodeAffinity", _shown(affinity), _AFFINITY_RULE))
    if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
        text = "update from non-nil value to nil is forbidden"
        errors.append(problems.forbidden("spec.volumeAttributesClassName", text))
    return errors


def _shown(affinity: JsonObject | None) -> JsonObject | None:
    if affinity is None:
        return None
    terms = [
        {
            part: [
                {
                    "Key": item.get("key", ""),
                    "Operator": item.get("operator", ""),
                    "Values": item.get("values"),
                }
                for item in items(term, name)
            ]
            or None
            for part, name in (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
        }
        for term in items(section(affinity, "required"), "nodeSelectorTerms")
    ]
    return {"Required": {"NodeSelectorTerms": terms or None}}


def _row(volume: JsonObject, now: float) -> list[Any]:
    spec, status = volume["spec"], section(volume, "status")
    claim: JsonObject | None = spec.get("claimRef")
    phase = "Terminating" if volume["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        volume["metadata"]["name"],
        section(spec, "capacity").get("storage", "0"),
        short_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        object_age(volume, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _date_phase(new: JsonObject, old: JsonObject, moment: str) -> None:
    status, before = new.setdefault("status", {}), section(old, "status")
    known = before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if known:
            status.setdefault("lastPhaseTransitionTime", known)
    elif status.get("lastPhaseTransitionTime") in (None, known):
        status["lastPhaseTransitionTime"] = moment


STRATEGIES = {
    ("", "PersistentVolume"): Strategy(
        default=_default,
        prepare_create=_new,
        prepare_status_update=keep_spec,
        date=_date_phase,
        validate=_validate,
        validate_update=_update,
        returns_deleted=True,
        columns=(
            NAME,
            Column("Capacity"),
            Column("Access Modes"),
            Column("Reclaim Policy"),
            Column("Status"),
            Column("Claim"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            Column("Reason"),
            AGE,
            wide("VolumeMode"),
        ),
        row=_row,
        reset_fields=SPEC_AND_STATUS,
    ),
}
