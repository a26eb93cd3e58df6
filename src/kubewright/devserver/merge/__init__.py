"""Server-side apply and field ownership: structured merge and diff of values by their schema."""

from .crd_schema import merge_schema_of_crd
from .schema import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    OBJECT_META,
    STRING,
    UNTYPED,
    ListSchema,
    MapSchema,
    MergeSchema,
)

__all__ = [
    "ANY_SCALAR",
    "BOOLEAN",
    "DEDUCED",
    "NUMERIC",
    "OBJECT_META",
    "STRING",
    "UNTYPED",
    "ListSchema",
    "MapSchema",
    "MergeSchema",
    "merge_schema_of_crd",
]
