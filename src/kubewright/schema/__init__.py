"""Schemas of custom resources: from Python types to a CRD, and validation of plain JSON values against a schema.

Entry points: `crd` makes a CRD from classes, `compile_schema` makes the `Validator` of a schema, `check_crd` validates a CRD.
Read in this order:

1. `structural`, `constraints` and `crd_builder`: Python types to schema to CRD.
2. `validation`, the Validator, and its steps in order: `defaulting` (also pruning), `openapi` with `formats` and
   `patterns`, `extensions` (embedded resources, list types), `rules` (CEL). `ratcheting` relates old and new values.
3. `crd_validation`: whether the API server accepts a CRD.
4. `comparison`: which changes of a CRD break stored objects or clients.
5. `cel`: the expression language.

All of them work on the JSON values and schemas of `json_tree`.
"""

from kubewright.schema.comparison import BreakingChange, compare
from kubewright.schema.crd_builder import crd, version_priority
from kubewright.schema.crd_validation import check_crd, check_webhook_client, crd_warnings
from kubewright.schema.structural import structural
from kubewright.schema.validation import ABSENT, Validator, apply_defaults, compile_schema, prune, validate

__all__ = [
    "ABSENT",
    "BreakingChange",
    "Validator",
    "apply_defaults",
    "check_crd",
    "check_webhook_client",
    "compare",
    "compile_schema",
    "crd",
    "crd_warnings",
    "prune",
    "structural",
    "validate",
    "version_priority",
]
