"""Parts of a CRD as the API server prints them in messages: its internal types, with Go's field names."""

from typing import Any

from kubewright.schema.json_tree import Schema, properties

_SCHEMA_FIELDS: tuple[tuple[str, str, Any], ...] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
_ROOT_FIELDS = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required"),
    *("Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)


def internal_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a validation rule with Go's field names."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


def internal_schema(schema: Schema) -> dict[str, Any]:
    """Return a schema with Go's field names."""
    return {
        go: _schema_value(name, schema[name]) if name in schema else zero for go, name, zero in _SCHEMA_FIELDS
    }


def field_not_allowed_at_root(schema: Schema) -> bool:
    """Return True if a root schema has a keyword that is not allowed with a status subresource."""
    return any(
        name in schema and schema[name] != zero and go not in _ROOT_FIELDS
        for go, name, zero in _SCHEMA_FIELDS
    )


ROOT_FIELDS_TEXT = "[" + " ".join(_ROOT_FIELDS) + "]"


def internal_versions(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the versions of a CRD with Go's field names."""
    return [
        {
            "Name": version.get("name", ""),
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": _validation(version.get("schema")),
            "Subresources": _subresources(version.get("subresources")),
            "AdditionalPrinterColumns": _columns(version.get("additionalPrinterColumns")),
            "SelectableFields": _selectable(version.get("selectableFields")),
        }
        for version in versions
    ]


def _schema_value(name: str, value: Any) -> Any:
    if name == "properties":
        return {key: internal_schema(sub) for key, sub in properties({"properties": value}).items()} or None
    if name in ("allOf", "oneOf", "anyOf"):
        return [internal_schema(sub) for sub in value]
    if name == "not":
        return internal_schema(value)
    if name == "items":
        return {"Schema": internal_schema(value), "JSONSchemas": None}
    if name == "additionalProperties":
        whole = isinstance(value, bool)
        return {"Allows": value if whole else True, "Schema": None if whole else internal_schema(value)}
    if name == "x-kubernetes-validations":
        return [internal_rule(rule) for rule in value]
    return value


def _validation(schema: dict[str, Any] | None) -> Any:
    if schema is None:
        return None
    inner = schema.get("openAPIV3Schema")
    return {"OpenAPIV3Schema": None if inner is None else internal_schema(inner)}


def _subresources(subresources: dict[str, Any] | None) -> Any:
    if subresources is None:
        return None
    scale = subresources.get("scale")
    shown = None
    if scale is not None:
        shown = {
            "SpecReplicasPath": scale.get("specReplicasPath", ""),
            "StatusReplicasPath": scale.get("statusReplicasPath", ""),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        }
    return {"Status": None if subresources.get("status") is None else {}, "Scale": shown}


def _columns(columns: list[dict[str, Any]] | None) -> Any:
    names = ("Name", "Type", "Format", "Description", "Priority", "JSONPath")
    keys = ("name", "type", "format", "description", "priority", "jsonPath")
    return columns and [
        {go: column.get(name, 0 if name == "priority" else "") for go, name in zip(names, keys, strict=True)}
        for column in columns
    ]


def _selectable(fields: list[dict[str, Any]] | None) -> Any:
    return fields and [{"JSONPath": field.get("jsonPath", "")} for field in fields]
