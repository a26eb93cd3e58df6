"""Respond to the reviews of one path, in a thread or on the event loop, and log exceptions of the author's function."""

import asyncio
import contextvars
import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar

from kubewright.api import kind_of
from kubewright.http.server import Response, text
from kubewright.metrics import Registry
from kubewright.webhook import (
    CONVERT_PATH,
    AdmissionRequest,
    Authentication,
    Endpoints,
    TokenFailed,
    UserCodeFailed,
    Versions,
    WebhookEndpoint,
    conversion_failure,
    failure,
    read_admission,
    read_token,
    review_admission,
    review_conversion,
    token_failure,
)

P = ParamSpec("P")
R = TypeVar("R")

ADMISSION_BODY = 7 * 1024 * 1024
"""Two objects of the maximum size of API servers, as in controller-runtime."""
CONVERSION_BODY = 128 * 1024 * 1024
"""Larger than for admission: a list without pages is converted in one request."""
TOKEN_BODY = 1024 * 1024
LARGE = 256 * 1024
"""Reviews of this many bytes are decoded in a thread also for an async function: they would block the event loop."""

_log = logging.getLogger("kubewright.webhook")


class Reviewer(ABC):
    """Review request bodies: a `def` is run in a thread, an `async def` on the event loop."""

    largest_body: int

    @abstractmethod
    async def review(self, body: bytes, threads: Executor) -> Response:
        """Respond to one review; raise BadReview for a body that is not a review."""

    @abstractmethod
    def refusal(self, message: str) -> bytes:
        """Return the review that reports why a body is not a review."""


class AdmissionReviewer(Reviewer):
    """Review for one admission webhook."""

    largest_body = ADMISSION_BODY

    def __init__(self, endpoint: WebhookEndpoint, metrics: Registry) -> None:
        self._endpoint = endpoint
        self._panics = metrics.counter(
            "controller_runtime_webhook_panics_total", "Exceptions in admission functions"
        ).labels()

    async def review(self, body: bytes, threads: Executor) -> Response:
        """Validate or default one object."""
        webhook = self._endpoint.webhook
        try:
            if not webhook.is_async:
                return Response(200, await _in_thread(threads, review_admission, webhook, body))
            large = threads if len(body) > LARGE else None
            call = await _maybe_in_thread(large, read_admission, webhook, body)
            if isinstance(call, bytes):
                return Response(200, call)
            return Response(200, await _maybe_in_thread(large, call.response, await call.run_async()))
        except UserCodeFailed as error:
            return self._failed(error)

    def _failed(self, error: UserCodeFailed) -> Response:
        cause = error.__cause__
        self._panics.inc()
        _log.error(
            "%s failed: %s",
            self._endpoint.name,
            cause,
            exc_info=cause,
            extra={"fields": self._fields(error.request)},
        )
        message = f"{self._endpoint.name} failed: {type(cause).__name__}: {cause}"
        if self._endpoint.webhook.failure_policy == "Ignore":
            # A review would allow or deny. An HTTP error is a failed call, which the API server ignores as declared.
            return text(500, f"{message}\n")
        return Response(200, failure(error.uid, 500, "InternalError", message, error.version))

    def refusal(self, message: str) -> bytes:
        """Return a review that denies the request."""
        return failure("", 400, "BadRequest", message)

    def _fields(self, request: AdmissionRequest) -> dict[str, Any]:
        kind = kind_of(self._endpoint.webhook.kind)
        return {
            "webhook": self._endpoint.path,
            "webhookGroup": kind.group,
            "webhookKind": kind.kind,
            kind.kind: {"namespace": request.namespace, "name": request.name},
            "namespace": request.namespace,
            "name": request.name,
            "operation": request.operation,
            "user": request.user.name,
            "requestID": request.uid,
        }


class ConversionReviewer(Reviewer):
    """Review for all versions of all converted kinds."""

    largest_body = CONVERSION_BODY

    def __init__(self, versions: Mapping[tuple[str, str], Versions], metrics: Registry) -> None:
        self._versions = versions
        self._panics = metrics.counter(
            "controller_runtime_conversion_webhook_panics_total", "Exceptions in conversion functions"
        ).labels()

    async def review(self, body: bytes, threads: Executor) -> Response:
        """Convert the objects of one request."""
        response = await _in_thread(threads, review_conversion, self._versions, body)
        for error in response.surprises:
            self._panics.inc()
            fields = {"fields": {"webhook": CONVERT_PATH}}
            _log.error("A conversion failed: %s", error, exc_info=error, extra=fields)
        return Response(200, response.body)

    def refusal(self, message: str) -> bytes:
        """Return a review that reports the failure."""
        return conversion_failure("", message)


class TokenReviewer(Reviewer):
    """Review for one token webhook."""

    largest_body = TOKEN_BODY

    def __init__(self, authentication: Authentication, metrics: Registry) -> None:
        self._authentication = authentication
        self._panics = metrics.counter(
            "controller_runtime_webhook_panics_total", "Exceptions in admission functions"
        ).labels()

    async def review(self, body: bytes, threads: Executor) -> Response:
        """Authenticate the bearer of one token."""
        call = read_token(self._authentication, body)
        try:
            if not self._authentication.is_async:
                return Response(200, await _in_thread(threads, call.run))
            return Response(200, await call.run_async())
        except TokenFailed as error:
            self._panics.inc()
            cause = error.__cause__
            # The text of the exception may contain the token, which must not be logged.
            address = traceback.extract_tb(cause.__traceback__)[-1] if cause is not None else None
            fields = {"fields": {"webhook": self._authentication.path, "at": str(address)}}
            _log.error("A token could not be reviewed: %s", type(cause).__name__, extra=fields)
            return Response(200, error.response)

    def refusal(self, message: str) -> bytes:
        """Return a review that authenticates no user."""
        return token_failure(message)


def reviewers_for(endpoints: Endpoints, metrics: Registry) -> dict[str, Reviewer]:
    """Return the reviewer of each path."""
    found: dict[str, Reviewer] = {
        endpoint.path: AdmissionReviewer(endpoint, metrics) for endpoint in endpoints.admissions
    }
    for each in endpoints.authentications:
        found[each.path] = TokenReviewer(each, metrics)
    if endpoints.conversions:
        found[CONVERT_PATH] = ConversionReviewer(endpoints.versions, metrics)
    return found


async def _in_thread(threads: Executor, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    context = contextvars.copy_context()
    call = lambda: context.run(function, *args, **kwargs)  # noqa: E731 (a `def` here could not be typed)
    return await asyncio.get_running_loop().run_in_executor(threads, call)


async def _maybe_in_thread(
    threads: Executor | None, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    if threads is None:
        return function(*args, **kwargs)
    return await _in_thread(threads, function, *args, **kwargs)
