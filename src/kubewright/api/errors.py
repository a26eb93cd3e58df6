"""The root of every exception this package raises, and the ones of the pure layer.

KubewrightError
├── DeclarationError    a class or declaration that cannot be
├── DecodeError         wire data that does not fit its type
├── QuantityError       text that is no quantity
├── DurationError       text that is no duration
├── SelectorError       text that is no label or field selector
└── PatchError          a patch that does not apply
"""

from collections.abc import Iterator
from typing import cast


class KubewrightError(Exception):
    """Root of everything kubewright raises on purpose."""


class DeclarationError(KubewrightError, TypeError):
    """A class or a declaration that cannot be; the message names it and the way out."""


class DecodeError(KubewrightError, ValueError):
    """JsonObject data that does not fit its type; `path` says where: `spec.ports[0].name`."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class QuantityError(KubewrightError, ValueError):
    """Text that is no Kubernetes quantity."""


class DurationError(KubewrightError, ValueError):
    """Text that is no Go duration."""


class SelectorError(KubewrightError, ValueError):
    """Text or structure that is no label or field selector."""


class PatchError(KubewrightError, ValueError):
    """A patch that is malformed or does not apply to its document."""


def leaves(failure: BaseException) -> Iterator[BaseException]:
    """Give the failures of a group one by one, those of groups within it too; one that is no group is its own."""
    if not isinstance(failure, BaseExceptionGroup):
        yield failure
        return
    for part in cast("BaseExceptionGroup[BaseException]", failure).exceptions:
        yield from leaves(part)
