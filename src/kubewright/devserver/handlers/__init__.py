"""Handlers: from an HTTP request to the store and back.

Read in this order: `pipeline` (every step of a request in order), `routing` (`ResourceRouter`: path to verb), `verbs` (the
handlers), `resource_request` (a routed request), `bodies` (request bodies), `object_write` with `create`, `update`, `patch`,
`scale` and `delete` (the steps of a write), `read`, `selection` and `watch` (reads), `connect` (endpoints of kinds),
`access` (`StoreAccess`: the server's own reads and writes).
"""

from kubewright.devserver.handlers.access import StoreAccess
from kubewright.devserver.handlers.pipeline import RequestPipeline
from kubewright.devserver.handlers.routing import ResourceRouter

__all__ = ["RequestPipeline", "ResourceRouter", "StoreAccess"]
