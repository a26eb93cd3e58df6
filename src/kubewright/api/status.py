"""`Status`: the response to a failed request, and to some deletions."""

import msgspec

from kubewright.api.model import Model


class StatusCause(Model, builtin=True):
    """One cause of a failure, often one field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Model, builtin=True):
    """The object of a failure, and its causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: int = 0


class Status(Model, builtin=True):
    """The outcome of a request: `reason` is for programs, `message` for people."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails = msgspec.field(default_factory=StatusDetails)
    code: int = 0
