"""Admission webhooks: the decorators, the request, and what a webhook function returns or yields.

`validating_webhook` and `mutating_webhook` declare a function; its arguments are the object, the old object and an
`AdmissionRequest`. A validating function returns or yields `Problem`s: `invalid`, `required`, `forbidden`,
`not_supported`, `duplicate` name a field, `denied` refuses without one, `warning` and `audit` let the request pass.
"""

from kubewright.webhook import (
    AdmissionRequest,
    Problem,
    audit,
    denied,
    duplicate,
    forbidden,
    invalid,
    mutating_webhook,
    not_supported,
    required,
    validating_webhook,
    warning,
)

__all__ = [
    "AdmissionRequest",
    "Problem",
    "audit",
    "denied",
    "duplicate",
    "forbidden",
    "invalid",
    "mutating_webhook",
    "not_supported",
    "required",
    "validating_webhook",
    "warning",
]
