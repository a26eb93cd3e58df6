"""Exceptions of controllers, and exceptions that a reconciler raises to control retries.

KubewrightError
├── TerminalError           raised by an author: report the failure, do not retry it
├── RetryLater              raised by an author: an expected failure, retried without a traceback
│   └── DisruptionDeferred  a disruptive write that waits for its window or for a slot of the budget
├── UndeclaredAccess        a kind or verb that the controller's declaration does not name
├── OwnedByAnother          an existing object that the reconciled object does not control, so it is not applied
├── CannotOwn               a child that its owner may not own: another namespace, or cluster-scoped
├── ContestedField          a field that another manager keeps changing, so an apply waits for its backoff
├── ObjectTerminating       an object that is being deleted, so an apply of it would not last
├── StaleObject             a reconciled object that the server no longer has, or has marked for deletion
└── ChildRecreateBackoff    a child that was deleted each time right after it was created, so its creation waits for a backoff
"""

from datetime import timedelta

from kubewright.api import KubewrightError


class TerminalError(KubewrightError):
    """Raise it when trying again cannot help; the failure is counted and logged, not retried."""


class RetryLater(KubewrightError):
    """Raise it for an expected failure: `raise kw.RetryLater("the accounts service is away", after=30)`.

    The reconcile is tried again after `after`, a timedelta or seconds, to which up to a tenth is added at random as to
    `Result.after`; without `after` the controller's backoff decides, which grows until a reconcile succeeds. A change of
    the object does not wait for either. The log has one line with the reason and the time of the next try, without a
    traceback, and the metric `controller_runtime_reconcile_total` counts it with `result="requeue"`, not as an error.
    """

    def __init__(self, reason: str, *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not seconds > 0:
            raise ValueError(
                f"RetryLater(after={after!r}): the delay must be positive; leave it out for the controller's backoff"
            )
        self.after: timedelta | None = None if seconds is None else timedelta(seconds=seconds)
        """The time until the next try; None for the controller's backoff."""


class DisruptionDeferred(RetryLater):
    """A disruptive write has to wait for its window or for a slot of the budget; the reconcile is tried again then."""


class UndeclaredAccess(KubewrightError):
    """The controller does not declare the kind or verb; the message contains the line to add."""


class OwnedByAnother(KubewrightError):
    """An existing object that the reconciled object does not control; `ctx.apply(..., adopt=True)` may take it over."""


class CannotOwn(KubewrightError):
    """The child cannot have an owner reference: it is in another namespace, or cluster-scoped."""


class ObjectTerminating(KubewrightError):
    """The object to apply is being deleted; the reconcile is retried until it is gone."""


class ContestedField(KubewrightError):
    """Another field manager keeps changing a field; the object is reconciled again after the backoff."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after: float = after
        """Seconds until the field is applied again."""


class StaleObject(KubewrightError):
    """A reconciled object that the server no longer has, or has marked for deletion; retried until the cache knows."""


class ChildRecreateBackoff(KubewrightError):
    """A child that was deleted each time right after it was created; retried after `after` seconds."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after
