"""Validation of CustomResourceDefinitions, with the messages of the API server.

`check_crd` in `document` is the entry point. Read in this order: `document` (the whole CRD), `structure` (is a schema
structural), `keywords` (single schema nodes and defaults), `rules` (CEL rules and their cost), `webhooks` (conversion
and webhook client configurations). `internal_types` formats values for messages.
"""

from kubewright.schema.crd_validation.document import check_crd, crd_warnings
from kubewright.schema.crd_validation.webhooks import check_webhook_client

__all__ = ["check_crd", "check_webhook_client", "crd_warnings"]
