"""Bodies of requests: JSON, YAML and protobuf read as the real server's Go decoders read them.

`load_types()` is the table of built-in kinds: `decode` makes the Go round trip of a parsed value (field order,
zero values, canonical quantities and times, unknown fields told), `decode_protobuf` reads Go clients' bodies.
`parse_json` and `parse_yaml` are strict and bounded; `encode_json` writes Go's bytes; `untyped` is the round
trip of values that have no Go type (custom resources).
"""

from kubewright.devserver.wire.errors import DecodeError, UnknownKind
from kubewright.devserver.wire.json_documents import encode_json, parse_json, untyped
from kubewright.devserver.wire.positions import in_document_order
from kubewright.devserver.wire.schemas import TypePatchSchema
from kubewright.devserver.wire.table import (
    BuiltinResource,
    BuiltinVersion,
    Subresource,
    TypeTable,
    load_types,
)
from kubewright.devserver.wire.yaml_documents import parse_yaml

__all__ = [
    "BuiltinResource",
    "BuiltinVersion",
    "DecodeError",
    "Subresource",
    "TypePatchSchema",
    "TypeTable",
    "UnknownKind",
    "encode_json",
    "in_document_order",
    "load_types",
    "parse_json",
    "parse_yaml",
    "untyped",
]
