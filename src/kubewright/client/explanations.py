"""Explain in one line why a request failed, from the connection error or the response (pure)."""

import os
import ssl

from kubewright.api import (
    ConnectionFailed,
    ConnectionLost,
    DecodeError,
    Status,
    TimedOut,
    UnexpectedResponse,
    decode,
    error_from_status,
)
from kubewright.client.redaction import hide_secret_data
from kubewright.client.requests import JSON, ApiRequest
from kubewright.client.tls import explain_tls
from kubewright.http.client import (
    ClientResponse,
    ConnectionBroken,
    ConnectTimeout,
    ExchangeFailed,
    HandshakeFailed,
    MalformedResponse,
    NotSent,
    PoolTimeout,
    ProxyRefused,
    ReadTimeout,
    ResponseTooLarge,
    Unreachable,
)

_GATEWAY = (429, 502, 503, 504)
_EXCERPT = 200


def explain_failure(
    error: ExchangeFailed, request: ApiRequest, server: str, timeout: float
) -> ConnectionFailed:
    """Return the exception for a request without a complete response."""
    asked = f"{request.verb} {request.object}"
    match error:
        case ConnectTimeout():
            return TimedOut(f"{asked}: no connection to {server} in time")
        case PoolTimeout():
            return TimedOut(
                f"{asked}: no free connection to {server} within {timeout:g} s: all {error.limit} are in use "
                "(max_connections)"
            )
        case ReadTimeout():
            return TimedOut(f"{asked}: {server} did not respond within {timeout:g} s", sent=True)
        case HandshakeFailed():
            return ConnectionFailed(f"{asked}: {explain_tls(error.cause, server)}")
        case Unreachable():
            what = f"the proxy to {server}" if error.proxy else server
            return ConnectionFailed(f"{asked}: {what} cannot be reached: {_os_text(error.cause)}")
        case ProxyRefused():
            return ConnectionFailed(f"{asked}: the proxy to {server} refused: {error.reason}")
        case MalformedResponse():
            return ConnectionFailed(f"{asked}: {server} does not respond in HTTP", sent=True)
        case ResponseTooLarge():
            return ConnectionFailed(
                f"{asked}: {server} returned HTTP {error.status} with a body of more than "
                f"{error.limit // 1024**2} MiB",
                sent=True,
            )
        case NotSent():
            return ConnectionLost(
                f"{asked}: the connection to {server} was closed before the request was out"
            )
        case ConnectionBroken(cause=ssl.SSLError() as cause):
            return ConnectionFailed(f"{asked}: {explain_tls(cause, server)}", sent=True)
        case ConnectionBroken(begun=True):
            return ConnectionLost(
                f"{asked}: the connection to {server} broke in the middle of the response", sent=True
            )
        case _:
            return ConnectionLost(f"{asked}: the connection to {server} broke", sent=True)


def explain_refusal(request: ApiRequest, response: ClientResponse, body: bytes, server: str) -> Exception:
    """Return the exception for an error response."""
    content_type = response.headers.get("Content-Type")
    status = Status(code=response.status)
    if content_type.startswith(JSON):
        try:
            status = decode(Status, body)
        except DecodeError:
            return explain_surprise(request, response, server)
        status.code = status.code or response.status
    elif content_type.startswith("text/plain"):
        status.message = body[:_EXCERPT].decode(errors="replace").strip()
    elif response.status in _GATEWAY:
        status.message = response.reason
    else:
        return explain_surprise(request, response, server)
    if request.body and request.resource == "secrets":
        status.message = hide_secret_data(status.message, request.body)
        for cause in status.details.causes:
            cause.message = hide_secret_data(cause.message, request.body)
    given = response.headers.get("Retry-After")
    return error_from_status(
        status,
        verb=request.verb,
        object=request.object,
        retry_after=float(given) if given.isdecimal() else None,
    )


def explain_surprise(request: ApiRequest, response: ClientResponse, server: str) -> UnexpectedResponse:
    """Return the exception for a response that is not from an API server."""
    what = response.headers.get("Content-Type") or "no content type"
    return UnexpectedResponse(
        f"{request.verb} {request.object}: {server} returned HTTP {response.status} with {what}, which is not "
        "Kubernetes' API: check the server's address and any proxy between"
    )


def _os_text(error: OSError) -> str:
    number = error.errno
    return os.strerror(number) if number and number > 0 else error.strerror or "unknown host"
