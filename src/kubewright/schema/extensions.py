"""Validation of `x-kubernetes-embedded-resource` and `x-kubernetes-list-type`, and the fields of ObjectMeta.

An embedded resource must have apiVersion, kind and valid metadata. The elements of a list of type set and the keys of
a list of type map must be unique.
"""

import re
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.json_tree import Json, Schema, additional, identity, in_order, items, properties

EmbeddedCheck = Callable[[Any, str, list[FieldError]], None]
"""Validate the embedded objects in a value, given its path and the list to append errors to."""

_ANNOTATIONS_LIMIT = 256 * 1024


def compile_embedded_checks(schema: Schema) -> EmbeddedCheck | None:
    """Compile the checks of the embedded objects below a schema; return None if it has none."""
    known = properties(schema)
    fields = {
        name: check
        for name, check in ((name, _node(sub)) for name, sub in known.items())
        if check is not None
    }
    other, element = additional(schema), items(schema)
    others = None if other is None else _node(other)
    elements = None if element is None else _node(element)
    if not fields and others is None and elements is None:
        return None

    def check(value: Json, path: str, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            for name, inner in fields.items():
                if name in value:
                    inner(value[name], f"{path}.{name}" if path else name, errors)
            if others is not None:
                for name, item in value.items():
                    if name not in known:
                        others(item, f"{path}[{name}]", errors)
        elif isinstance(value, list) and elements is not None:
            for position, item in enumerate(value):
                elements(item, f"{path}[{position}]", errors)

    return check


def _node(schema: Schema) -> EmbeddedCheck | None:
    below = compile_embedded_checks(schema)
    if not schema.get("x-kubernetes-embedded-resource"):
        return below

    def check(value: Json, path: str, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            errors += check_object(value, path)
        if below is not None:
            below(value, path, errors)

    return check


def check_embedded(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Return the errors in the embedded objects of a value, which may be one itself."""
    errors: list[FieldError] = []
    if (check := _node(schema)) is not None:
        check(value, path, errors)
    return errors


def check_object(value: dict[str, Any], path: str) -> list[FieldError]:
    """Return the errors in apiVersion, kind and metadata of an embedded object."""
    errors = [problems.required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        errors += _check_api_version(value["apiVersion"], f"{path}.apiVersion")
    if "kind" in value:
        errors += _check_kind(value["kind"], f"{path}.kind")
    if "metadata" in value:
        message = metadata_problem(value["metadata"])
        if message:
            errors.append(problems.invalid(f"{path}.metadata", in_order(value["metadata"]), message))
        else:
            errors += _check_metadata(value["metadata"] or {}, f"{path}.metadata")
    return errors


def _check_api_version(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [problems.invalid(path, in_order(value), "must be a string")]
    if not value:
        return [problems.invalid(path, value, "must not be empty")]
    if value.count("/") > 1:
        return [problems.invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _check_kind(value: Any, path: str) -> list[FieldError]:
    if not isinstance(value, str):
        return [problems.invalid(path, in_order(value), "must be a string")]
    if not value:
        return [problems.invalid(path, value, "must not be empty")]
    messages = names.dns1035_label(value.lower())
    text = "may have mixed case, but should otherwise match: " + ",".join(messages)
    return [problems.invalid(path, value, text)] if messages else []


def _check_metadata(meta: dict[str, Any], path: str) -> list[FieldError]:
    """Return the errors in the metadata; unlike other objects, an embedded one needs no name."""
    errors: list[FieldError] = []
    for name in ("generateName", "name"):
        value = meta.get(name) or ""
        errors += [
            problems.invalid(f"{path}.{name}", value, text) for text in _path_segment(value, name == "name")
        ]
    namespace = meta.get("namespace") or ""
    if namespace:
        errors += [
            problems.invalid(f"{path}.namespace", namespace, text) for text in names.dns1123_label(namespace)
        ]
    if (meta.get("generation") or 0) < 0:
        errors.append(
            problems.invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0")
        )
    labels: dict[str, str] = meta.get("labels") or {}
    for key, value in labels.items():
        errors += [problems.invalid(f"{path}.labels", key, text) for text in names.qualified_name(key)]
        errors += [problems.invalid(f"{path}.labels", value, text) for text in names.label_value(value)]
    annotations: dict[str, str] = meta.get("annotations") or {}
    for key in annotations:
        errors += [
            problems.invalid(f"{path}.annotations", key, text) for text in names.qualified_name(key.lower())
        ]
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        > _ANNOTATIONS_LIMIT
    ):
        errors.append(problems.too_long(f"{path}.annotations", _ANNOTATIONS_LIMIT))
    errors += _check_owners(meta.get("ownerReferences") or [], f"{path}.ownerReferences")
    finalizers: list[str] = meta.get("finalizers") or []
    for finalizer in finalizers:
        errors += [
            problems.invalid(f"{path}.finalizers", finalizer, text)
            for text in names.qualified_name(finalizer)
        ]
    return errors


def _path_segment(name: str, whole: bool) -> list[str]:
    if whole and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def _check_owners(references: list[dict[str, Any]], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controllers: list[str] = []
    shown = [{name: item[name] for name in _OWNER if name in item} for item in references]
    for reference in references:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(name):
                text = "version must not be empty" if name == "apiVersion" else "must not be empty"
                errors.append(problems.invalid(f"{path}.{name}", reference.get(name) or "", text))
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind', '')}/{reference.get('name', '')}")
            if len(controllers) > 1:
                text = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controllers[0]} and {controllers[-1]}"
                )
                errors.append(problems.invalid(path, shown, text))
    return errors


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
    """Return Go's error when it decodes this as ObjectMeta, or an empty string."""
    if meta is None:
        return ""
    if not isinstance(meta, dict):
        return f"json: cannot unmarshal {_json_name(meta)} into Go value of type v1.ObjectMeta"
    for name, value in meta.items():
        message = _field_problem(name, value)
        if message:
            return message
    return ""


def prune_metadata(meta: dict[str, Any], path: str) -> list[str]:
    """Remove the fields that ObjectMeta does not have, in place; return their paths.

    Malformed fields stay, so that validation reports them.
    """
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
            message = _value_problem(shape[key], inner, f"{kind}.{name}.{key}") if key in shape else ""
            if message:
                return message
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


ListCheck = Callable[[Any, str, list[FieldError]], None]
"""Find duplicates in a value, given its path and the list to append errors to."""


def compile_list_checks(schema: Schema) -> ListCheck | None:
    """Compile the uniqueness checks of a schema; return None if it has none."""
    fields = _present({name: compile_list_checks(sub) for name, sub in properties(schema).items()})
    other, element = additional(schema), items(schema)
    others = None if other is None else compile_list_checks(other)
    elements = None if element is None else compile_list_checks(element)
    unique = _uniqueness(schema)
    if not fields and others is None and elements is None and unique is None:
        return None

    def check(value: Json, path: str, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            if others is not None:
                for name, item in value.items():
                    others(item, f"{path}[{name}]", errors)
            for name, inner in fields.items():
                if name in value:
                    inner(value[name], f"{path}.{name}" if path else name, errors)
        elif isinstance(value, list):
            if unique is not None:
                unique(value, path, errors)
            if elements is not None:
                for position, item in enumerate(value):
                    elements(item, f"{path}[{position}]", errors)

    return check


def _present(checks: dict[str, ListCheck | None]) -> dict[str, ListCheck]:
    return {name: check for name, check in checks.items() if check is not None}


def _uniqueness(schema: Schema) -> ListCheck | None:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return _check_set
    if kind == "map":
        return _map_check(schema.get("x-kubernetes-list-map-keys", []))
    return None


def _check_set(value: list[Any], path: str, errors: list[FieldError]) -> None:
    for position in _repeated([identity(item) for item in value]):
        errors.append(problems.duplicate(f"{path}[{position}]", in_order(value[position])))


def _map_check(names: Sequence[str]) -> ListCheck:
    def check(value: list[Any], path: str, errors: list[FieldError]) -> None:
        for position, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                text = "must be an object for an array of list-type map"
                errors.append(problems.invalid(f"{path}[{position}]", in_order(item), text))
                return
        keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
        for position in _repeated([identity(key) for key in keys]):
            errors.append(problems.duplicate(f"{path}[{position}]", in_order(keys[position])))

    return check


def _repeated(keys: list[Hashable]) -> list[int]:
    """Return the position of the second appearance of each repeated key."""
    if len(set(keys)) == len(keys):
        return []
    seen: dict[Hashable, int] = {}
    positions: list[int] = []
    for position, key in enumerate(keys):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            positions.append(position)
    return positions
