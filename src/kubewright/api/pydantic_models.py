"""Pydantic models as `spec` or `status` of a kind: recognized, read, written, and as a structural schema.

pydantic is never imported here: only the methods of models are called, so an operator without models does not load it.

The JSON schema that pydantic generates becomes structural: `$ref` is inlined, `anyOf` with null is `nullable`, exclusive
bounds are those of OpenAPI 3.0. What has no structural schema is a DeclarationError with the path of the field.
"""

import copy
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeGuard, cast

from kubewright.api.errors import DeclarationError, DecodeError
from kubewright.guards import must_propagate, text_of

JsonSchema = dict[str, Any]
_REFERENCE = "#/$defs/"
_KEPT = frozenset(
    {
        "description", "enum", "format", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
        "minProperties", "minimum", "multipleOf", "pattern", "type",
    }
)  # fmt: skip
_DROPPED = frozenset({"$defs", "title", "examples", "deprecated", "readOnly", "writeOnly", "default"})
_READ_ELSEWHERE = frozenset(
    {
        "$ref", "additionalProperties", "allOf", "anyOf", "const", "exclusiveMaximum", "exclusiveMinimum", "items",
        "properties", "required",
    }
)  # fmt: skip
_ADVICE = {
    "discriminator": "a tagged union has no structural schema: use one optional field for each member",
    "oneOf": "a union has no structural schema: use one optional field for each member",
    "prefixItems": "a tuple has no structural schema: use list[...]",
    "patternProperties": "keys cannot have a pattern: use dict[str, ...]",
    "propertyNames": "keys cannot be restricted: use dict[str, ...]",
    "uniqueItems": 'a set has no order: use list[...] with json_schema_extra={"x-kubernetes-list-type": "set"}',
}


def is_pydantic(cls: Any) -> TypeGuard[type[Any]]:
    """Return True if a type is a pydantic model."""
    return isinstance(cls, type) and hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_validate")


def read_pydantic(cls: type[Any], value: Any) -> Any:
    """Return the validated model of a JSON value; raise DecodeError with the first invalid field."""
    try:
        return cls.model_validate(value)
    except BaseException as error:
        if must_propagate(error):
            raise
        errors = getattr(error, "errors", None)
        if not callable(errors):
            raise DecodeError(f"{type(error).__name__}: {text_of(error)}") from error
        # Without the invalid value itself, which may be a secret.
        found: list[dict[str, Any]] = cast(Any, errors)(
            include_url=False, include_context=False, include_input=False
        )
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise DecodeError(f"{found[0]['msg']}{more}", path=_path(found[0]["loc"])) from None


def write_pydantic(model: Any) -> dict[str, Any]:
    """Return the JSON object of a model, by alias: every field that was set or differs from its default.

    A default list that was changed in place does not count as set in pydantic; it must not be lost.
    """
    set_fields = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    changed = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return _united(set_fields, changed)


def _united(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        first, second = cast(dict[str, Any], left), cast(dict[str, Any], right)
        more = {key: value for key, value in second.items() if key not in first}
        return {
            **{key: _united(value, second[key]) if key in second else value for key, value in first.items()},
            **more,
        }
    if isinstance(left, list) and isinstance(right, list):
        both = zip(cast(list[Any], left), cast(list[Any], right), strict=True)
        return [_united(one, other) for one, other in both]
    return cast(Any, left)


def required_field(cls: type[Any]) -> str:
    """Return the name of a field without a default, or an empty string."""
    return next((name for name, field in cls.model_fields.items() if field.is_required()), "")


def pydantic_schema(cls: type[Any], location: str) -> JsonSchema:
    """Return the structural schema of a model; raise DeclarationError if it has none."""
    return copy.deepcopy(_schema(cls, location))


@cache
def _schema(cls: type[Any], location: str) -> JsonSchema:
    read, written = (_Converter(cls, mode, location) for mode in ("validation", "serialization"))
    schema = read.schema()
    _reject_one_way(schema, written.schema(), location)
    return schema


def _path(steps: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _reject_one_way(read: JsonSchema, written: JsonSchema, location: str) -> None:
    """Reject fields that are read under one name and written under another, or only written."""
    before: JsonSchema = read.get("properties") or {}
    after: JsonSchema = written.get("properties") or {}
    for name in sorted(before.keys() ^ after.keys()):
        what = "read but written under another name" if name in before else "written but not read"
        raise DeclarationError(
            f"{location}.{name} is {what}: use alias= for both ways, and no computed fields"
        )
    for name, inner in before.items():
        _reject_one_way(inner, after[name], f"{location}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(read.get(keyword), dict) and isinstance(written.get(keyword), dict):
            _reject_one_way(read[keyword], written[keyword], f"{location}[]")


class _Converter:
    """Turns the JSON schema of one model into a structural one."""

    def __init__(self, cls: type[Any], mode: str, location: str) -> None:
        self._location = location
        try:
            self._whole: JsonSchema = cls.model_json_schema(by_alias=True, mode=mode)
        except Exception as error:
            raise DeclarationError(
                f"{location}: {cls.__name__} has no JSON schema: {text_of(error).partition(chr(10))[0]}"
            ) from error
        self._definitions: Mapping[str, JsonSchema] = self._whole.get("$defs", {})

    def schema(self) -> JsonSchema:
        return self._node(self._whole, self._location, ())

    def _node(self, node: JsonSchema, location: str, outer: tuple[str, ...]) -> JsonSchema:
        node, outer = self._resolved(node, location, outer)
        if any(part.get("type") == "null" for part in node.get("anyOf", ())):
            rest = [part for part in node["anyOf"] if part.get("type") != "null"]
            plain = {keyword: value for keyword, value in node.items() if keyword != "anyOf"}
            inner = {**plain, **rest[0]} if len(rest) == 1 else {**plain, "anyOf": rest}
            return {**self._node(inner, location, outer), "nullable": True}
        if "anyOf" in node:
            return self._int_or_string(node, location)
        for keyword in node:
            if keyword not in _KEPT | _DROPPED | _READ_ELSEWHERE and not keyword.startswith("x-kubernetes-"):
                advice = _ADVICE.get(keyword, f"{keyword} is not allowed in a structural schema")
                raise DeclarationError(f"{location}: {advice}")
        found = {
            keyword: value
            for keyword, value in node.items()
            if keyword in _KEPT or keyword.startswith("x-kubernetes-")
        }
        if "description" in found:
            found["description"] = inspect.cleandoc(found["description"])
        found |= dict(_bounds(node))
        if "const" in node:
            found["enum"] = [node["const"]]
        if node.get("default"):
            found["default"] = node["default"]
        if "type" not in found:
            return self._untyped(found, location)
        if not isinstance(found["type"], str) or found["type"] == "null":
            raise DeclarationError(f"{location}: type {found['type']} is not allowed in a structural schema")
        if found["type"] == "integer":
            found.setdefault("format", "int64")
        if found["type"] == "number":
            found.setdefault("format", "double")
        if found["type"] == "array":
            found["items"] = self._node(node.get("items", {}), f"{location}[]", outer)
        if found["type"] == "object":
            found |= self._object(node, location, outer)
        return found

    def _resolved(
        self, node: JsonSchema, location: str, outer: tuple[str, ...]
    ) -> tuple[JsonSchema, tuple[str, ...]]:
        """Replace references by definitions; keywords beside a reference win."""
        if len(node.get("allOf", ())) == 1:
            rest = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
            return self._resolved({**node["allOf"][0], **rest}, location, outer)
        if "allOf" in node:
            raise DeclarationError(f"{location}: allOf is not allowed in a structural schema")
        if "$ref" not in node:
            return node, outer
        name = str(node["$ref"]).removeprefix(_REFERENCE)
        if name in outer:
            raise DeclarationError(
                f"{location}: {name} contains itself, but a structural schema cannot be recursive: "
                "use dict[str, Any], or refer to the inner objects by name and keep them in a flat list"
            )
        rest = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        return self._resolved({**self._definitions[name], **rest}, location, (*outer, name))

    def _int_or_string(self, node: JsonSchema, location: str) -> JsonSchema:
        types = sorted(str(part.get("type", part.get("$ref", "?"))) for part in node["anyOf"])
        if types != ["integer", "string"] or any(part.keys() - {"type"} for part in node["anyOf"]):
            names = " | ".join(name.removeprefix(_REFERENCE) for name in types)
            raise DeclarationError(
                f"{location}: the union {names} has no structural schema, only X | None and int | str have"
            )
        found: JsonSchema = {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        }
        if "description" in node:
            found["description"] = inspect.cleandoc(node["description"])
        return found | ({"default": node["default"]} if node.get("default") else {})

    def _untyped(self, found: JsonSchema, location: str) -> JsonSchema:
        if "enum" in found:
            raise DeclarationError(f"{location}: the values of an enumeration must all be of one type")
        return {**found, "x-kubernetes-preserve-unknown-fields": True}

    def _object(self, node: JsonSchema, location: str, outer: tuple[str, ...]) -> JsonSchema:
        found: JsonSchema = {}
        if node.get("properties"):
            found["properties"] = {
                name: self._node(inner, f"{location}.{name}", outer)
                for name, inner in node["properties"].items()
            }
        if node.get("required"):
            found["required"] = sorted(node["required"])
        others: Any = node.get("additionalProperties")
        if others is True or others == {}:
            found["x-kubernetes-preserve-unknown-fields"] = True
        elif isinstance(others, dict):
            if node.get("properties"):
                raise DeclarationError(
                    f"{location}: declared fields and a typed __pydantic_extra__ exclude each other"
                )
            found["additionalProperties"] = self._node(cast(JsonSchema, others), f"{location}[]", outer)
        return found


def _bounds(node: JsonSchema) -> Iterator[tuple[str, Any]]:
    """Yield exclusive bounds in the form of OpenAPI 3.0: the bound, and that it is exclusive."""
    for inclusive, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        bound = node.get(exclusive)
        if bound is None:
            continue
        tighter = max if inclusive == "minimum" else min
        other = node.get(inclusive, bound)
        if tighter(bound, other) == bound:
            yield inclusive, bound
            yield exclusive, True
