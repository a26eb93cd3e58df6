"""Server-side apply and field ownership.

`apply` and `update_managed_fields`, the entry points, are in `ownership`. Read in this order: `ownership`, `updater` (ownership during one
write), `managers` (managedFields entries), `merging`, `comparison` and `membership` (values by schema), `fieldsets` and `elements`
(FieldsV1), `schema` and `crd_schema` (how a kind merges), `validation`, `scale`, `last_applied`, `conflicts` (errors).
"""

from kubewright.devserver.merge.conflicts import ApplyConflicts, OwnershipConflict
from kubewright.devserver.merge.crd_schema import merge_schema_of_crd
from kubewright.devserver.merge.managers import sort_entries
from kubewright.devserver.merge.merging import overlay
from kubewright.devserver.merge.ownership import (
    FieldWrite,
    apply,
    keep_timestamps,
    resets_ownership,
    update_managed_fields,
)
from kubewright.devserver.merge.scale import apply_scale, disown, scale_owners
from kubewright.devserver.merge.schema import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    DEDUCED_OBJECT,
    NUMERIC,
    OBJECT_META,
    STRING,
    UNTYPED,
    ApplyError,
    ListSchema,
    MapSchema,
    MergeSchema,
)
from kubewright.devserver.merge.updater import Convert
from kubewright.devserver.merge.validation import check_fits

__all__ = [
    "ANY_SCALAR",
    "BOOLEAN",
    "DEDUCED",
    "DEDUCED_OBJECT",
    "NUMERIC",
    "OBJECT_META",
    "STRING",
    "UNTYPED",
    "ApplyConflicts",
    "ApplyError",
    "Convert",
    "FieldWrite",
    "ListSchema",
    "MapSchema",
    "MergeSchema",
    "OwnershipConflict",
    "apply",
    "apply_scale",
    "check_fits",
    "disown",
    "keep_timestamps",
    "merge_schema_of_crd",
    "overlay",
    "resets_ownership",
    "scale_owners",
    "sort_entries",
    "update_managed_fields",
]
