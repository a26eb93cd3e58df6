"""Validation of the fields that the scale subresource of a custom resource uses."""

from typing import Any, cast

from kubewright.api import FieldError, problems
from kubewright.devserver.objects import JsonObject, go_text

_LARGEST = 2**31 - 1
_SORTS: dict[type[object], str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
}


def check_scale_spec(scale: JsonObject, obj: JsonObject) -> list[FieldError]:
    """Check the desired replicas of an object; nothing without a scale subresource."""
    return _count(obj, scale["specReplicasPath"]) if scale else []


def check_scale_status(scale: JsonObject, obj: JsonObject) -> list[FieldError]:
    """Check the present replicas and the selector."""
    if not scale:
        return []
    errors = _count(obj, scale["statusReplicasPath"])
    path = scale.get("labelSelectorPath")
    if path:
        value, reason = _find(obj, path, str, "string")
        if reason:
            errors.append(problems.invalid(path, value or "", reason))
    return errors


def _count(obj: JsonObject, path: str) -> list[FieldError]:
    value, reason = _find(obj, path, int, "int64")
    if reason:
        return [problems.invalid(path, 0, reason)]
    if value is not None and value < 0:
        return [problems.invalid(path, value, "should be a non-negative integer")]
    if value is not None and value > _LARGEST:
        return [problems.invalid(path, value, f"should be less than or equal to {_LARGEST}")]
    return []


def _find(obj: JsonObject, path: str, expected: type[object], sort: str) -> tuple[Any, str]:
    """Return the value at a path, or None, and the reason if its type is wrong."""
    value: Any = obj
    for name in path.removeprefix(".").split("."):
        if not isinstance(value, dict):
            return None, _accessor_error(path, value, "map[string]interface{}")
        if name not in value:
            return None, ""
        value = cast(JsonObject, value)[name]
    if type(cast(object, value)) is not expected:
        return None, _accessor_error(path, value, sort)
    return value, ""


def _accessor_error(path: str, value: Any, expected: str) -> str:
    found = _SORTS.get(type(cast(object, value)), "map[string]interface {}")
    return f"{path} accessor error: {go_text(value)} is of the type {found}, expected {expected}"


def keep_scale_floats(scale: JsonObject, sent: JsonObject, body: JsonObject) -> None:
    """Put 5.0 back where a whole float was sent as a number of replicas: kube-apiserver requires an integer there."""
    for path in (scale["specReplicasPath"], scale["statusReplicasPath"]) if scale else ():
        value, _ = _find(sent, path, float, "float64")
        if value is None:
            continue
        *parents, last = path.removeprefix(".").split(".")
        target = body
        for name in parents:
            target = target.get(name, {})
        if last in target:
            target[last] = value
