"""Server-side apply and field ownership: structured merge and diff of values by their schema.

`update_managed_fields`, `apply` and `apply_scale` keep `metadata.managedFields`; `keep_timestamps` undoes a write that changed
nothing but times; `merge_schema_of_crd` and the schema classes say how a kind merges.
"""

from kubewright.devserver.merge.conflicts import ApplyConflicts, Conflict
from kubewright.devserver.merge.crd_schema import merge_schema_of_crd
from kubewright.devserver.merge.errors import ApplyError
from kubewright.devserver.merge.overlay import overlay
from kubewright.devserver.merge.ownership import (
    Write,
    apply,
    keep_timestamps,
    resets_ownership,
    update_managed_fields,
)
from kubewright.devserver.merge.scale import apply_scale, scale_owners
from kubewright.devserver.merge.schema import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    DEDUCED_OBJECT,
    NUMERIC,
    OBJECT_META,
    STRING,
    UNTYPED,
    ListSchema,
    MapSchema,
    MergeSchema,
)
from kubewright.devserver.merge.updater import Convert

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
    "Conflict",
    "Convert",
    "ListSchema",
    "MapSchema",
    "MergeSchema",
    "Write",
    "apply",
    "apply_scale",
    "keep_timestamps",
    "merge_schema_of_crd",
    "overlay",
    "resets_ownership",
    "scale_owners",
    "update_managed_fields",
]
