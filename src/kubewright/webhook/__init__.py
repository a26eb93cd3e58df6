"""Webhooks: their declarations, and the pure functions that respond to reviews.

Read in this order: `declaration` (`validating_webhook`, `mutating_webhook`), `findings` (what they return), `request`
(what they are called with), `conversion` (versions of one kind), `authentication` (the users of tokens), `endpoints`
(all webhooks of an operator, with paths and names), `admission` and `conversion_review` (from a review to its response),
`naming`, `selectors` and `permissions`. `configurations` renders the webhook configurations and the conversion of CRDs.
`kubewright.webhook.server` has the HTTPS server, certificates and registration. The manager imports it for operators
with webhooks; authors do not import it.
"""

from typing import TYPE_CHECKING

from kubewright.api.on_demand import names_on_demand
from kubewright.api.problems import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from kubewright.webhook.authentication import (
    AUTHENTICATE_PATH,
    Authentication,
    TokenFailed,
    authenticates,
    read_token,
    token_failure,
)
from kubewright.webhook.conversion import Conversion, Versions, versions_of
from kubewright.webhook.declaration import Admission, mutating_webhook, validating_webhook
from kubewright.webhook.endpoints import CONVERT_PATH, Endpoints, Webhook, WebhookEndpoint
from kubewright.webhook.envelope import BadReview
from kubewright.webhook.findings import AuditAnnotation, Denial, Problem, Warned, audit, denied, warning
from kubewright.webhook.options import Lifetimes, Reach, WebhookOptions
from kubewright.webhook.request import AdmissionRequest, Operation, User

if TYPE_CHECKING:
    from kubewright.webhook.admission import UserCodeFailed, failure, read_admission, review_admission
    from kubewright.webhook.conversion_review import ConversionResult, conversion_failure, review_conversion
    from kubewright.webhook.naming import WebhookNames
    from kubewright.webhook.permissions import certificate_rules, registration_rules, webhook_rules
else:
    # For the webhook server and the generators of manifests, which most operators do not load.
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "admission": ["UserCodeFailed", "failure", "read_admission", "review_admission"],
            "conversion_review": ["ConversionResult", "conversion_failure", "review_conversion"],
            "naming": ["WebhookNames"],
            "permissions": ["certificate_rules", "registration_rules", "webhook_rules"],
        },
    )

__all__ = [
    "AUTHENTICATE_PATH",
    "CONVERT_PATH",
    "Admission",
    "AdmissionRequest",
    "AuditAnnotation",
    "Authentication",
    "BadReview",
    "Conversion",
    "ConversionResult",
    "Denial",
    "Endpoints",
    "Lifetimes",
    "Operation",
    "Problem",
    "Reach",
    "TokenFailed",
    "User",
    "UserCodeFailed",
    "Versions",
    "Warned",
    "Webhook",
    "WebhookEndpoint",
    "WebhookNames",
    "WebhookOptions",
    "audit",
    "authenticates",
    "certificate_rules",
    "conversion_failure",
    "denied",
    "duplicate",
    "failure",
    "forbidden",
    "invalid",
    "mutating_webhook",
    "not_found",
    "not_supported",
    "read_admission",
    "read_token",
    "registration_rules",
    "required",
    "review_admission",
    "review_conversion",
    "token_failure",
    "too_long",
    "too_many",
    "validating_webhook",
    "versions_of",
    "warning",
    "webhook_rules",
]
