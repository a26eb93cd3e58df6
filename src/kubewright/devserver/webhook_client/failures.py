"""Errors of webhook calls, with the messages of Go's HTTP client and kube-apiserver."""

import socket
import ssl

import msgspec

from kubewright.api import KubewrightError
from kubewright.devserver.objects.status import quote
from kubewright.http.client import (
    ConnectionBroken,
    ConnectTimeout,
    HandshakeFailed,
    MalformedResponse,
    ReadTimeout,
    Unreachable,
)

_BY_STATUS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_BY_VERIFICATION = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
_MAX_TEXT = 2048


class CallFailed(KubewrightError):
    """A call of a webhook failed, or its response is invalid."""


class TooManyRedirects(KubewrightError):
    """A webhook redirects without an end."""


def connection_failure(error: Exception, address: str, name: str) -> str:
    """Return the reason of a failed exchange, as Go's HTTP client reports it."""
    match error:
        case TimeoutError() | ReadTimeout() | ConnectTimeout():
            return "context deadline exceeded"
        case MalformedResponse():
            shown = quote(error.shown.decode("latin-1"))
            return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {shown}"
        case HandshakeFailed() | Unreachable() | ConnectionBroken():
            return _cause(error.cause, address, name)
        case _:
            return "EOF"


def _cause(error: Exception | None, address: str, name: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_verification(error, name)}"
    if isinstance(error, ssl.SSLError):
        if "WRONG_VERSION_NUMBER" in str(error):
            return "http: server gave HTTP response to HTTPS client"
        return f"remote error: tls: {(error.reason or str(error)).lower().replace('_', ' ')}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {name}: no such host"
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {address}: connect: connection refused"
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(error, OSError):
        return f"dial tcp {address}: connect: {(error.strerror or str(error)).lower()}"
    return "EOF"


def _verification(error: ssl.SSLCertVerificationError, name: str) -> str:
    known = _BY_VERIFICATION.get(error.verify_code)
    if known is not None:
        return known
    if error.verify_code in (62, 64):
        return f"certificate is not valid for {name}"
    return error.verify_message


def status_failure(status: int, content_type: str, body: bytes) -> str:
    """Return the meaning of a response with an error status, as client-go reports it."""
    if own := _own_words(body):
        return own
    message = "unknown"
    if not content_type or content_type.partition(";")[0].strip().startswith("text/"):
        message = body[:_MAX_TEXT].decode("utf-8", "replace").strip()
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in (403, 415):
        return message
    if status == 406:
        unable = "the server was unable to respond with a content type that the client supports"
        return unable if message in ("", "unknown") else message
    if status >= 500:
        return f"an error on the server ({quote(message)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _own_words(body: bytes) -> str:
    """Return the message of a response that is a Status."""
    try:
        found = _status.decode(body)
    except msgspec.MsgspecError:
        return ""
    return found.message if found.kind == "Status" else ""


class _Status(msgspec.Struct):
    kind: str = ""
    message: str = ""


_status = msgspec.json.Decoder(_Status)
