"""Storage: PersistentVolumes, claims, storage classes, and what CSI drivers report."""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubewright.api import FieldError, Quantity, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.deprecations import (
    NODE_LABELS,
    STORAGE_CLASS_ANNOTATION,
    STORAGE_CLASS_TEXT,
    VOLUME_PLUGINS,
    warn_about_claim_spec,
    warn_about_node_terms,
    warn_about_plugins,
    warn_about_requirements,
)
from kubewright.devserver.builtin.pods.scheduling import NODE_SELECTOR, check_topologies
from kubewright.devserver.builtin.pods.volumes import (
    VOLUME_MODES,
    check_access_modes,
    check_claim_spec,
    check_driver,
    check_iscsi_volume,
    check_source,
    check_token_expiration,
    default_claim_spec,
    default_source,
    no_parent_folder,
)
from kubewright.devserver.builtin.printing import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cell,
    cell,
    count,
    printed,
    short_modes,
)
from kubewright.devserver.builtin.rules import (
    Row,
    at_least,
    changes,
    defaults,
    each,
    fits,
    fixed,
    immutable,
    in_bytes,
    named,
    one_of,
    required,
    rules,
    unique,
    unset,
    validated,
)
from kubewright.devserver.builtin.writes import STATUS_KEEPS_SPEC
from kubewright.devserver.objects import JsonObject, items, section, words
from kubewright.devserver.strategy import Strategy, TableColumn

GROUP = "storage.k8s.io"
_MAX_ATTACHER = 63
_MAX_ERROR_MESSAGE = 1024
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLAIM_RULE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_SOURCE_RULE = "spec.persistentvolumesource is immutable after creation"
_AFFINITY_RULE = f"{check.IMMUTABLE}, except for updating from beta label to GA"
_NOT_SOURCES = frozenset(
    {"capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName"}
    | {"mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"}
)
# The order in which the real server looks at the sources.
_SOURCE_ORDER = words(
    "hostPath gcePersistentDisk awsElasticBlockStore glusterfs flocker nfs rbd quobyte cephfs iscsi cinder fc "
    "flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk scaleIO local storageos csi"
)
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_RESIZE_STATES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def _phase(obj: JsonObject) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return section(obj, "status").get("phase", "")


# PersistentVolumes


def _default_volume(volume: JsonObject) -> None:
    spec: JsonObject = volume.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    default_source(spec)


def _new_volume(volume: JsonObject) -> None:
    created = volume["metadata"].get("creationTimestamp")
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": created}


def _sources(spec: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in _NOT_SOURCES}


def _capacity(path: str, capacity: dict[str, Any] | None) -> Iterator[FieldError]:
    if not capacity:
        yield problems.required(path)
    if not capacity or set(capacity) != {"storage"}:
        yield problems.not_supported(path, capacity, ("storage",))
    for name, value in (capacity or {}).items():
        found = check.quantity(value)
        if found < Quantity("0"):
            yield problems.invalid(f"{path}[{name}]", int(found), "must be a valid resource quantity")
        if found <= Quantity("0"):
            yield problems.invalid(f"{path}[{name}]", str(value), check.NOT_POSITIVE)


def _volume_source(path: str, volume: JsonObject) -> Iterator[FieldError]:
    spec, path = section(volume, "spec"), "spec"
    kinds = sorted(_sources(spec), key=_SOURCE_ORDER.index)
    for extra in kinds[1:]:
        # In this message, the real server writes the name otherwise.
        shown = "cephFS" if extra == "cephfs" else extra
        if extra != "flexVolume":
            yield problems.forbidden(f"{path}.{shown}", "may not specify more than 1 volume type")
        else:
            yield from check_source(extra, spec[extra], path, of_cluster=True)
    if not kinds:
        yield problems.required(path, "must specify a volume type")
        return
    kind, source = kinds[0], spec[kinds[0]]
    if kind == "csi":
        yield from _CSI_VOLUME(f"{path}.csi", source)
    elif kind == "local":
        yield from _LOCAL_VOLUME(path, spec)
    elif kind == "iscsi":
        yield from check_iscsi_volume(source, f"{path}.iscsi", volume["metadata"].get("name", ""))
    else:
        yield from check_source(kind, source, path, of_cluster=True)
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if kind == "hostPath" and recycled and posixpath.normpath(source.get("path") or ".") == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield problems.forbidden(f"{path}.persistentVolumeReclaimPolicy", text)


_CSI_VOLUME = rules(
    ("driver", check_driver),
    ("volumeHandle", required()),
    *(
        (f"{secret}?.{field}", named(syntax, required=True))
        for secret in _CSI_SECRETS
        for field, syntax in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label))
    ),
)
_LOCAL_VOLUME = rules(
    ("local.path", required(), no_parent_folder),
    ("{!nodeAffinity}.nodeAffinity", required("Local volume requires node affinity")),
)
_VOLUME = rules(
    ("spec.accessModes", required(), check_access_modes),
    ("spec.capacity", _capacity),
    ("spec.persistentVolumeReclaimPolicy?", one_of("Delete", "Recycle", "Retain")),
    ("spec.nodeAffinity?{!required}.required", required("must specify required node constraints")),
    ("spec.nodeAffinity?.required?", NODE_SELECTOR),
    ("", _volume_source),
    ("spec.storageClassName", named(names.dns1123_subdomain)),
    ("spec.volumeMode?", one_of(*VOLUME_MODES)),
    (
        "spec.volumeAttributesClassName?",
        named(names.dns1123_subdomain, required="an empty string is disallowed"),
    ),
    (
        "spec{!csi}.volumeAttributesClassName?",
        lambda path, value: [
            problems.required("spec.csi", "has to be specified when using volumeAttributesClassName")
        ],
    ),
)


def _update_volume(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after, before = new["spec"], old["spec"]
    # The real server checks a changed volume twice.
    errors = _VOLUME.validate(new) * 2
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
        errors.append(check.invalid_struct("nodeAffinity", _affinity_struct(affinity), _AFFINITY_RULE))
    if before.get("volumeAttributesClassName") is not None and after.get("volumeAttributesClassName") is None:
        text = "update from non-nil value to nil is forbidden"
        errors.append(problems.forbidden("spec.volumeAttributesClassName", text))
    return errors


def _affinity_struct(affinity: JsonObject | None) -> JsonObject | None:
    if affinity is None:
        return None

    def expressions(found: Sequence[JsonObject]) -> list[JsonObject] | None:
        return [
            {**check.struct(item, "key operator"), "Values": item.get("values")} for item in found
        ] or None

    terms = [
        {
            "MatchExpressions": expressions(items(term, "matchExpressions")),
            "MatchFields": expressions(items(term, "matchFields")),
        }
        for term in items(section(affinity, "required"), "nodeSelectorTerms")
    ]
    return {"Required": {"NodeSelectorTerms": terms or None}}


def _date_phase(new: JsonObject, old: JsonObject, moment: str) -> None:
    status, before = new.setdefault("status", {}), section(old, "status")
    known = before.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        if known:
            status.setdefault("lastPhaseTransitionTime", known)
    elif status.get("lastPhaseTransitionTime") in (None, known):
        status["lastPhaseTransitionTime"] = moment


def _claim_name(volume: JsonObject) -> str:
    claim: JsonObject | None = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


# PersistentVolumeClaims


def _default_claim(claim: JsonObject) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status: JsonObject = claim.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def _basic_quantity(path: str, value: Any) -> list[FieldError]:
    if check.quantity(value) < check.quantity("0"):
        return [problems.invalid(path, int(check.quantity(value)), "must be a valid resource quantity")]
    return []


def _claim_resource(path: str, name: str) -> list[FieldError]:
    """Check the name of a resource of a claim: of those without a domain, only storage."""
    if errors := check.named(path, name, names.qualified_name(name)):
        return errors
    native = "/" not in name or "kubernetes.io/" in name
    return [problems.not_supported(path, name, ("storage",))] if native and name != "storage" else []


def _claim_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    status: JsonObject = section(new, "status")
    errors: list[FieldError] = []
    for name, value in section(status, "capacity").items():
        errors += _basic_quantity(f"status.capacity[{name}]", value)
    path = "status.allocatedResourceStatuses"
    for name, state in section(status, "allocatedResourceStatuses").items():
        errors += _claim_resource(path, name)
        if state not in _RESIZE_STATES:
            # The real server shows the name of the resource and not its state.
            errors.append(problems.not_supported(path, name, _RESIZE_STATES))
    path = "status.allocatedResources"
    for name, value in section(status, "allocatedResources").items():
        where = f"{path}[{name}]"
        errors += (
            _claim_resource(path, name)
            or _basic_quantity(where, value)
            or check.resource_quantity(where, "storage", value)
        )
    return errors


def _new_claim(claim: JsonObject) -> None:
    claim["status"] = {}
    _normalize_sources(claim["spec"], {})


def _changed_claim(new: JsonObject, old: JsonObject) -> None:
    # Older clients omit the field that the server filled in, so it is filled in again.
    _normalize_sources(new["spec"], old["spec"])
    _normalize_sources(old["spec"], old["spec"])


def _normalize_sources(spec: JsonObject, old: JsonObject) -> None:
    """Fill dataSource from dataSourceRef or the other way round."""
    # The feature gate CrossNamespaceVolumeDataSource is off.
    if section(spec, "dataSourceRef").get("namespace"):
        del spec["dataSourceRef"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    # Other kinds are dropped, unless dataSourceRef shows that the client knows the newer field.
    known = ("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")
    in_use = old.get("dataSource") is not None or old.get("dataSourceRef") is not None
    if source is not None and reference is None:
        if in_use or (source.get("apiGroup") or "", source.get("kind", "")) in known:
            spec["dataSourceRef"] = dict(source)
        else:
            del spec["dataSource"]
    elif source is None and reference is not None:
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


def _claim_changes(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    after, before = dict(new["spec"]), dict(old["spec"])
    annotated, was = (
        section(obj["metadata"], "annotations").get(STORAGE_CLASS_ANNOTATION, "") for obj in (new, old)
    )
    # The class may move from the annotation to the field.
    moved = before.get("storageClassName") is None and not annotated and after.get("storageClassName") == was
    if annotated != was and not moved:
        yield problems.invalid(f"metadata.annotations.{STORAGE_CLASS_ANNOTATION}", annotated, check.IMMUTABLE)
    # A controller binds a claim by setting its volume, once.
    if not before.get("volumeName"):
        after.pop("volumeName", None)
    # A claim without a class may get the default one later.
    if before.get("storageClassName") is None:
        after.pop("storageClassName", None)
    if section(old, "status").get("phase") == "Bound":
        resources = section(after, "resources")
        if resources.get("requests"):
            size = section(before, "resources", "requests").get("storage", "0")
            after["resources"] = {**resources, "requests": {**resources["requests"], "storage": size}}
        for spec in (after, before):
            spec.pop("volumeAttributesClassName", None)
    if after != before:
        yield problems.forbidden("spec", _CLAIM_RULE)
    yield from check.unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))
    requested, earlier = (_storage(section(obj["spec"], "resources").get("requests")) for obj in (new, old))
    # An expansion that failed may be taken back, but not below what the volume already has.
    if requested < earlier and requested <= _storage(section(old, "status").get("capacity")):
        field = "spec.resources.requests.storage"
        yield problems.forbidden(field, "field can not be less than status.capacity")


def _storage(resources: JsonObject | None) -> Quantity:
    return Quantity((resources or {}).get("storage", 0))


def _if_bound(read: Callable[[JsonObject], str]) -> Callable[[JsonObject], str]:
    return lambda claim: read(section(claim, "status")) if claim["spec"].get("volumeName") else ""


# Classes


def _no_empty_keys(path: str, parameters: JsonObject | None) -> Iterator[FieldError]:
    if any(not name for name in parameters or ()):
        yield problems.invalid(path, "", "field can not be empty.")


def _driver_name(path: str, name: str | None) -> list[FieldError]:
    if not name:
        return [problems.required(path)]
    return check.named(path, name.lower(), names.qualified_name(name.lower()))


def default_storage_class(classes: Iterable[JsonObject]) -> str:
    """Return the name of the default class: of several the youngest, then the first by name; empty without one."""
    found = [item["metadata"] for item in classes if _is_default(item["metadata"])]
    found.sort(key=lambda metadata: metadata["name"])
    found.sort(key=lambda metadata: metadata["creationTimestamp"], reverse=True)
    return found[0]["name"] if found else ""


def _is_default(metadata: JsonObject) -> bool:
    annotations = section(metadata, "annotations")
    return any(annotations.get(name) == "true" for name in _DEFAULT_CLASS)


_STORAGE_CLASS = rules(
    ("{provisioner}.provisioner", _driver_name),
    ("parameters", _no_empty_keys),
    ("{reclaimPolicy}.reclaimPolicy", one_of("Delete", "Retain")),
    ("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
    ("allowedTopologies", lambda path, value: check_topologies(value or (), path)),
    # Declared.
    ("provisioner", required()),
)
_ATTRIBUTES_CLASS = rules(
    ("driverName", _driver_name),
    ("parameters", _no_empty_keys, required("must contain at least one key/value pair")),
)


# CSI drivers, nodes, capacities and attachments


def _warn_of_driver(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec = new["spec"]
    if not spec.get("tokenRequests") or spec.get("serviceAccountTokenInSecrets") is not None:
        return []
    if old is not None and old["spec"].get("tokenRequests") == spec["tokenRequests"]:
        return []
    text = "if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"
    return [f"spec.serviceAccountTokenInSecrets is unset; {text}"]


def _count_driver_change(new: JsonObject, old: JsonObject) -> None:
    """Increase the generation, which a new driver does not have."""
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _token_requests(path: str, requests: Sequence[JsonObject] | None) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, request in enumerate(requests or ()):
        audience = request.get("audience", "")
        if audience in seen:
            yield problems.duplicate(f"{path}[{index}].audience", audience)
            continue
        seen.add(audience)
        if (seconds := request.get("expirationSeconds")) is not None:
            yield from check_token_expiration(f"{path}[{index}].expirationSeconds", seconds)


def _same_driver(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    # The real server names a field that does not exist.
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes",) * 2):
        yield from check.unchanged(f"spec.{shown}", new["spec"].get(name), old["spec"].get(name))


def _audiences(driver: JsonObject) -> str:
    requests: Sequence[JsonObject] | None = driver["spec"].get("tokenRequests")
    return UNSET if requests is None else ",".join(item.get("audience", "") for item in requests)


def _topology_keys(path: str, driver: JsonObject) -> Iterator[FieldError]:
    # The real server reports all of them at the driver.
    keys: Sequence[str] = items(driver, "topologyKeys")
    for position, key in enumerate(keys):
        if not key:
            yield problems.required(path)
        if key in keys[:position]:
            yield problems.duplicate(path, key)
        yield from check.named(path, key, names.qualified_name(key))


def _same_node_drivers(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    before = {driver.get("name", ""): driver for driver in items(section(old, "spec"), "drivers")}
    for driver in items(section(new, "spec"), "drivers"):
        known: JsonObject | None = before.get(driver.get("name", ""))
        # The number of allocatable volumes may change.
        fields = ("name", "nodeID", "topologyKeys")
        if known is None or all(driver.get(name) == known.get(name) for name in fields):
            continue
        shown = {**check.struct(driver, " ".join(fields), None), "Allocatable": None}
        yield check.invalid_struct("spec.drivers", shown, check.IMMUTABLE)


def _attached_source(path: str, source: JsonObject | None) -> Iterator[FieldError]:
    volume, inline = ((source or {}).get(name) for name in ("persistentVolumeName", "inlineVolumeSpec"))
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        yield problems.required(path, text)
    elif volume is not None and inline is not None:
        yield problems.forbidden(path, text)
    elif volume == "":
        text = "must specify non empty persistentVolumeName"
        yield problems.required(f"{path}.persistentVolumeName", text)


def _short(path: str, name: str | None) -> Iterator[FieldError]:
    if len(name or "") > _MAX_ATTACHER:
        yield problems.too_long(path, _MAX_ATTACHER, unit="character")


_DRIVER = rules(
    ("spec.fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
    ("spec.tokenRequests", _token_requests),
    ("spec.volumeLifecycleModes", each(one_of("Persistent", "Ephemeral"))),
    (
        "spec.nodeAllocatableUpdatePeriodSeconds?",
        at_least(10, "must be greater than or equal to 10 seconds"),
    ),
    (
        "spec{!tokenRequests}.serviceAccountTokenInSecrets",
        unset("serviceAccountTokenInSecrets is set but no tokenRequests are specified"),
    ),
)
_NODE_DRIVER = rules(
    ("name", check_driver),
    (
        "nodeID",
        required(),
        fits(lambda name: len((name or "").encode()) <= 256, "must be 256 characters or less"),
    ),
    ("allocatable.count", check.not_negative),
)
_CSI_NODE = rules(("spec.drivers", unique("name", before=_NODE_DRIVER, after=_topology_keys)))
_CAPACITY = rules(
    ("nodeTopology", check.label_selector),
    ("storageClassName", named(names.dns1123_subdomain, empty=True)),
    ("capacity?", lambda path, value: check.resource_quantity(path, "storage", value)),
)


def _short_message(path: str, value: str | None) -> Iterator[FieldError]:
    if len((value or "").encode()) > _MAX_ERROR_MESSAGE:
        yield problems.too_long(path, _MAX_ERROR_MESSAGE)


_VOLUME_ERROR = rules(
    ("message", _short_message),
    ("errorCode?", at_least(0, "must be between 0 and 2147483647, inclusive")),
)
_ATTACHED: tuple[Row, ...] = (
    ("spec.source", _attached_source),
    ("spec.nodeName", named(names.dns1123_subdomain, empty=True)),
    *((f"status.{name}?", _VOLUME_ERROR) for name in ("attachError", "detachError")),
    ("spec.source.persistentVolumeName?", named(names.dns1123_subdomain, empty=True)),
)
_ATTACHMENT = rules(
    *_ATTACHED,
    # Declared.
    ("spec.attacher", named(in_bytes(names.dns1123_subdomain_caseless), required=True), _short),
)
# Declared rules do not hold for updates.
_CHANGED_ATTACHMENT = rules(("spec.attacher", check_driver), *_ATTACHED)

# Warnings


def _warn_about_volume(new: JsonObject, old: JsonObject | None) -> list[str]:
    spec = new["spec"]
    found = _warn_about_annotations(
        new,
        {
            STORAGE_CLASS_ANNOTATION: STORAGE_CLASS_TEXT,
            "volume.beta.kubernetes.io/mount-options": (
                'deprecated since v1.31; use "mountOptions" attribute instead'
            ),
        },
    )
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        advice = "Instead, the recommended approach is to use dynamic provisioning."
        found.append(
            f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {advice}"
        )
    found += warn_about_node_terms(section(spec, "nodeAffinity", "required"), "spec.nodeAffinity.required")
    found += warn_about_plugins(spec, "spec", VOLUME_PLUGINS)
    return found


def _warn_about_claim(new: JsonObject, old: JsonObject | None) -> list[str]:
    found = _warn_about_annotations(new, {STORAGE_CLASS_ANNOTATION: STORAGE_CLASS_TEXT})
    return [*found, *warn_about_claim_spec(new["spec"], "spec")]


def _warn_about_annotations(obj: JsonObject, texts: Mapping[str, str]) -> list[str]:
    annotations = section(obj["metadata"], "annotations")
    return [f"metadata.annotations[{key}]: {text}" for key, text in texts.items() if key in annotations]


def _warn_about_class(new: JsonObject, old: JsonObject | None) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {NODE_LABELS[expression['key']]}"
        for index, term in enumerate(items(new, "allowedTopologies"))
        for position, expression in enumerate(items(term, "matchLabelExpressions"))
        if expression.get("key") in NODE_LABELS
    ]


def _warn_about_capacity(new: JsonObject, old: JsonObject | None) -> list[str]:
    topology = section(new, "nodeTopology")
    found = warn_about_requirements(items(topology, "matchExpressions"), "nodeTopology.matchExpressions")
    labels = [label for label in section(topology, "matchLabels") if label in NODE_LABELS]
    return [*found, *(f"nodeTopology.matchLabels.{label}: {NODE_LABELS[label]}" for label in labels)]


STRATEGIES = {
    ("", "PersistentVolume"): Strategy(
        warnings=_warn_about_volume,
        default=_default_volume,
        prepare_create=_new_volume,
        date=_date_phase,
        validate=_VOLUME.validate,
        validate_update=_update_volume,
        returns_deleted=True,
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Capacity", "spec.capacity.storage", "0"),
            cell("Access Modes", lambda volume: short_modes(volume["spec"].get("accessModes"))),
            cell("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
            cell("Status", _phase),
            cell("Claim", _claim_name),
            cell("StorageClass", "spec.storageClassName"),
            cell("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET),
            cell("Reason", "status.reason"),
            AGE,
            cell("VolumeMode", "spec.volumeMode", UNSET, wide=True),
        ),
    ),
    ("", "PersistentVolumeClaim"): Strategy(
        warnings=_warn_about_claim,
        default=_default_claim,
        prepare_create=_new_claim,
        is_defaulted_when_read=True,
        validate_status_update=_claim_status,
        prepare_update=_changed_claim,
        **validated(lambda claim: list(check_claim_spec(claim["spec"])), _claim_changes),
        returns_deleted=True,
        **STATUS_KEEPS_SPEC,
        **printed(
            NAME,
            cell("Status", _phase),
            cell("Volume", "spec.volumeName"),
            cell("Capacity", _if_bound(lambda status: section(status, "capacity").get("storage", "0"))),
            cell("Access Modes", _if_bound(lambda status: short_modes(status.get("accessModes")))),
            cell("StorageClass", "spec.storageClassName"),
            cell("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET),
            AGE,
            cell("VolumeMode", "spec.volumeMode", UNSET, wide=True),
        ),
    ),
    (GROUP, "StorageClass"): Strategy(
        warnings=_warn_about_class,
        default=defaults(("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")),
        **validated(
            _STORAGE_CLASS,
            immutable("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode", shown=False),
        ),
        returns_deleted=True,
        default_in_list=default_storage_class,
        **printed(
            NAME,
            cell("Provisioner", "provisioner"),
            cell("ReclaimPolicy", lambda obj: obj.get("reclaimPolicy", "Delete")),
            cell("VolumeBindingMode", lambda obj: obj.get("volumeBindingMode", "Immediate")),
            cell("AllowVolumeExpansion", "allowVolumeExpansion", False),
            AGE,
        ),
    ),
    (GROUP, "VolumeAttributesClass"): Strategy(
        **validated(
            _ATTRIBUTES_CLASS,
            first=[fixed("driverName", "parameters", text="updates to {} are forbidden.")],
        ),
        returns_deleted=True,
        **printed(NAME, cell("DriverName", "driverName"), AGE),
    ),
    (GROUP, "CSIDriver"): Strategy(
        default=defaults(
            ("spec.attachRequired", True),
            ("spec.podInfoOnMount", False),
            ("spec.volumeLifecycleModes", ["Persistent"]),
            ("spec.storageCapacity", False),
            ("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("spec.requiresRepublish", False),
            ("spec.seLinuxMount", False),
            ("spec.preventPodSchedulingIfMissing", False),
        ),
        prepare_update=_count_driver_change,
        **validated(_DRIVER, _same_driver),
        warnings=_warn_of_driver,
        allow_unconditional_update=False,
        returns_deleted=True,
        **printed(
            NAME,
            cell("AttachRequired", "spec.attachRequired", True, "boolean"),
            cell("PodInfoOnMount", "spec.podInfoOnMount", False, "boolean"),
            cell("StorageCapacity", "spec.storageCapacity", False, "boolean"),
            cell("TokenRequests", _audiences),
            cell("RequiresRepublish", "spec.requiresRepublish", False, "boolean"),
            cell("Modes", lambda obj: ",".join(items(obj["spec"], "volumeLifecycleModes")) or NONE),
            AGE,
        ),
    ),
    (GROUP, "CSINode"): Strategy(
        **validated(_CSI_NODE, _same_node_drivers),
        allow_unconditional_update=False,
        returns_deleted=True,
        **printed(NAME, cell("Drivers", count("spec.drivers"), kind="integer"), AGE),
    ),
    (GROUP, "CSIStorageCapacity"): Strategy(
        warnings=_warn_about_capacity,
        **validated(_CAPACITY, immutable("nodeTopology", "storageClassName")),
        allow_unconditional_update=False,
    ),
    (GROUP, "VolumeAttachment"): Strategy(
        validate=_ATTACHMENT.validate,
        validate_update=changes(_CHANGED_ATTACHMENT.validate_update, immutable("spec", shown=False)),
        validate_status_update=_CHANGED_ATTACHMENT.validate_update,
        allow_unconditional_update=False,
        returns_deleted=True,
        **printed(
            NAME,
            Cell(TableColumn("Attacher", "string", "name"), lambda obj, now: obj["spec"].get("attacher", "")),
            cell("PV", "spec.source.persistentVolumeName"),
            cell("Node", "spec.nodeName"),
            cell("Attached", "status.attached", False, "boolean"),
            AGE,
        ),
    ),
}
