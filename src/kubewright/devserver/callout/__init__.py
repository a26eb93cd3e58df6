"""Calls to webhooks: where a client configuration leads, the HTTPS exchange, and failures in the real server's words."""

from kubewright.devserver.callout.caller import Caller
from kubewright.devserver.callout.documents import read_document
from kubewright.devserver.callout.failures import CallFailed

__all__ = ["CallFailed", "Caller", "read_document"]
