"""What admission looks at: one write before it happens, and the face that admission plugs into."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from kubewright.api import GroupVersionKind

from .identity import User
from .objects import Wire


class GroupVersionResource(NamedTuple):
    """A resource as paths name it."""

    group: str
    version: str
    resource: str


@dataclass(slots=True)
class Operation:
    """One write on its way; mutating admission changes `object` in place."""

    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    name: str
    namespace: str
    object: Wire | None
    old_object: Wire | None
    options: Wire
    user: User
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list[str])


class Admission(Protocol):
    """Change or refuse writes."""

    async def admit(self, operation: Operation) -> None:
        """Change the object in place, or raise a StatusError."""
        ...

    async def validate(self, operation: Operation) -> None:
        """Raise a StatusError to refuse the write."""
        ...


class OpenAdmission:
    """Let every write pass unchanged."""

    async def admit(self, operation: Operation) -> None:
        """Change nothing."""

    async def validate(self, operation: Operation) -> None:
        """Refuse nothing."""
