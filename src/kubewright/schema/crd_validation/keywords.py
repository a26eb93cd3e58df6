"""Validation of single schema nodes: forbidden keywords, list and map types, the form of rules, and defaults."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kubewright.api import FieldError, problems
from kubewright.schema.extensions import check_embedded
from kubewright.schema.json_tree import (
    FieldPathError,
    Json,
    Schema,
    additional,
    copied,
    items,
    properties,
    resolve_field_path,
    same,
)
from kubewright.schema.rules import RuleTree, has_rules
from kubewright.schema.validation import Validator

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = (
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
)


_NEVER_EMPTY = ("additionalItems", "dependencies", "$ref")
"""Keywords that are refused even if they are empty."""


@dataclass(frozen=True, slots=True)
class _NodeContext:
    """The path of a node, and what is allowed there."""

    path: str
    root: bool = False
    defaults_forbidden: str | None = None
    inside_meta: bool = False

    def below(self, step: str) -> "_NodeContext":
        """Return the context of a child node."""
        return replace(self, path=f"{self.path}.{step}", root=False)


def check_keywords(schema: Schema, path: str) -> tuple[list[FieldError], set[str]]:
    """Return the errors in the nodes of a schema, from the root down, and the paths of nodes with an error there or below."""
    faulty: set[str] = set()
    return _Nodes(faulty).check(schema, _NodeContext(path, root=True)), faulty


class _Nodes:
    """Checks nodes, and collects those that have errors."""

    def __init__(self, faulty: set[str]) -> None:
        self._faulty = faulty

    def check(self, schema: Schema, context: _NodeContext) -> list[FieldError]:
        """Return the errors of a node and of those below it."""
        errors = list(self._errors(schema, context))
        if errors:
            self._faulty.add(context.path)
        return errors

    def _errors(self, schema: Schema, context: _NodeContext) -> Iterator[FieldError]:
        yield from _forbidden(schema, context)
        if schema.get("uniqueItems"):
            text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            yield problems.forbidden(f"{context.path}.uniqueItems", text)
        for sub, below in _below(schema, context):
            yield from self.check(sub, below)
        if schema.get("x-kubernetes-preserve-unknown-fields") is False:
            field = f"{context.path}.x-kubernetes-preserve-unknown-fields"
            yield problems.invalid(field, False, "must be true or undefined")
        declared = schema.get("additionalProperties")
        if declared is not None and properties(schema) and declared is not True:
            text = "additionalProperties and properties are mutual exclusive"
            yield problems.forbidden(f"{context.path}.additionalProperties", text)
        yield from _map_type(schema, context.path)
        yield from _list_type(schema, context.path)
        yield from _map_list(schema, context.path)
        yield from _map_list_keys(schema, context.path)
        for position, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
            yield from _rule(rule, schema, f"{context.path}.x-kubernetes-validations[{position}]")


def _below(schema: Schema, context: _NodeContext) -> Iterator[tuple[Schema, _NodeContext]]:
    if (other := additional(schema)) is not None:
        below = context.below("additionalProperties")
        if context.inside_meta:
            below = replace(
                below, defaults_forbidden="inside additionalProperties applying to object metadata"
            )
        yield other, below
    for name, sub in properties(schema).items():
        yield sub, _property_context(schema, name, context)
    for keyword in ("not", "allOf", "oneOf", "anyOf"):
        for step, sub in _nested(schema, keyword):
            yield sub, context.below(step)
    if (element := items(schema)) is not None:
        yield element, context.below("items")


def _nested(schema: Schema, keyword: str) -> list[tuple[str, Schema]]:
    inner: Json = schema.get(keyword)
    if isinstance(inner, dict):
        return [(keyword, inner)]
    return [(f"{keyword}[{at}]", sub) for at, sub in enumerate(inner)] if isinstance(inner, list) else []


def _forbidden(schema: Schema, context: _NodeContext) -> Iterator[FieldError]:
    path, kind = context.path, schema.get("type", "")
    if kind and kind not in _TYPES:
        yield problems.not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and context.defaults_forbidden is not None:
        yield problems.forbidden(f"{path}.default", f"must not be set {context.defaults_forbidden}")
    for keyword, text in _UNSUPPORTED:
        given: Json = schema.get(keyword)
        if given if keyword not in _NEVER_EMPTY else given is not None:
            yield problems.forbidden(f"{path}.{keyword}", text)
    if kind == "null":
        yield problems.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield problems.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if context.inside_meta and schema.get("x-kubernetes-embedded-resource"):
        yield problems.forbidden(
            f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta"
        )


def _property_context(schema: Schema, name: str, context: _NodeContext) -> _NodeContext:
    below = context.below(f"properties[{name}]")
    if name in _META and (context.root or schema.get("x-kubernetes-embedded-resource")):
        below = replace(below, inside_meta=True)
        if context.root:
            below = replace(below, defaults_forbidden=f"in top-level {name}")
    return below


def _wrong_type(schema: Schema, path: str, text: str) -> FieldError:
    kind = schema.get("type", "")
    return problems.invalid(f"{path}.type", kind, text) if kind else problems.required(f"{path}.type", text)


def _map_type(schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return
    if schema.get("type") != "object":
        yield _wrong_type(schema, path, "must be object if x-kubernetes-map-type is specified")
    if kind not in ("atomic", "granular"):
        yield problems.not_supported(f"{path}.x-kubernetes-map-type", kind, ("atomic", "granular"))


def _list_type(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, element = schema.get("x-kubernetes-list-type"), items(schema)
    atomic = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if kind is not None and schema.get("type") != "array":
        yield _wrong_type(schema, path, "must be array if x-kubernetes-list-type is specified")
    elif kind == "set" and element is not None:
        inner = element.get("x-kubernetes-list-type")
        if element.get("type") == "array" and inner not in (None, "atomic"):
            yield problems.invalid(f"{path}.items.x-kubernetes-list-type", inner, atomic)
        if element.get("type") == "object" and element.get("x-kubernetes-map-type") != "atomic":
            yield problems.invalid(f"{path}.items.x-kubernetes-map-type", inner, atomic)
    if kind is not None and kind not in ("atomic", "set", "map"):
        yield problems.not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map"))
    if schema.get("x-kubernetes-list-map-keys") and kind != "map":
        text, field = (
            "must be map if x-kubernetes-list-map-keys is non-empty",
            f"{path}.x-kubernetes-list-type",
        )
        yield problems.required(field, text) if kind is None else problems.invalid(field, kind, text)


def _map_list(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-list-type") != "map":
        return
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    element = items(schema)
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        yield problems.required(f"{path}.x-kubernetes-list-map-keys", text)
    if element is None:
        yield problems.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if element.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield problems.invalid(f"{path}.items.type", element.get("type", ""), text)
        return
    for position, key in enumerate(keys):
        known = properties(element).get(key)
        field = f"{path}.x-kubernetes-list-map-keys"
        if known is None:
            yield problems.invalid(field, keys, "entries must all be names of item properties")
        elif known.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield problems.invalid(f"{path}.items.properties[{key}].type", element.get("type"), text)
        if key in keys[:position]:
            yield problems.invalid(field, keys, "must not contain duplicate entries")


def _map_list_keys(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, element = schema.get("x-kubernetes-list-type"), items(schema)
    if element is None or kind not in ("set", "map"):
        return
    if element.get("nullable"):
        yield problems.forbidden(
            f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}"
        )
    if kind == "set":
        return
    subject = "this property is in x-kubernetes-list-map-keys, so it"
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        known = properties(element).get(key)
        if known is None:
            continue
        field = f"{path}.items.properties[{key}]"
        if key not in (element.get("required") or ()) and known.get("default") is None:
            yield problems.required(
                f"{field}.default", f"{subject} must have a default or be a required property"
            )
        if known.get("nullable"):
            yield problems.forbidden(f"{field}.nullable", f"{subject} cannot be nullable")


def _rule(rule: dict[str, Any], schema: Schema, path: str) -> Iterator[FieldError]:
    text, message = str(rule.get("rule", "")).strip(), str(rule.get("message", ""))
    if not text:
        yield problems.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield problems.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _has_newlines(message.strip()):
        yield problems.invalid(f"{path}.message", message, "must not contain line breaks")
    elif _has_newlines(text) and not message.strip():
        yield problems.required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = str(rule.get("messageExpression", ""))
    if expression and not expression.strip():
        text = "messageExpression must be non-empty if specified"
        yield problems.required(f"{path}.messageExpression", text)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield problems.not_supported(f"{path}.reason", reason, _REASONS)
    yield from _rule_field_path(str(rule.get("fieldPath", "")), schema, f"{path}.fieldPath")


def _rule_field_path(field_path: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if not field_path:
        return
    if not field_path.strip():
        yield problems.invalid(path, field_path, "must be non-empty if specified")
    if _has_newlines(field_path):
        yield problems.invalid(path, field_path, "must not contain line breaks")
    try:
        resolve_field_path(field_path, schema)
    except FieldPathError:
        yield problems.invalid(path, field_path, "must be a valid path")


def _has_newlines(text: str) -> bool:
    return re.search(r"[\n\r]", text) is not None


def check_defaults(schema: Schema, path: str) -> list[FieldError]:
    """Return the errors for defaults that the API server rejects."""
    return list(_defaults_below(schema, path))


def _defaults_below(schema: Schema, path: str) -> Iterator[FieldError]:
    default = schema.get("default")
    if default is not None:
        yield from _default(schema, default, f"{path}.default")
    element = items(schema)
    if element is not None:
        yield from _defaults_below(element, f"{path}.items")
    for name, sub in properties(schema).items():
        yield from _defaults_below(sub, f"{path}.properties[{name}]")


def _default(schema: Schema, default: Json, path: str) -> Iterator[FieldError]:
    validator = Validator(schema)
    pruned = copied(default)
    validator.prune(pruned, resource=False)
    if not same(pruned, default):
        yield problems.invalid(path, default, "must not have unknown fields")
    if errors := check_embedded(schema, default, path):
        yield from errors
        return
    # The server does not check the type of a default that may be a number or a text.
    errors = Validator(_with_any_type(schema)).check(default, path)
    yield from errors or _failed_rules(schema, default, path)


def _with_any_type(schema: Schema) -> Schema:
    """Return a schema in which a number or text (`x-kubernetes-int-or-string`) may have any type."""
    made = {name: value for name, value in schema.items() if name != "x-kubernetes-int-or-string"}
    if properties(schema):
        made["properties"] = {name: _with_any_type(sub) for name, sub in properties(schema).items()}
    if (element := items(schema)) is not None:
        made["items"] = _with_any_type(element)
    if (other := additional(schema)) is not None:
        made["additionalProperties"] = _with_any_type(other)
    return made


def _failed_rules(schema: Schema, default: Json, path: str) -> list[FieldError]:
    """Return the errors of rules that a default fails, as an unchanged value or as a new one."""
    if not has_rules(schema):
        return []
    rules = RuleTree(schema)
    return rules.check(default, default, path=path) or rules.check(default, None, path=path)
