"""Whole objects embedded in a custom resource: their type and metadata are checked like any object's."""

from collections.abc import Callable
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.metadata import metadata_problem
from kubewright.schema.nodes import Schema, additional, items, properties
from kubewright.schema.values import Json, in_order

EmbeddedCheck = Callable[[Any, str, list[FieldError]], None]
"""Report on embedded objects in a value, given its path and the list to add to."""

_ANNOTATIONS_LIMIT = 256 * 1024
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def compile_embedded_checks(schema: Schema) -> EmbeddedCheck | None:
    """Compile the checks of the embedded objects below a schema, or return None where it has none."""
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


def check_object(value: dict[str, Any], path: str) -> list[FieldError]:
    """Report what is wrong with the type and metadata of an embedded object."""
    errors = [problems.required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in value]
    if "apiVersion" in value:
        errors += _check_api_version(value["apiVersion"], f"{path}.apiVersion")
    if "kind" in value:
        errors += _check_kind(value["kind"], f"{path}.kind")
    if "metadata" in value:
        trouble = metadata_problem(value["metadata"])
        if trouble:
            errors.append(problems.invalid(f"{path}.metadata", in_order(value["metadata"]), trouble))
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
    troubles = names.dns1035_label(value.lower())
    text = "may have mixed case, but should otherwise match: " + ",".join(troubles)
    return [problems.invalid(path, value, text)] if troubles else []


def _check_metadata(meta: dict[str, Any], path: str) -> list[FieldError]:
    """Report what is wrong with the metadata; unlike elsewhere it needs no name."""
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
    shown = [{name: item[name] for name in _OWNER_FIELDS if name in item} for item in references]
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
