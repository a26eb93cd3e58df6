"""Whether the API server would accept a CustomResourceDefinition, in its words.

`document` checks the whole, `parts` names, columns and subresources, `structure` that schemas are structural, `keywords` the single
nodes of a schema, `defaults` the defaults in it, `conversion` the webhook, `internal` prints values as the server does.
"""

from kubewright.schema.definition.document import check_crd

__all__ = ["check_crd"]
