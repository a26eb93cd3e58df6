"""Calls of admission and conversion webhooks.

Read in this order: `caller` (`Caller`, the entry point: one POST over HTTPS), `destinations` (a client configuration as an address),
`failures` (errors in the words of Go's HTTP client and client-go).
"""

from kubewright.devserver.webhook_client.caller import Caller, read_review
from kubewright.devserver.webhook_client.failures import CallFailed

__all__ = ["CallFailed", "Caller", "read_review"]
