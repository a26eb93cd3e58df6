"""The shape of ObjectMeta: which fields it has, of which types, and what to drop of anything else."""

import re
from datetime import datetime
from typing import Any

from kubewright.schema.values import Json

_OWNER: dict[str, str] = {
    "apiVersion": "string",
    "kind": "string",
    "name": "string",
    "uid": "string",
    "controller": "bool",
    "blockOwnerDeletion": "bool",
}
_MANAGED: dict[str, str] = {
    "manager": "string",
    "operation": "string",
    "apiVersion": "string",
    "time": "time",
    "fieldsType": "string",
    "fieldsV1": "any",
    "subresource": "string",
}
_META: dict[str, str | dict[str, str]] = {
    "name": "string",
    "generateName": "string",
    "namespace": "string",
    "selfLink": "string",
    "uid": "string",
    "resourceVersion": "string",
    "generation": "int64",
    "creationTimestamp": "time",
    "deletionTimestamp": "time",
    "deletionGracePeriodSeconds": "int64",
    "labels": "map",
    "annotations": "map",
    "ownerReferences": _OWNER,
    "finalizers": "strings",
    "managedFields": _MANAGED,
}
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)


def metadata_problem(meta: Json) -> str:
    """Say why Go could not read this as ObjectMeta; nothing when it can."""
    if meta is None:
        return ""
    if not isinstance(meta, dict):
        return f"json: cannot unmarshal {_json_name(meta)} into Go value of type v1.ObjectMeta"
    for name, value in meta.items():
        trouble = _field_problem(name, value)
        if trouble:
            return trouble
    return ""


def prune_metadata(meta: dict[str, Any], path: str) -> list[str]:
    """Drop what ObjectMeta does not have, in place; return the paths of it. Malformed fields stay, to be reported."""
    unknown: list[str] = []
    for name in list(meta):
        shape = _META.get(name)
        if shape is None:
            unknown.append(f"{path}.{name}")
            del meta[name]
        elif meta[name] is None:
            del meta[name]
        elif isinstance(shape, dict) and not _field_problem(name, meta[name]):
            entries: list[dict[str, Any] | None] = meta[name]
            for position, item in enumerate(entries):
                for key in [key for key in item or {} if key not in shape]:
                    unknown.append(f"{path}.{name}[{position}].{key}")
                    (item or {}).pop(key)
    return unknown


def _field_problem(name: str, value: Json) -> str:
    shape = _META.get(name)
    if shape is None or value is None:
        return ""
    if isinstance(shape, str):
        return _value_problem(shape, value, f"ObjectMeta.{name}")
    kind = "OwnerReference" if shape is _OWNER else "ManagedFieldsEntry"
    if not isinstance(value, list):
        return _mismatch(value, f"ObjectMeta.{name}", f"[]v1.{kind}")
    entries: list[Json] = value
    for item in entries:
        if item is None:
            continue
        if not isinstance(item, dict):
            return _mismatch(item, f"ObjectMeta.{name}", f"v1.{kind}")
        for key, inner in item.items():
            trouble = _value_problem(shape[key], inner, f"{kind}.{name}.{key}") if key in shape else ""
            if trouble:
                return trouble
    return ""


def _value_problem(shape: str, value: Json, field: str) -> str:
    if value is None or shape == "any":
        return ""
    if shape == "time":
        return _time_problem(value)
    if shape in ("map", "strings"):
        if isinstance(value, dict) and shape == "map":
            members = list(value.values())
        elif isinstance(value, list) and shape == "strings":
            members = value
        else:
            return _mismatch(value, field, "map[string]string" if shape == "map" else "[]string")
        wrong = [member for member in members if not isinstance(member, str | None)]
        return _mismatch(wrong[0], field, "string") if wrong else ""
    expected = {"string": str, "bool": bool, "int64": int}[shape]
    return "" if type(value) is expected else _mismatch(value, field, shape)


def _time_problem(value: Json) -> str:
    if not isinstance(value, str):
        return f"json: cannot unmarshal {_json_name(value)} into Go value of type string"
    if _RFC3339.fullmatch(value):
        try:
            datetime.fromisoformat(re.sub(r"\.\d+", "", value))
        except ValueError:
            pass
        else:
            return ""
    return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'


def _mismatch(value: Any, field: str, expected: str) -> str:
    return f"json: cannot unmarshal {_json_name(value)} into Go struct field {field} of type {expected}"


def _json_name(value: Any) -> str:
    names: dict[type, str] = {
        bool: "bool",
        str: "string",
        int: "number",
        float: "number",
        list: "array",
        dict: "object",
    }
    return names[type(value)]
