"""What an admission function finds: field errors, refusals, warnings, notes for the audit log."""

import msgspec

from kubewright.api import DeclarationError, FieldError, names


class Denial(msgspec.Struct, frozen=True):
    """A refusal that is not about one field."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


class Warned(msgspec.Struct, frozen=True):
    """A text that the writer of the object is shown; it refuses nothing."""

    text: str


class AuditAnnotation(msgspec.Struct, frozen=True):
    """A note for the API server's audit log."""

    key: str
    value: str


Problem = FieldError | Denial | Warned | AuditAnnotation
"""What a validating webhook returns or yields; made by the functions below."""


def warning(text: str) -> Warned:
    """Warn the writer, as kubectl prints it, and let the object pass."""
    return Warned(text)


def denied(message: str) -> Denial:
    """Refuse for a reason that is not about one field."""
    return Denial(message)


def audit(key: str, value: str) -> AuditAnnotation:
    """Add an annotation to the API server's audit log; the server prefixes the key with the webhook's name."""
    problems = names.qualified_name(key)
    if problems or "/" in key:
        said = (
            problems[0] if problems else "the server puts the webhook's name before it: leave the prefix out"
        )
        raise DeclarationError(f"audit({key!r}): {said}")
    return AuditAnnotation(key, value)
