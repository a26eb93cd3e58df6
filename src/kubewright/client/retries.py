"""Decide whether a failed request may be sent again, and after how long (pure)."""

from kubewright.api import (
    ApiError,
    ConnectionLost,
)
from kubewright.backoff import Backoff
from kubewright.client.requests import ApiRequest

LOST_ATTEMPTS = 3
_AFTER_LOSS = Backoff(base=0.05, maximum=1.0, factor=3.0, jitter=0.5)
_REFUSED_BEFORE_WORK = (429, 503)
MAX_READ_DELAY = 10.0
"""Maximum seconds to wait before a read is sent again, because its caller has stale data meanwhile."""


def retry_delay(request: ApiRequest, error: ApiError | ConnectionLost, attempt: int) -> float | None:
    """Return the seconds to wait before sending again, or None to give up.

    429 and 503 with Retry-After were rejected before any work was done, so every verb may be retried. After other
    responses with Retry-After, and lost connections, it is unknown whether a write happened.
    """
    if isinstance(error, ConnectionLost):
        if attempt >= LOST_ATTEMPTS or (error.sent and not request.retry_safe):
            return None
        return _AFTER_LOSS.delay(attempt)
    if error.retry_after is None or not request.honor_retry_after:
        return None
    if error.status.code in _REFUSED_BEFORE_WORK or (error.status.code >= 500 and request.retry_safe):
        return min(error.retry_after, MAX_READ_DELAY) if request.method == "GET" else error.retry_after
    return None


def leaves_outcome_open(error: ApiError | ConnectionLost) -> bool:
    """Return True if the failed request may have taken effect nevertheless."""
    if isinstance(error, ConnectionLost):
        return error.sent
    return error.status.code not in _REFUSED_BEFORE_WORK and error.status.code >= 500
