"""The base of all exceptions of this package, and the exceptions of the API types.

KubewrightError
├── DeclarationError    an invalid class or declaration
├── DecodeError         wire data that does not fit its type
├── QuantityError       an invalid quantity
├── DurationError       an invalid duration
├── SelectorError       an invalid label or field selector
└── PatchError          a patch that does not apply
"""

from collections.abc import Iterator
from typing import cast


class KubewrightError(Exception):
    """Base of all exceptions of kubewright."""


class DeclarationError(KubewrightError, TypeError):
    """A class or a declaration is invalid; the message names it and contains the fix."""


class DecodeError(KubewrightError, ValueError):
    """JSON that does not match the class; `path` is the field, like `spec.ports[0].name`."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class QuantityError(KubewrightError, ValueError):
    """The text is not a Kubernetes quantity."""


class DurationError(KubewrightError, ValueError):
    """The text is not a Go duration."""


class SelectorError(KubewrightError, ValueError):
    """The value is not a label or field selector."""


class PatchError(KubewrightError, ValueError):
    """The patch is malformed or does not apply to its document."""


def leaves(failure: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group and of nested groups, or the exception itself if it is not a group."""
    if not isinstance(failure, BaseExceptionGroup):
        yield failure
        return
    for part in cast("BaseExceptionGroup[BaseException]", failure).exceptions:
        yield from leaves(part)
