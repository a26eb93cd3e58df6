"""Merge schemas of built-in types from the type table, for server-side apply and strategic patches."""

import json
from collections.abc import Mapping
from typing import Any

from kubewright.api import PatchError
from kubewright.devserver.merge import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    DEDUCED_OBJECT,
    NUMERIC,
    STRING,
    UNTYPED,
    ListSchema,
    MapSchema,
    MergeSchema,
)
from kubewright.devserver.wire.gotypes import GoField, GoType, GoTypes, scalar_name

_LEAVES = {
    "meta/v1.FieldsV1": DEDUCED_OBJECT,
    "runtime.RawExtension": UNTYPED,
    "intstr.IntOrString": DEDUCED,
    "apiextensions/v1.JSON": DEDUCED,
    "apiextensions/v1.JSONSchemaPropsOrBool": DEDUCED,
    "apiextensions/v1.JSONSchemaPropsOrArray": DEDUCED,
    "apiextensions/v1.JSONSchemaPropsOrStringArray": DEDUCED,
    "any": DEDUCED,
}
_MERGING = frozenset({"merge", "merge,retainKeys"})


class MergeSchemas:
    """Merge schemas of the table's structs, each made once."""

    def __init__(self, types: GoTypes) -> None:
        self._types = types
        self._structs: dict[str, MergeSchema] = {}

    def struct(self, name: str) -> MergeSchema:
        """Return a struct's merge schema; its fields are resolved at their first use."""
        known = self._structs.get(name)
        if known is None:
            fields = self._types.fields(name)
            defaults = {field.name: field.facts["default"] for field in fields if "default" in field.facts}
            mapping = MapSchema(
                lambda: self._fields(fields),
                item=None if fields else DEDUCED,
                atomic=name in self._types.atomic,
                defaults=defaults,
            )
            known = self._structs[name] = MergeSchema(mapping=mapping)
        return known

    def _fields(self, fields: tuple[GoField, ...]) -> Mapping[str, MergeSchema]:
        return {field.name: self._of(field.type, field.facts) for field in fields}

    def _of(self, go_type: GoType, facts: Mapping[str, Any]) -> MergeSchema:
        form, item = go_type.form, go_type.item
        if form == "pointer" and item is not None:
            return self._of(item, facts)
        if form == "struct":
            return self._struct_field(go_type.spelled, facts)
        if form == "list" and item is not None:
            return MergeSchema(sequence=self._list(item, facts))
        if form == "map" and item is not None:
            atomic = facts.get("map") == "atomic"
            return MergeSchema(mapping=MapSchema(dict, item=self._of(item, {}), atomic=atomic))
        if form == "scalar":
            return {"string": STRING, "bool": BOOLEAN}.get(scalar_name(go_type), NUMERIC)
        return STRING if form == "bytes" else _LEAVES.get(go_type.spelled, ANY_SCALAR)

    def _struct_field(self, name: str, facts: Mapping[str, Any]) -> MergeSchema:
        schema, kind = self.struct(name), facts.get("map")
        if schema.mapping is None or kind is None:
            return schema
        return MergeSchema(mapping=schema.mapping.taken(whole=kind == "atomic"))

    def _list(self, item: GoType, facts: Mapping[str, Any]) -> ListSchema:
        inner = self._of(item, {})
        if "list" in facts:
            keys = facts.get("keys", ()) if facts["list"] == "map" else ()
            return ListSchema(inner, associative=facts["list"] != "atomic", keys=keys)
        keys = (facts["key"],) if "key" in facts else ()
        return ListSchema(inner, associative=facts.get("strategy") in _MERGING, keys=keys)


class TypePatchSchema:
    """The patch strategies of one field of a type: its strategies, its merge key, and its fields."""

    __slots__ = ("_type", "_types", "merge_key", "strategy")

    def __init__(self, types: GoTypes, go_type: GoType | None, facts: Mapping[str, Any]) -> None:
        self._types = types
        self._type = go_type.item if go_type is not None and go_type.form == "pointer" else go_type
        self.strategy: frozenset[str] = frozenset(filter(None, str(facts.get("strategy", "")).split(",")))
        self.merge_key: str = facts.get("key", "")

    def field(self, name: str) -> "TypePatchSchema":
        """Return the schema of a field; raise PatchError if the type does not have it."""
        if self._type is None or self._type.form == "map":
            return TypePatchSchema(self._types, self._type.item if self._type is not None else None, {})
        if self._type.form == "struct":
            for field in self._types.fields(self._type.spelled):
                if field.name == name:
                    return TypePatchSchema(self._types, field.type, field.facts)
        struct = self._type.spelled.rsplit(".", 1)[-1]
        raise PatchError(f"unable to find api field in struct {struct} for the json field {json.dumps(name)}")

    def item(self) -> "TypePatchSchema":
        """Return the schema of a list's elements."""
        inner = self._type.item if self._type is not None and self._type.form == "list" else None
        return TypePatchSchema(self._types, inner, {})
