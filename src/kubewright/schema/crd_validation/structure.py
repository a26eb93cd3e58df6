"""Validation that a schema is structural: each value has one type, and anyOf, allOf, oneOf and not only restrict it."""

from collections.abc import Iterator
from typing import Any, Literal

from kubewright.api import FieldError, problems
from kubewright.schema.json_tree import Schema, additional, items, properties
from kubewright.schema.patterns import PatternError, compile_pattern

_Level = Literal["root", "item", "field"]

_INT_OR_STRING: list[Schema] = [{"type": "integer"}, {"type": "string"}]
_TYPELESS: dict[_Level, str] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_FORBIDDEN_IN_LOGIC: tuple[tuple[str, str], ...] = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}


def conversion_error(schema: Schema) -> str:
    """Return the server's error when it converts a schema to its structural form, or an empty string."""
    for keyword, name in _UNSUPPORTED.items():
        if schema.get(keyword) or (keyword == "additionalItems" and schema.get(keyword) is not None):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    below: list[Any] = [*properties(schema).values(), items(schema), additional(schema), schema.get("not")]
    below += [sub for keyword in ("allOf", "anyOf", "oneOf") for sub in schema.get(keyword) or ()]
    return next((text for sub in below if sub and (text := conversion_error(sub))), "")


def check_structure(schema: Schema, path: str) -> list[FieldError]:
    """Return the errors where a schema is not structural, sorted by message."""
    errors = [*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)]
    return sorted(errors, key=str)


def _invariants(schema: Schema, level: _Level, path: str) -> Iterator[FieldError]:
    element, other = items(schema), additional(schema)
    if schema.get("type") == "array" and element is None:
        yield problems.required(f"{path}.items", "must be specified")
    if element is not None:
        yield from _invariants(element, "item", f"{path}.items")
    for name, sub in properties(schema).items():
        yield from _invariants(sub, "field", f"{path}.properties[{name}]")
    if schema.get("additionalProperties") is not None:
        if level == "root":
            yield problems.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if other is not None:
            yield from _invariants(other, "field", f"{path}.additionalProperties")
    yield from _extensions(schema, path)
    either = schema.get("anyOf") == _INT_OR_STRING
    every: list[Schema] = schema.get("allOf") or []
    first_either = bool(every) and every[0].get("anyOf") == _INT_OR_STRING
    yield from _logic(schema, path, skip_any=either, skip_first_all=first_either)
    yield from _type(schema, level, path)
    if level == "root" or schema.get("x-kubernetes-embedded-resource"):
        yield from _type_meta(schema, path)
    if level == "root" and "metadata" in properties(schema):
        yield from _root_metadata(properties(schema)["metadata"], f"{path}.properties[metadata]")


def _extensions(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-int-or-string"):
        for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(keyword):
                text = "must be false if x-kubernetes-int-or-string is true"
                yield problems.invalid(f"{path}.{keyword}", True, text)


def _type(schema: Schema, level: _Level, path: str) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    embedded = schema.get("x-kubernetes-embedded-resource")
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield (
            problems.invalid(f"{path}.type", kind, text) if kind else problems.required(f"{path}.type", text)
        )
    elif not kind and not schema.get("x-kubernetes-int-or-string") and not preserve:
        yield problems.required(f"{path}.type", _TYPELESS[level])
    if embedded and schema.get("additionalProperties") is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        yield problems.forbidden(f"{path}.additionalProperties", text)
    if level == "root" and kind and kind != "object":
        yield problems.invalid(f"{path}.type", kind, "must be object at the root")
    if embedded and not preserve and not properties(schema):
        text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield problems.required(f"{path}.properties", text)


def _type_meta(schema: Schema, path: str) -> Iterator[FieldError]:
    for name in ("kind", "apiVersion"):
        sub = properties(schema).get(name)
        if sub is not None and sub.get("type") != "string":
            yield problems.invalid(f"{path}.properties[{name}].type", sub.get("type", ""), "must be string")
    meta = properties(schema).get("metadata")
    if meta is not None and meta.get("type") != "object":
        yield problems.invalid(f"{path}.properties[metadata].type", meta.get("type", ""), "must be object")


def _root_metadata(schema: Schema, path: str) -> Iterator[FieldError]:
    keywords = {keyword for keyword, value in schema.items() if value not in (None, "", [], {}, False)}
    if keywords - {"type", "default", "properties"} or properties(schema).keys() - {"name", "generateName"}:
        text = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        yield problems.forbidden(path, text)


def _logic(
    schema: Schema, path: str, *, skip_any: bool = False, skip_first_all: bool = False
) -> Iterator[FieldError]:
    """Check the value validations of a node; the two ways to write int-or-string are exempt."""
    if not skip_any:
        for position, sub in enumerate(schema.get("anyOf") or ()):
            yield from _nested(sub, f"{path}.anyOf[{position}]")
    for position, sub in enumerate(schema.get("allOf") or ()):
        yield from _nested(sub, f"{path}.allOf[{position}]", skip_any=skip_first_all and position == 0)
    for position, sub in enumerate(schema.get("oneOf") or ()):
        yield from _nested(sub, f"{path}.oneOf[{position}]")
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            yield problems.invalid(f"{path}.pattern", schema["pattern"], text)


def _nested(schema: Schema, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _logic(schema, path, skip_any=skip_any)
    element = items(schema)
    if element is not None:
        yield from _nested(element, f"{path}.items")
    for name, sub in properties(schema).items():
        yield from _nested(sub, f"{path}.properties[{name}]")
    for keyword, text in _FORBIDDEN_IN_LOGIC:
        if schema.get(keyword) not in (None, "", False, []):
            yield problems.forbidden(f"{path}.{keyword}", text)
    if "metadata" in properties(schema):
        yield problems.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(
    logic: Schema, structure: Schema | None, path: str, logic_path: str
) -> Iterator[FieldError]:
    """Yield an error for each field that the logic mentions and the structure does not have."""
    nested: list[tuple[Schema, str]] = []
    if logic.get("not") is not None:
        nested.append((logic["not"], f"{logic_path}.not"))
    for keyword in ("allOf", "anyOf", "oneOf"):
        nested += [(sub, f"{logic_path}.{keyword}[{at}]") for at, sub in enumerate(logic.get(keyword) or ())]
    for sub, sub_path in nested:
        yield from _nested_completeness(sub, structure, path, sub_path)


def _nested_completeness(
    logic: Schema, structure: Schema | None, path: str, logic_path: str
) -> Iterator[FieldError]:
    if structure is None:
        yield problems.required(path, f"because it is defined in {logic_path}")
        return
    yield from _completeness(logic, structure, path, logic_path)
    element = items(logic)
    if element is not None:
        yield from _nested_completeness(element, items(structure), f"{path}.items", f"{logic_path}.items")
    for name, sub in properties(logic).items():
        location = f"properties[{name}]"
        known = properties(structure).get(name)
        yield from _nested_completeness(sub, known, f"{path}.{location}", f"{logic_path}.{location}")
