"""Namespaces on their way out: what cannot be made there any more is no error."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeVar

from kubewright.api import Forbidden, NotFound, Object
from kubewright.controller import Context, Result

T = TypeVar("T", bound=Object)

CAUSE = "NamespaceTerminating"


def is_leaving(error: Exception) -> bool:
    """Tell whether a write failed because its namespace goes, or has gone."""
    if isinstance(error, Forbidden):
        return any(cause.reason == CAUSE for cause in error.status.details.causes)
    return isinstance(error, NotFound) and error.status.message.startswith("namespaces ")


def unless_leaving(
    reconcile: Callable[[T, Context], Awaitable[Result | None]],
) -> Callable[[T, Context], Awaitable[Result | None]]:
    """Decorate a reconciler: it is done where the namespace goes."""

    @wraps(reconcile)
    async def guarded(subject: T, ctx: Context) -> Result | None:
        try:
            return await reconcile(subject, ctx)
        except (Forbidden, NotFound) as error:
            if is_leaving(error):
                return None
            raise

    return guarded
