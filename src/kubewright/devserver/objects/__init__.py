"""API objects as JSON values, and what every kind has in common.

Read in this order: `json_objects` (dictionaries and their bytes; its names are this package's entry point), `status`
(errors), `metadata` (rules for `metadata` of all kinds), `clock` (timestamps), `jsonpath` (printer columns and
selectable fields).
"""

from kubewright.api import JsonObject
from kubewright.devserver.objects.json_objects import (
    META_ORDER,
    api_version,
    copy,
    decode,
    encode,
    encode_sorted,
    go_text,
    is_list,
    is_object,
    items,
    labels_of,
    meta,
    order_meta,
    order_object,
    section,
    split_api_version,
    unchanged,
    with_revision,
    words,
)

__all__ = [
    "META_ORDER",
    "JsonObject",
    "api_version",
    "copy",
    "decode",
    "encode",
    "encode_sorted",
    "go_text",
    "is_list",
    "is_object",
    "items",
    "labels_of",
    "meta",
    "order_meta",
    "order_object",
    "section",
    "split_api_version",
    "unchanged",
    "with_revision",
    "words",
]
