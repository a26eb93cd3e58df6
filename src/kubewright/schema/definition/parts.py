"""The parts of a CRD beside its schemas: names, subresources, columns, selectable fields."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.fieldpaths import FieldPathError, resolve_field_path
from kubewright.schema.nodes import Schema

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_MAX_SELECTABLE = 8


def named(given: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a kind with the two that the server fills in."""
    kind = given.get("kind", "")
    defaults = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
    return {**given, **{name: value for name, value in defaults.items() if not given.get(name)}}


def check_required_names(given: dict[str, Any]) -> Iterator[FieldError]:
    """Report names that are missing."""
    filled = named(given)
    for name in ("plural", "singular", "kind", "listKind"):
        if not filled.get(name):
            yield problems.required(f"spec.names.{name}")


def check_names(given: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Report names that are malformed."""
    for name in ("plural", "singular"):
        yield from _label(given.get(name, ""), f"{path}.{name}")
    for name in ("kind", "listKind"):
        value = given.get(name, "")
        troubles = names.dns1035_label(value.lower()) if value else []
        if troubles:
            text = "may have mixed case, but should otherwise match: " + ",".join(troubles)
            yield problems.invalid(f"{path}.{name}", value, text)
    for position, value in enumerate(given.get("shortNames") or ()):
        yield from _listed(value, f"{path}.shortNames[{position}]")
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield problems.invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    for position, value in enumerate(given.get("categories") or ()):
        yield from _listed(value, f"{path}.categories[{position}]")


def _label(value: str, path: str) -> Iterator[FieldError]:
    """Check a name, unless it is missing: that is told as such."""
    if value:
        yield from _listed(value, path)


def _listed(value: str, path: str) -> Iterator[FieldError]:
    if troubles := names.dns1035_label(value):
        yield problems.invalid(path, value, ",".join(troubles))


def check_subresources(subresources: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Report what is wrong with the paths of the scale subresource."""
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, prefixes, text in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value, field = scale.get(name) or "", f"{path}.scale.{name}"
        if not value:
            if name != "labelSelectorPath":
                yield problems.required(field)
        elif not value.startswith("."):
            yield problems.invalid(field, value, "must be a simple json path starting with .")
        elif not value.startswith(prefixes):
            yield problems.invalid(field, value, text)


def check_column(column: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Report what is wrong with a printer column."""
    kind, shape, json_path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    if not column.get("name"):
        yield problems.required(f"{path}.name")
    known = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield problems.required(f"{path}.type", known)
    elif kind not in _COLUMN_TYPES:
        yield problems.invalid(f"{path}.type", kind, known)
    if shape and shape not in _COLUMN_FORMATS:
        yield problems.invalid(f"{path}.format", shape, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not json_path:
        yield problems.required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        yield problems.invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def check_selectable_fields(fields: list[dict[str, str]], schema: Schema, path: str) -> Iterator[FieldError]:
    """Report selectable fields that are none."""
    seen: set[str] = set()
    for position, field in enumerate(fields):
        text, place = field.get("jsonPath", ""), f"{path}[{position}].jsonPath"
        if not text:
            yield problems.required(place)
            continue
        try:
            resolved, found = resolve_field_path(text, schema, brackets=False)
        except FieldPathError as error:
            yield problems.invalid(place, text, f"is an invalid path: {error}")
            continue
        if resolved.split(".")[0] == "metadata":
            yield problems.invalid(place, text, "must not point to fields in metadata")
        if found is None or found.get("type") not in _SELECTABLE_TYPES:
            trouble = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield problems.invalid(place, text, trouble)
        if resolved in seen:
            yield problems.duplicate(place, text)
        seen.add(resolved)
    if len(seen) > _MAX_SELECTABLE:
        yield problems.too_many(path, len(seen), _MAX_SELECTABLE)
