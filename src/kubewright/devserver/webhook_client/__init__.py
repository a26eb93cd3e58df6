"""Calls to webhooks: where a client configuration leads, the HTTPS exchange, and failures in the real server's words."""

from kubewright.devserver.webhook_client.caller import Caller, read_document
from kubewright.devserver.webhook_client.failures import CallFailed

__all__ = ["CallFailed", "Caller", "read_document"]
