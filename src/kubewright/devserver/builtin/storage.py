"""Claims on storage and the classes of it."""

from typing import Any

from kubewright.api import FieldError, Quantity, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, object_age, short_modes, wide
from kubewright.devserver.builtin.claim_specs import check_claim_spec
from kubewright.devserver.builtin.scheduling import check_topologies
from kubewright.devserver.builtin.volumes import default_claim_spec
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "storage.k8s.io"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_CLAIM_RULE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def _default_claim(claim: JsonObject) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status: JsonObject = claim.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def _new_claim(claim: JsonObject) -> None:
    claim["status"] = {"phase": "Pending"}
    spec: JsonObject = claim["spec"]
    source: JsonObject | None = spec.get("dataSource")
    # Anything else is left to the newer field, which takes all kinds.
    known = ("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")
    if source is not None and (source.get("apiGroup") or "", source.get("kind", "")) not in known:
        source = spec.pop("dataSource") and None
    if source is not None and spec.get("dataSourceRef") is None:
        spec["dataSourceRef"] = dict(source)
    elif source is None and spec.get("dataSourceRef") is not None:
        newer: JsonObject = spec["dataSourceRef"]
        if not newer.get("namespace"):
            spec["dataSource"] = {name: value for name, value in newer.items() if name != "namespace"}


def _validate_claim(claim: JsonObject) -> list[FieldError]:
    return list(check_claim_spec(claim["spec"]))


def _update_claim(new: JsonObject, old: JsonObject) -> list[FieldError]:
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
    errors += check.unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))
    wanted, asked = (_storage(section(obj["spec"], "resources").get("requests")) for obj in (new, old))
    # Growth that failed may be taken back, as long as the claim stays bigger than what it has.
    if wanted < asked and wanted <= _storage(section(old, "status").get("capacity")):
        field = "spec.resources.requests.storage"
        errors.append(problems.forbidden(field, "field can not be less than status.capacity"))
    return errors


def _storage(amounts: JsonObject | None) -> Quantity:
    return Quantity((amounts or {}).get("storage", 0))


def _claim_row(claim: JsonObject, now: float) -> list[Any]:
    spec, status = claim["spec"], section(claim, "status")
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if claim["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        claim["metadata"]["name"],
        phase,
        spec.get("volumeName", ""),
        section(status, "capacity").get("storage", "0") if bound else "",
        short_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        object_age(claim, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _default_class(obj: JsonObject) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _validate_class(obj: JsonObject) -> list[FieldError]:
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


def _update_class(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _validate_class(new)
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += check.unchanged(name, new.get(name), old.get(name))
    return errors


def _class_row(obj: JsonObject, now: float) -> list[Any]:
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
}
