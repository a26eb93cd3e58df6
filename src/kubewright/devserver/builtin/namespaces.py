"""Namespaces, and the quotas and limit ranges in them."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import AGE, NAME, cell, printed
from kubewright.devserver.builtin.resource_names import (
    container_resource_name,
    is_quota_resource,
    quota_resource_name,
    resource_name,
)
from kubewright.devserver.builtin.rules import each, rules, validated
from kubewright.devserver.builtin.writes import SPEC_AND_STATUS, STATUS_KEEPS_SPEC, keep, text_at
from kubewright.devserver.objects import JsonObject, items, section, words
from kubewright.devserver.strategy import PartialSubresource, Strategy

_NAME_LABEL = "kubernetes.io/metadata.name"
_LIMIT_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_SCOPES = words(
    "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating "
    "VolumeAttributesClass"
)
_CONFLICTING_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTING_SCOPES = words("BestEffort NotBestEffort Terminating NotTerminating CrossNamespacePodAffinity")
"""Scopes that a selector can only require to exist."""
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_UNFIT = "unsupported scope applied to resource"
_POD_RESOURCES = ("cpu", "memory", "pods")
_CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
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


_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _finalizer(path: str, name: str) -> list[FieldError]:
    errors = check.named(path, name, names.qualified_name(name))
    if name not in _STANDARD_FINALIZERS and "/" not in name:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(problems.invalid(path, name, text))
    return errors


_NAMESPACE = rules(("spec.finalizers", each(_finalizer)))
_FINALIZED = rules(("spec.finalizers[]", _finalizer))


def _terminate_namespace(namespace: JsonObject) -> None:
    namespace.setdefault("status", {})["phase"] = "Terminating"


def _emptied_namespace(namespace: JsonObject) -> bool:
    return not section(namespace, "spec").get("finalizers")


def _quota_amounts(amounts: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name, value in amounts.items():
        yield from quota_resource_name(f"{path}[{name}]", name)
        yield from check.resource_quantity(f"{path}[{name}]", name, value)


def _validate_quota(quota: JsonObject) -> list[FieldError]:
    hard: dict[str, Any] = section(section(quota, "spec"), "hard")
    return [*_quota_amounts(hard, "spec.hard"), *_check_scopes(section(quota, "spec"), hard)]


def _quota_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    parts = {f"status.{name}": section(new, "status", name) for name in ("hard", "used")}
    return [error for path, amounts in parts.items() for error in _quota_amounts(amounts, path)]


def _same_scopes(new: JsonObject, old: JsonObject) -> Iterator[FieldError]:
    scopes: list[str] = items(section(new, "spec"), "scopes")
    if set(scopes) != set(items(section(old, "spec"), "scopes")):
        yield problems.invalid("spec.scopes", scopes or None, check.IMMUTABLE)


def _check_scopes(spec: JsonObject, hard: Mapping[str, Any]) -> Iterator[FieldError]:
    scopes: list[str] = items(spec, "scopes")
    if scopes:
        path = "spec.scopes"
        for scope in dict.fromkeys(scopes):
            if scope not in _SCOPES:
                yield problems.invalid(path, scopes, "unsupported scope")
                continue
            for _ in _unfit_resources(scope, hard):
                yield problems.invalid(path, scopes, _UNFIT)
        for first, second in _CONFLICTING_SCOPES:
            if first in scopes and second in scopes:
                yield problems.invalid(path, scopes, "conflicting scopes")
    yield from _check_scope_selector(section(spec, "scopeSelector"), scopes, hard)


def _unfit_resources(scope: str, hard: Mapping[str, Any]) -> list[str]:
    """Return the resources that a quota of a scope cannot limit."""
    if scope not in _SCOPES:
        return []
    found: list[str] = []
    for name in sorted(hard):
        counted = name.removeprefix("requests.").removeprefix("limits.")
        if scope == "BestEffort":
            # Pods of this class have no requests, so a quota can only count them.
            fits = name == "pods"
        elif scope == "VolumeAttributesClass":
            fits = name in _CLAIM_RESOURCES
        else:
            fits = counted in _POD_RESOURCES
        if is_quota_resource(name) and not fits:
            found.append(name)
    return found


def _check_scope_selector(
    selector: JsonObject, scopes: list[str], hard: Mapping[str, Any]
) -> Iterator[FieldError]:
    path = "spec.scopeSelector.matchExpressions"
    requirements: list[JsonObject] = items(selector, "matchExpressions")
    shown = {
        "MatchExpressions": [
            {
                "ScopeName": item.get("scopeName", ""),
                "Operator": item.get("operator", ""),
                "Values": item.get("values"),
            }
            for item in requirements
        ]
    }
    for item in requirements:
        scope, operator, values = item.get("scopeName", ""), item.get("operator", ""), items(item, "values")
        if scope not in _SCOPES:
            yield problems.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _unfit_resources(scope, hard):
            yield problems.invalid(path, shown, _UNFIT)
        if scope in _EXISTING_SCOPES and operator != "Exists":
            yield problems.invalid(f"{path}.operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield problems.required(f"{path}.values", text)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield problems.invalid(f"{path}.values", values, text)
        else:
            yield problems.invalid(f"{path}.operator", operator, "not a valid selector operator")
    selected = {item.get("scopeName", "") for item in requirements}
    for pair in _CONFLICTING_SCOPES:
        if selected.issuperset(pair):
            yield problems.invalid(path, scopes or None, "conflicting scopes")


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
    if kind in ("Container", "Pod"):
        return container_resource_name(path, name)
    return resource_name(path, name)


def _check_limits(item: JsonObject, path: str) -> list[FieldError]:
    found = {part: dict(section(item, part)) for part in _LIMIT_PARTS}
    errors: list[FieldError] = []
    for name in sorted({name for part in found.values() for name in part}):
        for over, under, culprit, field, title in _ORDERED:
            if name not in found[over] or name not in found[under]:
                continue
            high, low = found[over][name], found[under][name]
            if check.quantity(low) > check.quantity(high):
                text = f"{_LOWER[under]} {low} is greater than {title} {high}"
                errors.append(problems.invalid(f"{path}.{field}[{name}]", str(found[culprit][name]), text))
    return errors


# A field, one that must not be above it, the value and the field that the real server reports, and its words.
_ORDERED = (
    ("max", "min", "min", "min", "max value"),
    ("defaultRequest", "min", "defaultRequest", "defaultRequest", "default request value"),
    ("max", "defaultRequest", "defaultRequest", "defaultRequest", "max value"),
    ("default", "defaultRequest", "defaultRequest", "defaultRequest", "default limit value"),
    ("default", "min", "min", "default", "default value"),
    ("max", "default", "max", "default", "max value"),
)
_LOWER = {"min": "min value", "defaultRequest": "default request value", "default": "default value"}


STRATEGIES = {
    ("", "Namespace"): Strategy(
        default=_default_namespace,
        # A generated name becomes a label when the namespace is read.
        is_defaulted_when_read=True,
        prepare_create=_new_namespace,
        prepare_update=keep("spec", "status"),
        prepare_status_update=keep("spec"),
        validate=_NAMESPACE.validate,
        name_check=names.dns1123_label,
        returns_deleted=True,
        begin_delete=_terminate_namespace,
        deletable=_emptied_namespace,
        selectable_fields={"status.phase": text_at("status", "phase")},
        parts={"finalize": PartialSubresource(keep("status"), _FINALIZED.validate_update)},
        reset_fields={**SPEC_AND_STATUS, "finalize": frozenset({("status",)})},
        **printed(NAME, cell("Status", "status.phase"), AGE),
    ),
    ("", "ResourceQuota"): Strategy(
        **validated(_validate_quota, _same_scopes),
        validate_status_update=_quota_status,
        returns_deleted=True,
        **STATUS_KEEPS_SPEC,
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
        **validated(_validate_limit_range),
        allow_create_on_update=True,
    ),
}
