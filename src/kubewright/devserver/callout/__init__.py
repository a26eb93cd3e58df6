"""Calls to webhooks: where a client configuration leads, the HTTPS exchange, and failures in the real server's words."""

from .caller import Caller
from .documents import read_document
from .failures import CallFailed

__all__ = ["CallFailed", "Caller", "read_document"]
