"""What storage drivers tell about themselves, and the volumes that are attached by them."""

from collections.abc import Iterator, Sequence
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, boolean, integer, object_age
from kubewright.devserver.builtin.go_structs import invalid_struct
from kubewright.devserver.builtin.volume_sources import check_driver, check_token_life
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Strategy

GROUP = "storage.k8s.io"
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LONGEST_ID = 256
_SHORTEST_PERIOD = 10


def _default_driver(obj: JsonObject) -> None:
    spec: JsonObject = obj.setdefault("spec", {})
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


def _driver_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
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


def _count_driver_change(new: JsonObject, old: JsonObject) -> None:
    """Count changes from nothing: a new driver has no generation."""
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _check_new_driver(obj: JsonObject) -> list[FieldError]:
    spec = obj["spec"]
    requests: Sequence[JsonObject] = items(spec, "tokenRequests")
    errors = check.one_of("spec.fsGroupPolicy", spec["fsGroupPolicy"], _GROUP_POLICIES)
    errors += _token_requests(requests)
    for mode in items(spec, "volumeLifecycleModes"):
        errors += check.one_of("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    period, path = spec.get("nodeAllocatableUpdatePeriodSeconds"), "spec.nodeAllocatableUpdatePeriodSeconds"
    if period is not None and period < _SHORTEST_PERIOD:
        text = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        errors.append(problems.invalid(path, period, text))
    secret, path = spec.get("serviceAccountTokenInSecrets"), "spec.serviceAccountTokenInSecrets"
    if secret is not None and not requests:
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(problems.invalid(path, secret, text))
    return errors


def _token_requests(requests: Sequence[JsonObject]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in seen:
            yield problems.duplicate(f"{path}.audience", audience)
            continue
        seen.add(audience)
        if (seconds := request.get("expirationSeconds")) is not None:
            yield from check_token_life(seconds, f"{path}.expirationSeconds")


def _check_driver_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    # The real server, too, names a field that there is not.
    frozen = (
        ("attachRequired", "spec.attachedRequired"),
        ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
    )
    return _check_new_driver(new) + [
        problems.invalid(path, new["spec"].get(name), check.IMMUTABLE)
        for name, path in frozen
        if new["spec"].get(name) != old["spec"].get(name)
    ]


def _driver_row(obj: JsonObject, now: float) -> list[Any]:
    spec = obj["spec"]
    requests: Sequence[JsonObject] | None = spec.get("tokenRequests")
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


def _check_node(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    drivers: Sequence[JsonObject] = items(section(obj, "spec"), "drivers")
    for index, driver in enumerate(drivers):
        path, name = f"spec.drivers[{index}]", driver.get("name", "")
        errors += check_driver(name, f"{path}.name")
        errors += _node_id(driver.get("nodeID", ""), f"{path}.nodeID")
        errors += check.not_negative(f"{path}.allocatable.count", section(driver, "allocatable").get("count"))
        if any(other.get("name", "") == name for other in drivers[:index]):
            errors.append(problems.duplicate(f"{path}.name", name))
        errors += _topology_keys(items(driver, "topologyKeys"), path)
    return errors


def _node_id(value: str, path: str) -> Iterator[FieldError]:
    if not value:
        yield problems.required(path)
    if len(value.encode()) > _LONGEST_ID:
        yield problems.invalid(path, value, f"must be {_LONGEST_ID} characters or less")


def _topology_keys(keys: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, key in enumerate(keys):
        if not key:
            yield problems.required(path)
        if key in keys[:index]:
            yield problems.duplicate(path, key)
        yield from check.named(path, key, names.qualified_name(key))


def _check_node_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _check_node(new)
    before = {driver.get("name", ""): driver for driver in items(section(old, "spec"), "drivers")}
    for driver in items(section(new, "spec"), "drivers"):
        known: JsonObject | None = before.get(driver.get("name", ""))
        # How many volumes a node can have may change.
        fields = ("name", "nodeID", "topologyKeys")
        if known is None or all(driver.get(name) == known.get(name) for name in fields):
            continue
        shown = {name[0].upper() + name[1:]: driver.get(name) for name in fields}
        errors.append(invalid_struct("spec.drivers", {**shown, "Allocatable": None}, check.IMMUTABLE))
    return errors


def _check_capacity(obj: JsonObject) -> list[FieldError]:
    name = obj.get("storageClassName", "")
    errors = check.label_selector("nodeTopology", obj.get("nodeTopology"))
    errors += check.named("storageClassName", name, names.dns1123_subdomain(name))
    if (amount := obj.get("capacity")) is not None:
        errors += check.amount("capacity", "storage", amount)
    return errors


def _check_capacity_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _check_capacity(new)
    for name in ("nodeTopology", "storageClassName"):
        errors += check.unchanged(name, new.get(name), old.get(name))
    return errors


def _check_attachment(obj: JsonObject) -> list[FieldError]:
    spec: JsonObject = section(obj, "spec")
    volume, inline = (
        section(spec, "source").get(name) for name in ("persistentVolumeName", "inlineVolumeSpec")
    )
    errors = list(check_driver(spec.get("attacher", ""), "spec.attacher"))
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        errors.append(problems.required("spec.source", text))
    elif volume is not None and inline is not None:
        errors.append(problems.forbidden("spec.source", text))
    elif volume == "":
        text = "must specify non empty persistentVolumeName"
        errors.append(problems.required("spec.source.persistentVolumeName", text))
    node = spec.get("nodeName", "")
    errors += check.named("spec.nodeName", node, names.dns1123_subdomain(node))
    if volume is not None:
        errors += check.named("spec.source.persistentVolumeName", volume, names.dns1123_subdomain(volume))
    return errors


def _check_attachment_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors, spec = _check_attachment(new), section(new, "spec")
    if spec != section(old, "spec"):
        source = section(spec, "source")
        shown = {
            "Attacher": spec.get("attacher", ""),
            "Source": {
                "PersistentVolumeName": source.get("persistentVolumeName"),
                "InlineVolumeSpec": source.get("inlineVolumeSpec"),
            },
            "NodeName": spec.get("nodeName", ""),
        }
        errors.append(invalid_struct("spec", shown, check.IMMUTABLE))
    return errors


def _check_attributes(obj: JsonObject) -> list[FieldError]:
    driver, parameters = obj.get("driverName", ""), section(obj, "parameters")
    errors: list[FieldError] = []
    if not driver:
        errors.append(problems.required("driverName"))
    else:
        errors += check.named("driverName", driver.lower(), names.qualified_name(driver.lower()))
    errors += [
        problems.invalid("parameters", "", "field can not be empty.") for name in parameters if not name
    ]
    if not parameters:
        errors.append(problems.required("parameters", "must contain at least one key/value pair"))
    return errors


def _check_attributes_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    changed = [name for name in ("driverName", "parameters") if new.get(name) != old.get(name)]
    return [
        *(problems.forbidden(name, f"updates to {name} are forbidden.") for name in changed),
        *_check_attributes(new),
    ]


def _attachment_row(obj: JsonObject, now: float) -> list[Any]:
    spec: JsonObject = obj["spec"]
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
    (GROUP, "CSIDriver"): Strategy(
        default=_default_driver,
        prepare_update=_count_driver_change,
        validate=_check_new_driver,
        validate_update=_check_driver_update,
        warnings=_driver_warnings,
        allow_unconditional_update=False,
        returns_deleted=True,
        columns=_DRIVER_COLUMNS,
        row=_driver_row,
    ),
    (GROUP, "CSINode"): Strategy(
        validate=_check_node,
        validate_update=_check_node_update,
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
        validate=_check_capacity,
        validate_update=_check_capacity_update,
        allow_unconditional_update=False,
    ),
    (GROUP, "VolumeAttachment"): Strategy(
        validate=_check_attachment,
        validate_update=_check_attachment_update,
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
        validate=_check_attributes,
        validate_update=_check_attributes_update,
        returns_deleted=True,
        columns=(NAME, Column("DriverName"), AGE),
        row=lambda obj, now: [obj["metadata"]["name"], text_at("driverName")(obj), object_age(obj, now)],
    ),
}
