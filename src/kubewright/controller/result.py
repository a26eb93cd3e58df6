"""What a reconciler answers."""

from datetime import timedelta

import msgspec


class Result(msgspec.Struct, frozen=True):
    """Say when to look at the object again; returning None means: when something changes.

    The delay is stretched by up to a tenth, so that objects made together drift apart.
    """

    after: timedelta
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.after <= timedelta(0):
            raise ValueError(
                f"Result(after={self.after!r}): the delay must be positive; return None when done"
            )
