"""What a `Field` says, put into the schema of its type; what does not fit the type is refused."""

from typing import Any

from kubewright.api import DeclarationError, Field, Rule
from kubewright.schema.json_tree import Schema
from kubewright.schema.patterns import PatternError, compile_pattern

_KINDS = {
    "string": "text",
    "integer": "a number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
    "boolean": "a boolean",
}
_FOR: dict[str, tuple[str, ...]] = {
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
_RANGES = (
    ("ge", "le"), ("ge", "lt"), ("gt", "le"), ("gt", "lt"), ("min_length", "max_length"),
    ("min_items", "max_items"), ("min_properties", "max_properties"),
)  # fmt: skip
_VALUES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def apply_constraints(schema: Schema, field: Field, place: str, name: str) -> None:
    """Put what the field says into the schema, in place."""
    _refuse_misfits(schema, field, place)
    _refuse_nonsense(schema, field, place)
    for keyword, value in _plain_keywords(field):
        schema[keyword] = value
    _bounds(schema, field)
    if field.int64:
        schema["format"] = "int64"
    if field.enum:
        schema["enum"] = list(field.enum)
    if field.pattern:
        try:
            compile_pattern(field.pattern)
        except PatternError as error:
            raise DeclarationError(
                f"{place}: pattern={field.pattern!r}: {error}: write it as RE2 takes it"
            ) from error
    _lists(schema, field, place)
    if field.embedded_resource:
        # Any object has more fields than its type and metadata, and the server takes only one way to say so.
        schema.pop("additionalProperties", None)
        schema["x-kubernetes-embedded-resource"] = True
        schema.setdefault("x-kubernetes-preserve-unknown-fields", True)
    rules = [rule_wire(rule) for rule in field.rules]
    if field.immutable:
        rules.append({"message": f"{name or 'value'} is immutable", "rule": "self == oldSelf"})
    if rules:
        schema["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *rules]


def _refuse_nonsense(schema: Schema, field: Field, place: str) -> None:
    """Refuse what no value can meet, and what is not even of the type that it is declared with."""
    for low, high in _RANGES:
        least, most = getattr(field, low), getattr(field, high)
        for keyword, bound in ((low, least), (high, most)):
            if bound is not None and not isinstance(bound, int | float):
                raise DeclarationError(f"{place}: {keyword}={bound!r} is no number")
        if least is not None and most is not None and least > most:
            raise DeclarationError(f"{place}: {low}={least} is above {high}={most}: no value is both")
    for rule in field.rules:
        if not isinstance(rule, Rule):  # pyright: ignore[reportUnnecessaryIsInstance] (not every author checks types)
            raise DeclarationError(f"{place}: rules={field.rules!r}: write Rule({rule!r})")
    fitting = _VALUES.get(schema.get("type", ""))
    for value in field.enum if fitting else ():
        if not isinstance(value, fitting or ()) or (isinstance(value, bool) and fitting is not bool):
            kind = _KINDS[schema["type"]]
            raise DeclarationError(f"{place}: enum: {value!r} is not {kind}: say values of the field's type")


def rule_wire(rule: Rule) -> dict[str, Any]:
    """Return the wire form of a rule."""
    said: dict[str, Any] = {
        "fieldPath": rule.field_path,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "optionalOldSelf": rule.optional_old_self,
        "reason": rule.reason,
        "rule": rule.rule,
    }
    return {key: value for key, value in said.items() if value not in ("", None)}


def _plain_keywords(field: Field) -> list[tuple[str, Any]]:
    said: list[tuple[str, Any]] = [
        ("description", field.description),
        ("title", field.title),
        ("format", field.format),
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
    return [(keyword, value) for keyword, value in said if value is not None and value != ""]


def _bounds(schema: Schema, field: Field) -> None:
    for keyword, exclusive, inclusive_value, exclusive_value in (
        ("minimum", "exclusiveMinimum", field.ge, field.gt),
        ("maximum", "exclusiveMaximum", field.le, field.lt),
    ):
        if inclusive_value is not None:
            schema[keyword] = inclusive_value
        if exclusive_value is not None:
            schema[keyword], schema[exclusive] = exclusive_value, True


def _lists(schema: Schema, field: Field, place: str) -> None:
    kind = field.list_type or ("map" if field.list_keys else "set" if field.unique else None)
    if kind is None:
        return
    schema["x-kubernetes-list-type"] = kind
    items: Schema = schema["items"]
    if kind == "map":
        _refuse_keys(items, field, place)
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    else:
        schema.pop("x-kubernetes-list-map-keys", None)
        if kind == "set" and items.get("type") == "object":
            items.setdefault("x-kubernetes-map-type", "atomic")


def _refuse_keys(items: Schema, field: Field, place: str) -> None:
    properties: dict[str, Schema] = items.get("properties", {})
    if not field.list_keys or not properties:
        raise DeclarationError(f'{place}: a list of type "map" needs list_keys=, and a Model as its items')
    for key in field.list_keys:
        if key not in properties:
            raise DeclarationError(
                f"{place}: list_keys: the items have no field {key!r}: use a wire name of theirs"
            )
        if key not in items.get("required", ()) and "default" not in properties[key]:
            raise DeclarationError(
                f"{place}: list_keys: {key!r} may be absent: take its default away, or give it one"
            )


def _refuse_misfits(schema: Schema, field: Field, place: str) -> None:
    actual = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        actual = "int or string"
    for keyword, fitting in _FOR.items():
        value = getattr(field, keyword)
        if value is None or value is False or value in ("", ()) or actual in fitting:
            continue
        if actual == "int or string" and ("string" in fitting or "integer" in fitting):
            continue
        where = (
            f"put it on the items: list[Annotated[..., Field({keyword}=...)]]"
            if actual == "array"
            else "take it away"
        )
        raise DeclarationError(
            f"{place}: {keyword}= is for {_KINDS[fitting[0]]}, not for {_KINDS.get(actual, 'this')}: {where}"
        )
