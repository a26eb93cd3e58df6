"""Volumes, claims, storage classes and what drivers tell about themselves."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kubewright.api import FieldError, Quantity, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, boolean, integer, object_age, wide
from kubewright.devserver.builtin.claim_specs import check_claim_spec, check_modes
from kubewright.devserver.builtin.reading import items, section
from kubewright.devserver.builtin.scheduling import check_node_selector, check_topologies
from kubewright.devserver.builtin.volumes import default_claim_spec, default_source
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, text_at
from kubewright.devserver.objects import Wire
from kubewright.devserver.strategy import Column, Strategy

GROUP = "storage.k8s.io"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_RECLAIM = ("Delete", "Recycle", "Retain")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_CLAIM_RULE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_SOURCE_RULE = "spec.persistentvolumesource is immutable after creation"
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


def _default_claim(claim: Wire) -> None:
    default_claim_spec(claim.setdefault("spec", {}))


def _new_claim(claim: Wire) -> None:
    claim["status"] = {"phase": "Pending"}
    spec: Wire = claim["spec"]
    source: Wire | None = spec.get("dataSource")
    # Anything else is left to the newer field, which takes all kinds.
    known = ("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")
    if source is not None and (source.get("apiGroup") or "", source.get("kind", "")) not in known:
        source = spec.pop("dataSource") and None
    if source is not None and spec.get("dataSourceRef") is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and spec.get("dataSourceRef") is not None:
        newer: Wire = spec["dataSourceRef"]
        if not newer.get("namespace"):
            spec["dataSource"] = {name: value for name, value in newer.items() if name != "namespace"}


def _validate_claim(claim: Wire) -> list[FieldError]:
    return list(check_claim_spec(claim["spec"]))


def _update_claim(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate_claim(new)
    after, before = dict(new["spec"]), dict(old["spec"])
    # A controller binds a claim by giving it a volume, once.
    if not before.get("volumeName"):
        after.pop("volumeName", None)
    # A claim that named no class may be given the default one later.
    if before.get("storageClassName") is None:
        after.pop("storageClassName", None)
    if section(old, "status").get("phase") == "Bound":
        for spec in (after, before):
            spec["resources"] = {**section(spec, "resources"), "requests": {}}
            spec.pop("volumeAttributesClassName", None)
    if after != before:
        errors.append(problems.forbidden("spec", _CLAIM_RULE))
    wanted, asked = (_storage(section(obj["spec"], "resources").get("requests")) for obj in (new, old))
    # Growth that failed may be taken back, as long as the claim stays bigger than what it has.
    if wanted < asked and wanted <= _storage(section(old, "status").get("capacity")):
        field = "spec.resources.requests.storage"
        errors.append(problems.forbidden(field, "field can not be less than status.capacity"))
    return errors


def _storage(amounts: Wire | None) -> Quantity:
    return Quantity((amounts or {}).get("storage", 0))


def _short(modes: Sequence[str] | None) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in (modes or ()))


def _claim_row(claim: Wire, now: float) -> list[Any]:
    spec, status = claim["spec"], section(claim, "status")
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        claim["metadata"]["name"],
        phase,
        spec.get("volumeName", ""),
        section(status, "capacity").get("storage", "0") if bound else "",
        _short(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        object_age(claim, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _default_volume(volume: Wire) -> None:
    spec: Wire = volume.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def _new_volume(volume: Wire) -> None:
    volume["status"] = {"phase": "Pending"}
    volume["status"]["lastPhaseTransitionTime"] = volume["metadata"].get("creationTimestamp")


def _status_of_volume(new: Wire, old: Wire) -> None:
    keep_spec(new, old)
    status, before = new.setdefault("status", {}), section(old, "status")
    if status.get("phase") == before.get("phase"):
        if before.get("lastPhaseTransitionTime"):
            status.setdefault("lastPhaseTransitionTime", before["lastPhaseTransitionTime"])
    elif status.get("lastPhaseTransitionTime") in (None, before.get("lastPhaseTransitionTime")):
        status["lastPhaseTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sources(spec: Wire) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES}


def _validate_volume(volume: Wire) -> list[FieldError]:
    spec = volume["spec"]
    modes: Sequence[str] = items(spec, "accessModes")
    errors: list[FieldError] = [] if modes else [problems.required("spec.accessModes")]
    errors += check_modes(modes, "spec.accessModes")
    capacity: dict[str, Any] | None = spec.get("capacity")
    if not capacity:
        errors.append(problems.required("spec.capacity"))
    if not capacity or set(capacity) != {"storage"}:
        errors.append(problems.not_supported("spec.capacity", capacity, ("storage",)))
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        errors += check.one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM)
    kinds = list(_sources(spec))
    for extra in kinds[1:]:
        errors.append(problems.forbidden(f"spec.{extra}", "may not specify more than 1 volume type"))
    if not kinds:
        errors.append(problems.required("spec", "must specify a volume type"))
    affinity: Wire | None = section(spec, "nodeAffinity").get("required")
    if spec.get("nodeAffinity") is not None and affinity is None:
        errors.append(
            problems.required("spec.nodeAffinity.required", "must specify required node constraints")
        )
    elif affinity is not None:
        errors += check_node_selector(affinity, "spec.nodeAffinity.required")
    if name := spec.get("storageClassName"):
        errors += check.named("spec.storageClassName", name, names.dns1123_subdomain(name))
    return errors


def _update_volume(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate_volume(new)
    if _sources(new["spec"]) != _sources(old["spec"]):
        errors.append(problems.forbidden("spec.persistentvolumesource", _SOURCE_RULE))
    return errors + check.unchanged(
        "volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode")
    )


def _volume_row(volume: Wire, now: float) -> list[Any]:
    spec, status = volume["spec"], section(volume, "status")
    claim: Wire | None = spec.get("claimRef")
    phase = "Terminating" if volume["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        volume["metadata"]["name"],
        section(spec, "capacity").get("storage", "0"),
        _short(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        object_age(volume, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _default_class(obj: Wire) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _validate_class(obj: Wire) -> list[FieldError]:
    errors: list[FieldError] = []
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        errors.append(problems.required("provisioner"))
    else:
        errors += check.named("provisioner", provisioner, names.qualified_name(provisioner.lower()))
    if any(not name for name in section(obj, "parameters")):
        errors.append(problems.invalid("parameters", "", "field can not be empty."))
    if policy := obj.get("reclaimPolicy"):
        errors += check.one_of("reclaimPolicy", policy, ("Delete", "Retain"))
    choices = ("Immediate", "WaitForFirstConsumer")
    errors += check.one_of("volumeBindingMode", obj.get("volumeBindingMode"), choices)
    return errors + list(check_topologies(items(obj, "allowedTopologies"), "allowedTopologies"))


def _update_class(new: Wire, old: Wire) -> list[FieldError]:
    errors = _validate_class(new)
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += check.unchanged(name, new.get(name), old.get(name))
    return errors


def _class_row(obj: Wire, now: float) -> list[Any]:
    name = obj["metadata"]["name"]
    if section(obj["metadata"], "annotations").get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    return [
        name,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        object_age(obj, now),
    ]


def _default_driver(obj: Wire) -> None:
    spec: Wire = obj.setdefault("spec", {})
    for name, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("volumeLifecycleModes", ["Persistent"]),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        if spec.get(name) in (None, []):
            spec[name] = value


def _driver_warnings(new: Wire, old: Wire | None) -> list[str]:
    spec = new["spec"]
    if not spec.get("tokenRequests") or spec.get("serviceAccountTokenInSecrets") is not None:
        return []
    if old is not None and old["spec"].get("tokenRequests") == spec["tokenRequests"]:
        return []
    text = (
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
        "set to true to prevent possible logging of tokens in volume attributes"
    )
    return [text]


def _count_driver_change(new: Wire, old: Wire) -> None:
    """Count changes from nothing: a new driver has no generation."""
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _check_driver_update(new: Wire, old: Wire) -> list[FieldError]:
    # The real server, too, names a field that there is not.
    frozen = (
        ("attachRequired", "spec.attachedRequired"),
        ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
    )
    return [
        problems.invalid(path, new["spec"].get(name), check.IMMUTABLE)
        for name, path in frozen
        if new["spec"].get(name) != old["spec"].get(name)
    ]


def _driver_row(obj: Wire, now: float) -> list[Any]:
    spec = obj["spec"]
    requests: Sequence[Wire] | None = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        "<unset>" if requests is None else ",".join(item.get("audience", "") for item in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(items(spec, "volumeLifecycleModes")) or "<none>",
        object_age(obj, now),
    ]


def _attachment_row(obj: Wire, now: float) -> list[Any]:
    spec: Wire = obj["spec"]
    volume = section(spec, "source").get("persistentVolumeName") or ""
    attached = bool(section(obj, "status").get("attached"))
    name = obj["metadata"]["name"]
    return [name, spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, object_age(obj, now)]


_DRIVER_COLUMNS = (
    NAME,
    boolean("AttachRequired"),
    boolean("PodInfoOnMount"),
    boolean("StorageCapacity"),
    Column("TokenRequests"),
    boolean("RequiresRepublish"),
    Column("Modes"),
    AGE,
)

STRATEGIES = {
    ("", "PersistentVolumeClaim"): Strategy(
        default=_default_claim,
        prepare_create=_new_claim,
        prepare_status_update=keep_spec,
        validate=_validate_claim,
        validate_update=_update_claim,
        returns_deleted=True,
        columns=(
            NAME,
            Column("Status"),
            Column("Volume"),
            Column("Capacity"),
            Column("Access Modes"),
            Column("StorageClass"),
            Column("VolumeAttributesClass"),
            AGE,
            wide("VolumeMode"),
        ),
        row=_claim_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("", "PersistentVolume"): Strategy(
        default=_default_volume,
        prepare_create=_new_volume,
        prepare_status_update=_status_of_volume,
        validate=_validate_volume,
        validate_update=_update_volume,
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
        row=_volume_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    (GROUP, "StorageClass"): Strategy(
        default=_default_class,
        validate=_validate_class,
        validate_update=_update_class,
        returns_deleted=True,
        columns=(
            NAME,
            Column("Provisioner"),
            Column("ReclaimPolicy"),
            Column("VolumeBindingMode"),
            Column("AllowVolumeExpansion"),
            AGE,
        ),
        row=_class_row,
    ),
    (GROUP, "CSIDriver"): Strategy(
        default=_default_driver,
        prepare_update=_count_driver_change,
        validate_update=_check_driver_update,
        warnings=_driver_warnings,
        allow_unconditional_update=False,
        returns_deleted=True,
        columns=_DRIVER_COLUMNS,
        row=_driver_row,
    ),
    (GROUP, "CSINode"): Strategy(
        allow_unconditional_update=False,
        returns_deleted=True,
        columns=(NAME, integer("Drivers"), AGE),
        row=lambda obj, now: [
            obj["metadata"]["name"],
            len(items(section(obj, "spec"), "drivers")),
            object_age(obj, now),
        ],
    ),
    (GROUP, "CSIStorageCapacity"): Strategy(
        allow_unconditional_update=False,
    ),
    (GROUP, "VolumeAttachment"): Strategy(
        allow_unconditional_update=False,
        returns_deleted=True,
        columns=(
            NAME,
            Column("Attacher", "string", "name"),
            Column("PV"),
            Column("Node"),
            boolean("Attached"),
            AGE,
        ),
        row=_attachment_row,
    ),
    (GROUP, "VolumeAttributesClass"): Strategy(
        returns_deleted=True,
        columns=(NAME, Column("DriverName"), AGE),
        row=lambda obj, now: [obj["metadata"]["name"], text_at("driverName")(obj), object_age(obj, now)],
    ),
}
