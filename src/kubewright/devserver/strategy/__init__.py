"""The contract between a kind and the server.

Read in this order: `strategy` (`Strategy`, the entry point: defaults, validation, columns, subresources of one kind),
`access` (reading and writing other objects from inside the server), `tables` (rows for kubectl).
"""

from kubewright.devserver.strategy.strategy import (
    Column,
    Endpoint,
    EndpointRequest,
    MetaChecks,
    Outcome,
    Part,
    Propagation,
    ScaleAccess,
    Strategy,
)

__all__ = [
    "Column",
    "Endpoint",
    "EndpointRequest",
    "MetaChecks",
    "Outcome",
    "Part",
    "Propagation",
    "ScaleAccess",
    "Strategy",
]
