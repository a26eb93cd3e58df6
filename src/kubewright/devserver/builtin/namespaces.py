"""Namespaces, and the quotas and limit ranges in them."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, cell, printed
from kubewright.devserver.builtin.rules import each, rules
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, keep_spec, restore, text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import PartialSubresource, Strategy

_NAME_LABEL = "kubernetes.io/metadata.name"
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
_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
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
_CONFLICTING_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_POD_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")
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


def _finalizer(path: str, name: str) -> list[FieldError]:
    errors = check.named(path, name, names.qualified_name(name))
    if name != "kubernetes" and "/" not in name:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(problems.invalid(path, name, text))
    return errors


_NAMESPACE = rules(("spec.finalizers", each(_finalizer)))
_FINALIZED = rules(("spec.finalizers[]", _finalizer))


def _terminate_namespace(namespace: JsonObject) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"


def _emptied_namespace(namespace: JsonObject) -> bool:
    return not section(namespace, "spec").get("finalizers")


def _validate_quota(quota: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    hard: dict[str, Any] = section(section(quota, "spec"), "hard")
    for name, value in hard.items():
        path = f"spec.hard[{name}]"
        if reasons := names.qualified_name(name):
            errors += check.named(path, name, reasons)
        elif "/" not in name and name not in _QUOTA_RESOURCES and ".hugepages-" not in name:
            errors.append(problems.invalid(path, name, "must be a standard resource type or fully qualified"))
            errors.append(problems.invalid(path, name, "must be a standard resource for quota"))
        errors += check.resource_quantity(path, name, value)
    return errors + list(_check_scopes(section(quota, "spec"), hard))


def _validate_quota_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = _validate_quota(new)
    scopes: list[str] = items(section(new, "spec"), "scopes")
    if set(scopes) != set(items(section(old, "spec"), "scopes")):
        errors.append(problems.invalid("spec.scopes", scopes or None, check.IMMUTABLE))
    return errors


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
                # Pods of the class BestEffort have no requests, so a quota can only count them.
                fits = name == "pods" if scope == "BestEffort" else counted in _POD_RESOURCES
                if _is_standard(name) and not fits:
                    yield problems.invalid(path, scopes, "unsupported scope applied to resource")
        for first, second in _CONFLICTING_SCOPES:
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


def _quota_usage(*, limits: bool) -> Callable[[JsonObject], str]:
    def read(quota: JsonObject) -> str:
        hard: dict[str, Any] = section(quota, "status", "hard")
        used: dict[str, Any] = section(quota, "status", "used")
        return ", ".join(
            f"{name}: {used.get(name, '0')}/{most}"
            for name, most in sorted(hard.items())
            if name.startswith("limits") == limits
        )

    return read


def _default_limit_range(obj: JsonObject) -> None:
    for item in items(section(obj, "spec"), "limits"):
        if item.get("type") != "Container":
            continue
        limits: dict[str, Any] = {**section(item, "max"), **section(item, "default")}
        requests: dict[str, Any] = {**section(item, "min"), **limits, **section(item, "defaultRequest")}
        if limits:
            item["default"] = dict(sorted(limits.items()))
        if requests:
            item["defaultRequest"] = dict(sorted(requests.items()))


def _name_limit_range(obj: JsonObject) -> None:
    """Generate a name if there is none, which only this kind allows."""
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
        errors += _check_limit_names(kind, item, path)
        if kind == "Pod":
            for part in ("default", "defaultRequest"):
                if item.get(part):
                    text = "may not be specified when `type` is 'Pod'"
                    errors.append(problems.forbidden(f"{path}.{part}", text))
        if kind == "PersistentVolumeClaim" and not {"storage"} & {
            *section(item, "min"),
            *section(item, "max"),
        }:
            text = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(problems.required(f"{path}.limits", text))
        errors += _check_limits(item, path)
    return errors


def _check_limit_names(kind: str, item: JsonObject, path: str) -> list[FieldError]:
    """Check the names of the limited resources: of Pods and containers, those that containers can have."""
    errors: list[FieldError] = []
    for part in _LIMIT_PARTS:
        if kind == "Pod" and part in ("default", "defaultRequest"):
            continue
        for name in section(item, part):
            errors += _check_limit_name(kind, f"{path}.{part}[{name}]", name)
    return errors


def _check_limit_name(kind: str, path: str, name: str) -> list[FieldError]:
    errors = check.named(path, name, names.qualified_name(name))
    huge_pages = name.startswith(("hugepages-", "requests.hugepages-"))
    if not errors and "/" not in name and name not in _QUOTA_RESOURCES and not huge_pages:
        errors.append(problems.invalid(path, name, "must be a standard resource type or fully qualified"))
    if kind not in ("Container", "Pod"):
        return errors
    if "/" not in name and name not in _CONTAINER_RESOURCES and not name.startswith("hugepages-"):
        errors.append(problems.invalid(path, name, "must be a standard resource for containers"))
    elif check.is_extended(name) and names.qualified_name(f"requests.{name}"):
        errors.append(problems.invalid(path, name, "doesn't follow extended resource name standard"))
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


# Field that must not be below another, the value and field that the real server reports, and its message.
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


STRATEGIES = {
    ("", "Namespace"): Strategy(
        default=_default_namespace,
        prepare_create=_new_namespace,
        prepare_update=_kept_namespace,
        prepare_status_update=_status_of_namespace,
        validate=_NAMESPACE.validate,
        name_check=names.dns1123_label,
        returns_deleted=True,
        begin_delete=_terminate_namespace,
        deletable=_emptied_namespace,
        selectable_fields={"status.phase": text_at("status", "phase")},
        parts={"finalize": PartialSubresource(_finalize, _FINALIZED.validate_update)},
        reset_fields={**SPEC_AND_STATUS, "finalize": frozenset({("status",)})},
        **printed(NAME, cell("Status", "status.phase"), AGE),
    ),
    ("", "ResourceQuota"): Strategy(
        prepare_status_update=keep_spec,
        validate=_validate_quota,
        validate_update=_validate_quota_update,
        returns_deleted=True,
        reset_fields=SPEC_AND_STATUS,
        **printed(
            NAME,
            cell("Request", _quota_usage(limits=False)),
            cell("Limit", _quota_usage(limits=True)),
            AGE,
        ),
    ),
    ("", "LimitRange"): Strategy(
        default=_default_limit_range,
        prepare_create=_name_limit_range,
        validate=_validate_limit_range,
        validate_update=lambda new, old: _validate_limit_range(new),
        allow_create_on_update=True,
    ),
}
