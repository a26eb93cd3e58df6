"""JSON, YAML and protobuf, read and written as kube-apiserver's Go code does.

`load_types()`, the entry point, returns the `TypeTable` of built-in kinds. Read in this order: `table`, `gotypes` (the types), `decoding`
with `scalars` and `times` (Go's round trip: field order, zero values, canonical quantities, unknown fields), `errors`,
`json_documents` with `syntax` and `yaml_documents` (strict, bounded parsers), `protobuf` and `protobuf_writing`, `conversion` (Go's errors for
converted values), `schemas` (merge schemas).
"""

from kubewright.devserver.wire.dropped_fields import DroppedFields
from kubewright.devserver.wire.errors import UnknownKind, WireDecodeError, json_sort
from kubewright.devserver.wire.json_documents import in_document_order, parse_json, untyped
from kubewright.devserver.wire.protobuf_writing import write_envelope, write_event
from kubewright.devserver.wire.scalars import sort_keys
from kubewright.devserver.wire.schemas import TypePatchSchema
from kubewright.devserver.wire.table import (
    BuiltinResource,
    BuiltinSubresource,
    BuiltinVersion,
    TypeTable,
    load_types,
)
from kubewright.devserver.wire.type_meta import PARSE_ERROR, find_kind
from kubewright.devserver.wire.yaml_documents import parse_yaml, yaml_errors

__all__ = [
    "PARSE_ERROR",
    "BuiltinResource",
    "BuiltinSubresource",
    "BuiltinVersion",
    "DroppedFields",
    "TypePatchSchema",
    "TypeTable",
    "UnknownKind",
    "WireDecodeError",
    "find_kind",
    "in_document_order",
    "json_sort",
    "load_types",
    "parse_json",
    "parse_yaml",
    "sort_keys",
    "untyped",
    "write_envelope",
    "write_event",
    "yaml_errors",
]
