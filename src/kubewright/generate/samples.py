"""Sample objects from schemas: examples, defaults, otherwise the smallest valid value."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import DeclarationError, JsonObject, Object, kind_of
from kubewright.controller import Operator
from kubewright.schema import structural, validate

_NOT_ASKED = frozenset({"apiVersion", "kind", "metadata", "status"})
_WORDS = {
    "date-time": "2030-01-01T00:00:00Z",
    "date": "2030-01-01",
    "duration": "1m0s",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "byte": "",
}
_Schema = dict[str, Any]


def samples(operator: Operator, given: Sequence[JsonObject] = ()) -> list[JsonObject]:
    """Return a sample of each kind and version: handwritten ones, otherwise generated ones."""
    written: dict[tuple[str, str], list[JsonObject]] = {}
    for document in given:
        written.setdefault((document.get("apiVersion", ""), document.get("kind", "")), []).append(document)
    found: list[JsonObject] = []
    for declared in operator.kinds:
        kind = kind_of(declared)
        found += written.get((kind.api_version, kind.kind)) or [sample(declared)]
    return found


def sample(declared: type[Object]) -> JsonObject:
    """Generate a valid object of a kind; fields that have neither default nor example are omitted
    unless they are required.
    """
    kind, schema = kind_of(declared), structural(declared)
    made: JsonObject = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": f"{kind.kind.lower()}-sample"},
    }
    asked = {name: part for name, part in schema["properties"].items() if name not in _NOT_ASKED}
    # A spec is shown even if everything in it is optional.
    shown = [name for name, part in asked.items() if part.get("type") == "object"]
    made |= _object({"properties": asked, "required": [*schema.get("required", ()), *shown]})
    if troubles := validate(schema, made):
        raise DeclarationError(
            f"{declared.__name__}: no sample could be made up ({troubles[0]}): give the field "
            f"Field(example=...), or write samples/{kind.kind.lower()}.yaml"
        )
    return made


def _object(schema: _Schema) -> JsonObject:
    required = schema.get("required", ())
    return {
        name: _value(part)
        for name, part in schema.get("properties", {}).items()
        if name in required or "default" in part or "example" in part
    }


def _value(schema: _Schema) -> Any:
    if "example" in schema:
        return schema["example"]
    if schema.get("type") == "object" and "properties" in schema:
        # The default of a whole object omits the defaults of its fields.
        return {**_object(schema), **schema.get("default", {})}
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {}
        case "array":
            return [_value(schema["items"])] * schema.get("minItems", 0)
        case "string":
            text = _WORDS.get(schema.get("format", ""), "example")
            return text[: schema.get("maxLength")].ljust(schema.get("minLength", 0), "x")
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case _:
            return 1 if schema.get("x-kubernetes-int-or-string") else {}


def _number(schema: _Schema) -> float:
    step = schema.get("multipleOf", 1)
    least = schema.get("minimum")
    if least is None:
        most = schema.get("maximum")
        return (
            step if most is None or most >= step else most - (step if schema.get("exclusiveMaximum") else 0)
        )
    if schema.get("exclusiveMinimum"):
        least += step
    rest = least % step
    number = least + (step - rest if rest else 0)
    return number if number or schema.get("maximum", step) < step else step
