"""Schema keywords from `Field`: bounds, patterns, list types, rules; keywords that do not fit the type are rejected."""

from typing import Any

import msgspec

from kubewright.api import DeclarationError, Field, Rule
from kubewright.schema.json_tree import Schema
from kubewright.schema.patterns import PatternError, compile_pattern

_TYPE_NAMES = {
    "string": "a string",
    "integer": "a number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
    "boolean": "a boolean",
}
_TYPES_OF_KEYWORD: dict[str, tuple[str, ...]] = {
    "ge": ("integer", "number"),
    "gt": ("integer", "number"),
    "le": ("integer", "number"),
    "lt": ("integer", "number"),
    "multiple_of": ("integer", "number"),
    "int64": ("integer",),
    "min_length": ("string",),
    "max_length": ("string",),
    "pattern": ("string",),
    "min_items": ("array",),
    "max_items": ("array",),
    "unique": ("array",),
    "list_type": ("array",),
    "list_keys": ("array",),
    "min_properties": ("object",),
    "max_properties": ("object",),
    "map_type": ("object",),
    "embedded_resource": ("object",),
}
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_RANGES = (
    ("ge", "le"), ("ge", "lt"), ("gt", "le"), ("gt", "lt"), ("min_length", "max_length"),
    ("min_items", "max_items"), ("min_properties", "max_properties"),
)  # fmt: skip
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def apply_constraints(schema: Schema, field: Field, location: str, name: str) -> None:
    """Add the keywords of the field to the schema, in place."""
    _reject_misfits(schema, field, location)
    _reject_impossible(schema, field, location)
    for keyword, value in _plain_keywords(field):
        schema[keyword] = value
    _bounds(schema, field)
    if field.default is not msgspec.UNSET:
        schema["default"] = field.default
    if field.preserve_unknown_fields and schema.get("additionalProperties") == _ANYTHING:
        # Both keywords say the same of dict[str, Any], and the server accepts only one of them.
        del schema["additionalProperties"]
    if field.int64:
        schema["format"] = "int64"
    if field.enum:
        schema["enum"] = list(field.enum)
    if field.pattern:
        try:
            compile_pattern(field.pattern)
        except PatternError as error:
            raise DeclarationError(
                f"{location}: pattern={field.pattern!r}: {error}: use RE2 syntax"
            ) from error
    _lists(schema, field, location)
    if field.embedded_resource:
        # An object has more fields than its type and metadata; the server accepts only one of the two keywords for that.
        schema.pop("additionalProperties", None)
        schema["x-kubernetes-embedded-resource"] = True
        schema.setdefault("x-kubernetes-preserve-unknown-fields", True)
    rules = [rule_to_json(rule) for rule in field.rules]
    if field.immutable:
        rules.append({"message": f"{name or 'value'} is immutable", "rule": "self == oldSelf"})
    if rules:
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *rules]


def _reject_impossible(schema: Schema, field: Field, location: str) -> None:
    """Reject constraints that no value can satisfy, and arguments of the wrong type."""
    for low, high in _RANGES:
        least, most = getattr(field, low), getattr(field, high)
        for keyword, bound in ((low, least), (high, most)):
            if bound is not None and not isinstance(bound, int | float):
                raise DeclarationError(f"{location}: {keyword}={bound!r} is not a number")
        if least is not None and most is not None and least > most:
            raise DeclarationError(
                f"{location}: {low}={least} is greater than {high}={most}: no value satisfies both"
            )
    for rule in field.rules:
        if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not run a type checker)
            raise DeclarationError(
                f"{location}: rules={field.rules!r}: expected Rule objects: write Rule({rule!r})"
            )
    expected = _PYTHON_TYPES.get(schema.get("type", ""))
    for value in field.enum if expected else ():
        if not isinstance(value, expected or ()) or (isinstance(value, bool) and expected is not bool):
            kind = _TYPE_NAMES[schema["type"]]
            raise DeclarationError(
                f"{location}: enum: {value!r} is not {kind}: use values of the field's type"
            )


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """Return the entry of x-kubernetes-validations for a rule."""
    keywords: dict[str, Any] = {
        "fieldPath": rule.field_path,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "optionalOldSelf": rule.optional_old_self,
        "reason": rule.reason,
        "rule": rule.rule,
    }
    return {key: value for key, value in keywords.items() if value not in ("", None)}


def _plain_keywords(field: Field) -> list[tuple[str, Any]]:
    keywords: list[tuple[str, Any]] = [
        ("description", field.description),
        ("title", field.title),
        ("format", field.format or ("password" if field.sensitive else "")),
        ("pattern", field.pattern),
        ("multipleOf", field.multiple_of),
        ("minLength", field.min_length),
        ("maxLength", field.max_length),
        ("minItems", field.min_items),
        ("maxItems", field.max_items),
        ("minProperties", field.min_properties),
        ("maxProperties", field.max_properties),
        ("nullable", field.nullable or None),
        ("example", field.example),
        ("x-kubernetes-map-type", field.map_type),
        ("x-kubernetes-preserve-unknown-fields", field.preserve_unknown_fields or None),
    ]
    return [(keyword, value) for keyword, value in keywords if value is not None and value != ""]


def _bounds(schema: Schema, field: Field) -> None:
    for keyword, exclusive, inclusive_value, exclusive_value in (
        ("minimum", "exclusiveMinimum", field.ge, field.gt),
        ("maximum", "exclusiveMaximum", field.le, field.lt),
    ):
        if inclusive_value is not None:
            schema[keyword] = inclusive_value
        if exclusive_value is not None:
            schema[keyword], schema[exclusive] = exclusive_value, True


def _lists(schema: Schema, field: Field, location: str) -> None:
    kind = field.list_type or ("map" if field.list_keys else "set" if field.unique else None)
    if kind is None:
        return
    schema["x-kubernetes-list-type"] = kind
    items: Schema = schema["items"]
    if kind == "map":
        _reject_keys(items, field, location)
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    else:
        schema.pop("x-kubernetes-list-map-keys", None)
        if kind == "set" and items.get("type") == "object":
            items.setdefault("x-kubernetes-map-type", "atomic")


def _reject_keys(items: Schema, field: Field, location: str) -> None:
    properties: dict[str, Schema] = items.get("properties", {})
    if not field.list_keys or not properties:
        raise DeclarationError(f'{location}: a list of type "map" needs list_keys=, and a Model as its items')
    for key in field.list_keys:
        if key not in properties:
            raise DeclarationError(
                f"{location}: list_keys: the items have no field {key!r}: use the JSON name of a field"
            )
        if key not in items.get("required", ()) and "default" not in properties[key]:
            raise DeclarationError(
                f"{location}: list_keys: {key!r} is optional and has no default: make it required, or give it a default that is not empty"
            )


def _reject_misfits(schema: Schema, field: Field, location: str) -> None:
    actual = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        actual = "int or string"
    for keyword, expected in _TYPES_OF_KEYWORD.items():
        value = getattr(field, keyword)
        if value is None or value is False or value in ("", ()) or actual in expected:
            continue
        if actual == "int or string" and ("string" in expected or "integer" in expected):
            continue
        where = (
            f"put it on the items: list[Annotated[..., Field({keyword}=...)]]"
            if actual == "array"
            else "remove it"
        )
        raise DeclarationError(
            f"{location}: {keyword}= is for {_TYPE_NAMES[expected[0]]}, not for {_TYPE_NAMES.get(actual, 'this type')}: {where}"
        )
