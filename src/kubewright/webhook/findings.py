"""What an admission function finds: field errors, refusals, warnings, notes for the audit log."""

from dataclasses import dataclass

from kubewright.api import DeclarationError, FieldError, names


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal that is not about one field."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


@dataclass(frozen=True, slots=True)
class Warned:
    """A text that the writer of the object is shown; it refuses nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """A note for the API server's audit log."""

    key: str
    value: str


Problem = FieldError | Denial | Warned | AuditAnnotation


def warning(text: str) -> Warned:
    """Warn the writer, as kubectl prints it, and let the object pass."""
    return Warned(text)


def denied(message: str) -> Denial:
    """Refuse for a reason that is not about one field."""
    return Denial(message)


def audit(key: str, value: str) -> AuditAnnotation:
    """Note something in the API server's audit log; the webhook's name is put before the key."""
    troubles = names.qualified_name(key)
    if troubles or "/" in key:
        said = (
            troubles[0] if troubles else "the server puts the webhook's name before it: leave the prefix out"
        )
        raise DeclarationError(f"audit({key!r}): {said}")
    return AuditAnnotation(key, value)
