"""Schemas of custom resources: from Python types to a CRD, and from a schema to checks on plain JSON values.

Read in this order: `structural` and `document` (types to schema to CRD), `validation` (validate, default, prune),
`definition` (is a CRD acceptable), `comparison` (does a change break anybody), `cel` (validation rules).
"""

from kubewright.schema.comparison import Breaking, compare
from kubewright.schema.definition import check_crd, check_webhook_client, crd_warnings
from kubewright.schema.document import crd, version_priority
from kubewright.schema.structural import structural
from kubewright.schema.validation import ABSENT, Validator, apply_defaults, compile_schema, prune, validate

__all__ = [
    "ABSENT",
    "Breaking",
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
