"""Namespaces and nodes, and the limits within a namespace."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.cells import AGE, NAME, NONE, object_age, wide
from kubewright.devserver.builtin.scheduling import TAINT_EFFECTS
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, flag_at, keep_spec, restore, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column, Part, Strategy

_NAME_LABEL = "kubernetes.io/metadata.name"
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_QUOTA_RESOURCES = frozenset(
    {"cpu", "memory", "ephemeral-storage", "storage", "pods", "services", "replicationcontrollers", "secrets"}
    | {
        "resourcequotas",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")}
    | {"requests.storage"}
)
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_POD_AMOUNTS = ("cpu", "memory", "pods", "ephemeral-storage")
_LIMIT_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _default_namespace(namespace: JsonObject) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})[_NAME_LABEL] = name


def _new_namespace(namespace: JsonObject) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers: list[str] = items(section(namespace, "spec"), "finalizers")
    if "kubernetes" not in finalizers:
        finalizers = [*finalizers, "kubernetes"]
    namespace["spec"] = {"finalizers": finalizers}


def _finalize(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "status")


def _kept_namespace(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")
    restore(new, old, "status")


def _status_of_namespace(new: JsonObject, old: JsonObject) -> None:
    restore(new, old, "spec")


def _validate_namespace(namespace: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in items(section(namespace, "spec"), "finalizers"):
        errors += check.named("spec.finalizers", name, names.qualified_name(name))
        if name != "kubernetes" and "/" not in name:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(problems.invalid("spec.finalizers", name, text))
    return errors


def _check_finalized(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(items(section(new, "spec"), "finalizers")):
        path = f"spec.finalizers[{index}]"
        errors += check.named(path, name, names.qualified_name(name))
        if name != "kubernetes" and "/" not in name:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(problems.invalid(path, name, text))
    return errors


def _terminate_namespace(namespace: JsonObject) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"


def _emptied_namespace(namespace: JsonObject) -> bool:
    return not section(namespace, "spec").get("finalizers")


def _namespace_row(namespace: JsonObject, now: float) -> list[Any]:
    phase = section(namespace, "status").get("phase", "")
    return [namespace["metadata"]["name"], phase, object_age(namespace, now)]


def _default_node(node: JsonObject) -> None:
    spec: JsonObject = section(node, "spec")
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    elif spec.get("podCIDRs") and spec["podCIDRs"][0] != spec["podCIDR"]:
        # Of two that say different things, the older field is believed.
        spec["podCIDRs"] = [spec["podCIDR"]]
    status: JsonObject = section(node, "status")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _validate_node(node: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(items(section(node, "spec"), "taints")):
        path, key, effect = f"metadata.taints[{index}]", taint.get("key", ""), taint.get("effect", "")
        errors += check.named(f"{path}.key", key, names.qualified_name(key))
        value = taint.get("value", "")
        if troubles := names.label_value(value):
            errors.append(problems.invalid(f"{path}.value", value, ";".join(troubles)))
        errors += check.choice(f"{path}.effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            errors.append(problems.duplicate(path, taint))
        seen.add((key, effect))
    return errors


def _node_row(node: JsonObject, now: float) -> list[Any]:
    status: JsonObject = section(node, "status")
    ready = [item for item in items(status, "conditions") if item["type"] == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[0].get("status") == "True" else "NotReady"
    if section(node, "spec").get("unschedulable"):
        state += ",SchedulingDisabled"
    labels: dict[str, str] = section(node["metadata"], "labels")
    roles = {key[len(_ROLE_PREFIX) :] for key in labels if key.startswith(_ROLE_PREFIX)} - {""}
    if labels.get(_ROLE_LABEL):
        roles.add(labels[_ROLE_LABEL])
    addresses: dict[str, str] = {}
    for item in items(status, "addresses"):
        addresses.setdefault(item["type"], item["address"])
    info: JsonObject = section(status, "nodeInfo")
    return [
        node["metadata"]["name"],
        state,
        ",".join(sorted(roles)) or NONE,
        object_age(node, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or "<unknown>",
        _kernel(info),
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _kernel(info: JsonObject) -> str:
    version, machine = info.get("kernelVersion"), info.get("architecture")
    if not version:
        return "<unknown>"
    return f"{version} ({machine})" if machine else version


def _validate_quota(quota: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    hard: dict[str, Any] = section(section(quota, "spec"), "hard")
    for name, value in hard.items():
        path = f"spec.hard[{name}]"
        if troubles := names.qualified_name(name):
            errors += check.named(path, name, troubles)
        elif "/" not in name and name not in _QUOTA_RESOURCES and ".hugepages-" not in name:
            errors.append(problems.invalid(path, name, "must be a standard resource type or fully qualified"))
            errors.append(problems.invalid(path, name, "must be a standard resource for quota"))
        errors += check.amount(path, name, value)
    return errors + list(_check_scopes(section(quota, "spec"), hard))


def _check_scopes(spec: JsonObject, hard: Mapping[str, Any]) -> Iterator[FieldError]:
    scopes: list[str] = items(spec, "scopes")
    if scopes:
        path = "spec.scopes"
        for scope in dict.fromkeys(scopes):
            if scope not in _SCOPES:
                yield problems.invalid(path, scopes, "unsupported scope")
                continue
            for name in hard:
                counted = name.removeprefix("requests.").removeprefix("limits.")
                # A budget for Pods that ask for nothing can only count them.
                fits = name == "pods" if scope == "BestEffort" else counted in _POD_AMOUNTS
                if _is_standard(name) and not fits:
                    yield problems.invalid(path, scopes, "unsupported scope applied to resource")
        for first, second in _OPPOSITES:
            if first in scopes and second in scopes:
                yield problems.invalid(path, scopes, "conflicting scopes")
    path = "spec.scopeSelector.matchExpressions"
    for item in items(section(spec, "scopeSelector"), "matchExpressions"):
        scope, operator, values = item.get("scopeName", ""), item.get("operator", ""), items(item, "values")
        if scope not in _SCOPES:
            yield problems.invalid(f"{path}.scopeName", scope, "unsupported scope")
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield problems.required(f"{path}.values", text)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector"
                yield problems.invalid(f"{path}.values", values, text)
        else:
            yield problems.invalid(f"{path}.operator", operator, "not a valid selector operator")


def _is_standard(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.startswith(("requests.", "limits."))


def _quota_row(quota: JsonObject, now: float) -> list[Any]:
    status: JsonObject = section(quota, "status")
    hard: dict[str, Any] = section(status, "hard")
    used: dict[str, Any] = section(status, "used")
    told = {name: f"{name}: {used.get(name, '0')}/{amount}" for name, amount in sorted(hard.items())}
    requests = ", ".join(text for name, text in told.items() if not name.startswith("limits"))
    limits = ", ".join(text for name, text in told.items() if name.startswith("limits"))
    return [quota["metadata"]["name"], requests, limits, object_age(quota, now)]


def _default_limit_range(obj: JsonObject) -> None:
    for item in items(section(obj, "spec"), "limits"):
        if item.get("type") != "Container":
            continue
        ceiling: dict[str, Any] = section(item, "max")
        usual: dict[str, Any] = {**ceiling, **section(item, "default")}
        asked: dict[str, Any] = {**section(item, "min"), **usual, **section(item, "defaultRequest")}
        if usual:
            item["default"] = dict(sorted(usual.items()))
        if asked:
            item["defaultRequest"] = dict(sorted(asked.items()))


def _name_limit_range(obj: JsonObject) -> None:
    """Name one that nobody named: of all kinds, only this one may come without."""
    metadata = obj["metadata"]
    if not metadata.get("name"):
        metadata["name"] = str(uuid.uuid4())


def _validate_limit_range(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items(section(obj, "spec"), "limits")):
        path, kind = f"spec.limits[{index}]", item.get("type", "")
        errors += check.named(f"{path}.type", kind, names.qualified_name(kind))
        if not names.qualified_name(kind) and "/" not in kind and kind not in _LIMIT_TYPES:
            text = "must be a standard limit type or fully qualified"
            errors.append(problems.invalid(f"{path}.type", kind, text))
        if kind in seen:
            errors.append(problems.duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            for part in ("default", "defaultRequest"):
                if item.get(part):
                    text = "may not be specified when `type` is 'Pod'"
                    errors.append(problems.forbidden(f"{path}.{part}", text))
        errors += _check_limits(item, path)
    return errors


def _check_limits(item: JsonObject, path: str) -> list[FieldError]:
    found = {part: dict(section(item, part)) for part in _LIMIT_PARTS}
    errors: list[FieldError] = []
    for name in sorted({name for part in found.values() for name in part}):
        for over, under, culprit, field, text in _ORDERED:
            if name not in found[over] or name not in found[under]:
                continue
            high, low = found[over][name], found[under][name]
            if check.quantity(low) > check.quantity(high):
                shown = found[culprit][name]
                detail = text.format(low=low, high=high)
                errors.append(problems.invalid(f"{path}.{field}[{name}]", str(shown), detail))
    return errors


# What must not exceed what, which value the real server shows, where, and in which words.
_ORDERED = (
    ("max", "min", "min", "min", "min value {low} is greater than max value {high}"),
    (
        "defaultRequest",
        "min",
        "defaultRequest",
        "defaultRequest",
        "min value {low} is greater than default request value {high}",
    ),
    (
        "max",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "default request value {low} is greater than max value {high}",
    ),
    (
        "default",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "default request value {low} is greater than default limit value {high}",
    ),
    ("default", "min", "min", "default", "min value {low} is greater than default value {high}"),
    ("max", "default", "max", "default", "default value {low} is greater than max value {high}"),
)


def _again(
    validate: Callable[[JsonObject], list[FieldError]],
) -> Callable[[JsonObject, JsonObject], list[FieldError]]:
    return lambda new, old: validate(new)


STRATEGIES = {
    ("", "Namespace"): Strategy(
        default=_default_namespace,
        prepare_create=_new_namespace,
        prepare_update=_kept_namespace,
        prepare_status_update=_status_of_namespace,
        validate=_validate_namespace,
        name_check=names.dns1123_label,
        returns_deleted=True,
        begin_delete=_terminate_namespace,
        deletable=_emptied_namespace,
        selectable_fields={"status.phase": text_at("status", "phase")},
        columns=(NAME, Column("Status"), AGE),
        row=_namespace_row,
        parts={"finalize": Part(_finalize, _check_finalized)},
        reset_fields={**SPEC_AND_STATUS, "finalize": frozenset({("status",)})},
    ),
    ("", "Node"): Strategy(
        default=_default_node,
        prepare_status_update=keep_spec,
        validate=_validate_node,
        # The real server, too, looks at a changed node twice.
        validate_update=lambda new, old: _validate_node(new) * 2,
        # A kubelet registers itself with the state it is in.
        status_on_create=True,
        selectable_fields={"spec.unschedulable": flag_at("spec", "unschedulable")},
        columns=(
            NAME,
            Column("Status"),
            Column("Roles"),
            AGE,
            Column("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        row=_node_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("", "ResourceQuota"): Strategy(
        prepare_status_update=keep_spec,
        validate=_validate_quota,
        validate_update=_again(_validate_quota),
        returns_deleted=True,
        columns=(NAME, Column("Request"), Column("Limit"), AGE),
        row=_quota_row,
        reset_fields=SPEC_AND_STATUS,
    ),
    ("", "LimitRange"): Strategy(
        default=_default_limit_range,
        prepare_create=_name_limit_range,
        validate=_validate_limit_range,
        validate_update=_again(_validate_limit_range),
        allow_create_on_update=True,
    ),
}
