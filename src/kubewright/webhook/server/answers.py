"""What a path answers: the pure review, and what becomes of an exception in the author's function."""

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from kubewright.api import kind_of
from kubewright.http.server import Response, text
from kubewright.metrics import Registry
from kubewright.webhook import (
    CONVERT_PATH,
    AdmissionRequest,
    Authentication,
    Endpoint,
    Endpoints,
    TokenFailed,
    UserCodeFailed,
    Versions,
    conversion_failure,
    failure,
    review_admission,
    review_conversion,
    review_token,
    token_failure,
)

ADMISSION_BODY = 7 * 1024 * 1024
"""Room for two objects of the size that API servers take, as controller-runtime gives."""
CONVERSION_BODY = 128 * 1024 * 1024
"""A list without pages is converted in one request."""
TOKEN_BODY = 1024 * 1024

_log = logging.getLogger("kubewright.webhook")


class Answerer(ABC):
    """Turns bodies into answers; plain functions, for the event loop or a thread."""

    largest_body: int

    @abstractmethod
    def answer(self, body: bytes) -> Response:
        """Answer one review; raise BadReview for what is none."""

    @abstractmethod
    def refusal(self, message: str) -> bytes:
        """Return the review that says why a body is none."""


class AdmissionAnswerer(Answerer):
    """Answers for one admission webhook."""

    largest_body = ADMISSION_BODY

    def __init__(self, endpoint: Endpoint, metrics: Registry) -> None:
        self._endpoint = endpoint
        self._panics = metrics.counter(
            "controller_runtime_webhook_panics_total", "Exceptions in admission functions"
        ).labels()

    def answer(self, body: bytes) -> Response:
        """Judge one object."""
        webhook = self._endpoint.webhook
        try:
            return Response(200, review_admission(webhook, body))
        except UserCodeFailed as error:
            cause = error.__cause__
            self._panics.inc()
            _log.error(
                "%s failed: %s",
                self._endpoint.name,
                cause,
                exc_info=cause,
                extra={"fields": self._fields(error.request)},
            )
            told = f"{self._endpoint.name} failed: {type(cause).__name__}: {cause}"
            if webhook.failure_policy == "Ignore":
                # A review would be a verdict. An HTTP error is a failure, which the API server ignores as declared.
                return text(500, f"{told}\n")
            return Response(200, failure(error.uid, 500, "InternalError", told, error.version))

    def refusal(self, message: str) -> bytes:
        """Refuse the object that the body may have been about."""
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


class ConversionAnswerer(Answerer):
    """Answers for all versions of all converted kinds."""

    largest_body = CONVERSION_BODY

    def __init__(self, versions: Mapping[tuple[str, str], Versions], metrics: Registry) -> None:
        self._versions = versions
        self._panics = metrics.counter(
            "controller_runtime_conversion_webhook_panics_total", "Exceptions in conversion functions"
        ).labels()

    def answer(self, body: bytes) -> Response:
        """Convert the objects of one request."""
        answer = review_conversion(self._versions, body)
        for error in answer.surprises:
            self._panics.inc()
            fields = {"fields": {"webhook": CONVERT_PATH}}
            _log.error("A conversion failed: %s", error, exc_info=error, extra=fields)
        return Response(200, answer.body)

    def refusal(self, message: str) -> bytes:
        """Convert nothing."""
        return conversion_failure("", message)


class TokenAnswerer(Answerer):
    """Answers whose a token is."""

    largest_body = TOKEN_BODY

    def __init__(self, authentication: Authentication, metrics: Registry) -> None:
        self._authentication = authentication
        self._panics = metrics.counter(
            "controller_runtime_webhook_panics_total", "Exceptions in admission functions"
        ).labels()

    def answer(self, body: bytes) -> Response:
        """Judge one token."""
        try:
            return Response(200, review_token(self._authentication, body))
        except TokenFailed as error:
            self._panics.inc()
            cause = error.__cause__
            # The text of the exception may hold the token, which belongs in no log.
            place = traceback.extract_tb(cause.__traceback__)[-1] if cause is not None else None
            fields = {"fields": {"webhook": self._authentication.path, "at": str(place)}}
            _log.error("A token could not be judged: %s", type(cause).__name__, extra=fields)
            return Response(200, error.answer)

    def refusal(self, message: str) -> bytes:
        """Authenticate nobody."""
        return token_failure(message)


def answerers_for(endpoints: Endpoints, metrics: Registry) -> dict[str, Answerer]:
    """Return who answers under which path."""
    found: dict[str, Answerer] = {
        endpoint.path: AdmissionAnswerer(endpoint, metrics) for endpoint in endpoints.admissions
    }
    for each in endpoints.authentications:
        found[each.path] = TokenAnswerer(each, metrics)
    if endpoints.conversions:
        found[CONVERT_PATH] = ConversionAnswerer(endpoints.versions, metrics)
    return found
