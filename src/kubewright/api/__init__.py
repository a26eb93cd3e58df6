"""Objects of the Kubernetes API as Python types: pure, no I/O.

Read in this order: `model` and `resource` (a kind is a class), `fields` (what its schema says), `meta` and
`conditions`, `codec` (to the wire and back), `raw` (as caches keep objects), then the small languages: `quantities`,
`durations`, `times`, `selectors`, `names`, `patches`, `problems`. `builtin` holds the kinds that every cluster has.
"""

from kubewright.api import names, problems
from kubewright.api.codec import decode, encode, from_wire, parse, status_wire, to_wire, zero
from kubewright.api.conditions import Condition, get_condition, is_condition, set_condition
from kubewright.api.durations import Duration, format_duration, parse_duration
from kubewright.api.errors import (
    DeclarationError,
    DecodeError,
    DurationError,
    KubewrightError,
    PatchError,
    QuantityError,
    SelectorError,
)
from kubewright.api.fields import Column, Field, Rule, Scale
from kubewright.api.identity import GroupVersionKind, ObjectKey
from kubewright.api.kinds import Kind, kind_of
from kubewright.api.meta import ManagedFieldsEntry, Meta, OwnerReference, controller_of, has_finalizer
from kubewright.api.model import Model, field_info, field_types, model_rules
from kubewright.api.patches import (
    PatchSchema,
    json_diff,
    json_patch,
    merge_diff,
    merge_patch,
    strategic_patch,
    typed_diff,
)
from kubewright.api.problems import FieldError, invalid_message
from kubewright.api.quantities import IntOrString, Quantity
from kubewright.api.raw import (
    PartialMeta,
    RawList,
    RawObject,
    WatchEvent,
    decode_event,
    raw_object,
    split_list,
)
from kubewright.api.resource import Object, Resource, owner_reference
from kubewright.api.scalars import Scalar
from kubewright.api.selectors import (
    FieldRequirement,
    FieldSelector,
    Requirement,
    Selector,
    label_selector,
    parse_fields,
    parse_labels,
)
from kubewright.api.status import Status, StatusCause, StatusDetails
from kubewright.api.times import MicroTime

__all__ = [
    "Column",
    "Condition",
    "DeclarationError",
    "DecodeError",
    "Duration",
    "DurationError",
    "Field",
    "FieldError",
    "FieldRequirement",
    "FieldSelector",
    "GroupVersionKind",
    "IntOrString",
    "Kind",
    "KubewrightError",
    "ManagedFieldsEntry",
    "Meta",
    "MicroTime",
    "Model",
    "Object",
    "ObjectKey",
    "OwnerReference",
    "PartialMeta",
    "PatchError",
    "PatchSchema",
    "Quantity",
    "QuantityError",
    "RawList",
    "RawObject",
    "Requirement",
    "Resource",
    "Rule",
    "Scalar",
    "Scale",
    "Selector",
    "SelectorError",
    "Status",
    "StatusCause",
    "StatusDetails",
    "WatchEvent",
    "controller_of",
    "decode",
    "decode_event",
    "encode",
    "field_info",
    "field_types",
    "format_duration",
    "from_wire",
    "get_condition",
    "has_finalizer",
    "invalid_message",
    "is_condition",
    "json_diff",
    "json_patch",
    "kind_of",
    "label_selector",
    "merge_diff",
    "merge_patch",
    "model_rules",
    "names",
    "owner_reference",
    "parse",
    "parse_duration",
    "parse_fields",
    "parse_labels",
    "problems",
    "raw_object",
    "set_condition",
    "split_list",
    "status_wire",
    "strategic_patch",
    "to_wire",
    "typed_diff",
    "zero",
]
