"""What admission looks at: one write before it happens, and the face that admission plugs into."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from kubewright.api import GroupVersionKind
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.request.identity import User


class GroupVersionResource(NamedTuple):
    """A resource as paths name it."""

    group: str
    version: str
    resource: str


@dataclass(slots=True)
class Memory:
    """What a plugin remembers from its first round for its second, which sees what others changed since."""

    invoked: set[str] = field(default_factory=set[str])
    """Who was asked and wants to be asked again when somebody changes the object after that."""
    due: set[str] = field(default_factory=set[str])
    output: JsonObject | None = None
    """The object as the last of them left it."""

    def changed(self) -> None:
        """Note that somebody has changed the object: those asked before are due again."""
        self.due |= self.invoked
        self.invoked = set[str]()


@dataclass(slots=True)
class Reinvocation:
    """Whether mutating admission goes round a second time, and what its parts remember of the first."""

    second: bool = False
    wanted: bool = False
    policies: Memory = field(default_factory=Memory)
    webhooks: Memory = field(default_factory=Memory)


@dataclass(slots=True)
class Operation:
    """One write on its way; mutating admission changes `object` in place."""

    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    name: str
    namespace: str
    object: JsonObject | None
    old_object: JsonObject | None
    options: JsonObject | None
    """What the client asked for beside the object; connections have none."""
    user: User
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list[str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    """What plugins want to be remembered of the decision, for the audit log."""
    reinvocation: Reinvocation = field(default_factory=Reinvocation)


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
