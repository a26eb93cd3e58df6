"""Schema metadata of fields and kinds that Python types do not express."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

ListType = Literal["atomic", "set", "map"]
MapType = Literal["granular", "atomic"]
ColumnType = Literal["string", "integer", "number", "boolean", "date"]


class _RuleDetails(msgspec.Struct, frozen=True, kw_only=True):
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


class Rule(_RuleDetails, frozen=True):
    """A CEL rule of the schema: `Rule("self.min <= self.max", message="min is above max")`."""

    rule: str


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """Constraints and metadata of a field in the CRD's schema: `Annotated[int, Field(ge=0, description="...")]`.

    Bounds are written to the CRD and checked by the server; decoding does not check them. A field is required when it has
    no default; `optional=False` requires one that has (it is then always sent, even when empty), `optional=True` never.
    `default` is set by the server if the field is absent; the Python default of such a field is None.
    A `sensitive` field has the format `password` in the schema, and its values never appear in the operator's journal.
    """

    description: str = ""
    name: str = ""
    title: str = ""
    example: Any = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    unique: bool = False
    format: str = ""
    enum: Sequence[Any] = ()
    list_type: ListType | None = None
    list_keys: Sequence[str] = ()
    map_type: MapType | None = None
    nullable: bool = False
    immutable: bool = False
    sensitive: bool = False
    int64: bool = False
    optional: bool | None = None
    default: Any = msgspec.UNSET
    preserve_unknown_fields: bool = False
    embedded_resource: bool = False
    rules: Sequence[Rule] = ()

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]) -> Any:
        """Add the format to the schema of a field of a pydantic model; what else pydantic has options for, it ignores."""
        schema = handler(core_schema)
        return {**schema, "format": "password"} if self.sensitive else schema


class _ColumnDetails(msgspec.Struct, frozen=True, kw_only=True):
    type: ColumnType = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Column(_ColumnDetails, frozen=True):
    """A column that `kubectl get` prints for a kind."""

    name: str
    json_path: str


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON paths of the scale subresource: desired replicas, current replicas and the label selector."""

    spec: str
    status: str
    selector: str = ""
