"""Findings of an admission function: field errors, denials, warnings, annotations for the audit log."""

import msgspec

from kubewright.api import DeclarationError, FieldError, names


class Denial(msgspec.Struct, frozen=True):
    """A denial that is not about one field."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


class Warned(msgspec.Struct, frozen=True):
    """A warning that the client shows to its user; the request is not denied."""

    text: str


class AuditAnnotation(msgspec.Struct, frozen=True):
    """An annotation for the API server's audit log."""

    key: str
    value: str


Problem = FieldError | Denial | Warned | AuditAnnotation
"""What a validating webhook returns or yields; created by the functions below."""


def warning(text: str) -> Warned:
    """Return a warning, which kubectl prints; it does not deny the request."""
    return Warned(text)


def denied(message: str) -> Denial:
    """Deny the request for a reason that is not about one field."""
    return Denial(message)


def audit(key: str, value: str) -> AuditAnnotation:
    """Add an annotation to the API server's audit log; the server prefixes the key with the webhook's name."""
    problems = names.qualified_name(key)
    if problems or "/" in key:
        problem = (
            problems[0] if problems else "the server puts the webhook's name before it: leave the prefix out"
        )
        raise DeclarationError(f"audit({key!r}): {problem}")
    return AuditAnnotation(key, value)
