"""A schema as a Python annotation.

A required field has its bare type. Every other field is `X | None = None`: None is a field that is not set, so an
empty list stays an empty list, and a default of the server is never sent back to it.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from kubewright.api import JsonObject
from kubewright.api.model import camel, snake
from kubewright.scaffold.external.class_names import is_class

WIDTH = 100
_HIDDEN = frozenset({"bool", "bytes", "datetime", "dict", "float", "int", "kw", "list", "str"})
"""A field of this name would hide the type from the annotations below it."""
_NUMBERS = {"integer": "int", "number": "float"}
_TYPED_FORMATS = {"date-time": "datetime", "byte": "bytes"}
_KEYWORDS = {
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
}
_RULE_KEYWORDS = {
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}


class Annotation(NamedTuple):
    """One field as text: `name: type = default`."""

    name: str
    type: str
    keywords: tuple[str, ...]
    """The arguments of `kw.Field(...)`."""
    default: str
    """Empty if the field has none."""

    def lines(self, indent: str = "    ") -> list[str]:
        """Return the field, in one line or more."""
        end = f" = {self.default}" if self.default else ""
        if not self.keywords:
            return [f"{indent}{self.name}: {self.type}{end}"]
        line = f"{indent}{self.name}: Annotated[{self.type}, kw.Field({', '.join(self.keywords)})]{end}"
        if len(line) <= WIDTH:
            return [line]
        inner = f"{indent}    kw.Field({', '.join(self.keywords)}),"
        field = [inner]
        if len(inner) > WIDTH:
            words = [f"{indent}        {keyword}," for keyword in self.keywords]
            field = [f"{indent}    kw.Field(", *words, f"{indent}    ),"]
        return [f"{indent}{self.name}: Annotated[", f"{indent}    {self.type},", *field, f"{indent}]{end}"]


class Annotator:
    """Write annotations; `class_of` returns the name of the class of a nested object."""

    def __init__(self, class_of: Callable[[JsonObject], str]) -> None:
        self._class_of = class_of

    def field(
        self, name: str, wire: str, schema: JsonObject, *, is_required: bool, is_status: bool
    ) -> Annotation:
        """Return the annotation of a property; in a status, no field is required in Python."""
        keywords: list[str] = []
        if camel(name) != wire:
            keywords.append(f"name={literal(wire)}")
        is_optional = not is_required or is_status or "default" in schema
        if is_required and is_optional:
            keywords.append("optional=False")
        keywords += self.keywords(schema)
        text = self._type(schema)
        if text != "Any" and (is_optional or schema.get("nullable")):
            text = f"{text} | None"
        return Annotation(name, text, tuple(keywords), "None" if is_optional else "")

    def _element(self, schema: JsonObject) -> str:
        """Return the type of the elements of a list or map, with their `kw.Field(...)`."""
        text = self._type(schema)
        if schema.get("nullable") and text != "Any":
            text = f"{text} | None"
        keywords = self.keywords(schema)
        return f"Annotated[{text}, kw.Field({', '.join(keywords)})]" if keywords else text

    def _type(self, schema: JsonObject) -> str:
        if schema.get("x-kubernetes-int-or-string"):
            return "int | str"
        if is_class(schema):
            return self._class_of(schema)
        kind = schema.get("type")
        if values := _literal_values(schema):
            return f"Literal[{', '.join(map(literal, values))}]"
        if kind == "array":
            return f"list[{self._element(schema.get('items') or {})}]"
        if kind == "object":
            inner: Any = schema.get("additionalProperties")
            if not isinstance(inner, dict) or keeps_unknown_fields(schema):
                return "dict[str, Any]"
            return f"dict[str, {self._element(cast(JsonObject, inner))}]"
        if kind == "string":
            return _TYPED_FORMATS.get(schema.get("format", ""), "str")
        return {**_NUMBERS, "boolean": "bool"}.get(str(kind), "Any")

    def keywords(self, schema: JsonObject) -> list[str]:
        """Return what `kw.Field(...)` declares about a value of this schema."""
        kind = schema.get("type")
        found = [f"default={literal(schema['default'])}"] if "default" in schema else []
        found += [
            f"{python}={pattern(schema[keyword]) if keyword == 'pattern' else literal(schema[keyword])}"
            for keyword, python in _KEYWORDS.items()
            if schema.get(keyword) not in (None, "")
        ]
        found += _bounds(schema)
        found += _format(schema)
        if schema.get("enum") and not _literal_values(schema):
            found.append(f"enum={literal(schema['enum'])}")
        if kind == "array":
            found += _list_type(schema)
        if kind == "object":
            if schema.get("x-kubernetes-map-type") == "atomic":
                found.append('map_type="atomic"')
            if schema.get("x-kubernetes-embedded-resource"):
                found.append("embedded_resource=True")
            elif keeps_unknown_fields(schema):
                found.append("preserve_unknown_fields=True")
        if schema.get("nullable"):
            found.append("nullable=True")
        if not is_class(schema) and (rules := schema.get("x-kubernetes-validations")):
            found.append(f"rules=[{', '.join(map(rule, rules))}]")
        return found


def keeps_unknown_fields(schema: JsonObject) -> bool:
    """Return True if the server keeps fields of an object that its schema does not declare."""
    return bool(
        schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
    )


def field_names(wires: Mapping[str, Any], *, is_kind: bool = False) -> dict[str, str]:
    """Return the Python names of the fields of one class by their wire names."""
    found: dict[str, str] = {}
    for wire in wires:
        text = re.sub(r"\W", "_", snake(wire), flags=re.ASCII).strip("_") or "field"
        name = f"{text}_" if wire.isidentifier() and snake(wire).endswith("_") else text
        if name[0].isdigit():
            name = f"field_{name}"
        if name in _HIDDEN or (is_kind and name == "key"):
            name = f"{name}_"
        plain, number = name, 2
        while name in found.values():
            name, number = f"{plain}_{number}", number + 1
        found[wire] = name
    return found


def rule(declared: JsonObject) -> str:
    """Return a CEL rule as a call of kw.Rule."""
    keywords = [
        f"{python}={literal(declared[keyword])}"
        for keyword, python in _RULE_KEYWORDS.items()
        if declared.get(keyword) not in (None, "")
    ]
    return f"kw.Rule({', '.join([literal(declared['rule']), *keywords])})"


def literal(value: Any) -> str:
    """Return a JSON value as Python source."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case dict():
            items = cast(JsonObject, value).items()
            return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in items) + "}"
        case list():
            return "[" + ", ".join(map(literal, cast(list[Any], value))) + "]"
        case _:
            return repr(value)


def pattern(text: str) -> str:
    """Return a regular expression as Python source, as a raw string if possible."""
    if '"' in text or text.endswith("\\") or not text.isprintable() or "\\" not in text:
        return literal(text)
    return f'r"{text}"'


def _literal_values(schema: JsonObject) -> list[Any]:
    """Return the values of an enumeration that Literal can hold."""
    values = [value for value in schema.get("enum") or () if value is not None]
    expected = {"string": str, "integer": int}.get(schema.get("type", ""))
    return values if expected and all(type(value) is expected for value in values) else []


def _bounds(schema: JsonObject) -> list[str]:
    found: list[str] = []
    for keyword, exclusive, inclusive_name, exclusive_name in (
        ("minimum", "exclusiveMinimum", "ge", "gt"),
        ("maximum", "exclusiveMaximum", "le", "lt"),
    ):
        if schema.get(keyword) is not None:
            name = exclusive_name if schema.get(exclusive) else inclusive_name
            found.append(f"{name}={literal(schema[keyword])}")
    return found


def _format(schema: JsonObject) -> list[str]:
    kind, name = schema.get("type"), schema.get("format", "")
    if kind == "integer" and not _literal_values(schema):
        # Without a format the server accepts 64 bits.
        return [] if name == "int32" else ["int64=True"]
    if not name or kind == "number" or (kind == "string" and name in _TYPED_FORMATS):
        return []
    return [f"format={literal(name)}"]


def _list_type(schema: JsonObject) -> list[str]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return ['list_type="map"', f"list_keys={literal(schema.get('x-kubernetes-list-map-keys', []))}"]
    return ['list_type="set"'] if kind == "set" else []
