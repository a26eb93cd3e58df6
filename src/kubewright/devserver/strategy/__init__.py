"""The contract between a kind and the server.

Read in this order: `strategy` (`Strategy`, the entry point: defaults, validation, columns, subresources of one kind),
`access` (reading and writing other objects from inside the server), `tables` (rows for kubectl).
"""

from kubewright.devserver.strategy.strategy import (
    DefaultPropagation,
    EndpointRequest,
    EndpointResult,
    MetaChecks,
    PartialSubresource,
    ScaleAccess,
    Strategy,
    SubresourceEndpoint,
    TableColumn,
    only_status,
)

__all__ = [
    "DefaultPropagation",
    "EndpointRequest",
    "EndpointResult",
    "MetaChecks",
    "PartialSubresource",
    "ScaleAccess",
    "Strategy",
    "SubresourceEndpoint",
    "TableColumn",
    "only_status",
]
