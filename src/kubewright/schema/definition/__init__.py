"""Whether the API server would accept a CustomResourceDefinition, in its words.

`document` checks the whole, `parts` names, columns and subresources, `structure` that schemas are structural, `keywords` the single
nodes of a schema, `defaults` and `rules` the defaults and rules in it, `conversion` the webhook, `warnings` what is
only warned of; `internal` prints values as the server does.
"""

from kubewright.schema.definition.document import check_crd
from kubewright.schema.definition.warnings import crd_warnings
from kubewright.schema.definition.webhooks import check_webhook_client

__all__ = ["check_crd", "check_webhook_client", "crd_warnings"]
