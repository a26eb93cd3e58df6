"""Conflicts: fields that an apply would take from other managers."""

from dataclasses import dataclass

from kubewright.api import KubewrightError
from kubewright.devserver.merge.elements import path_text


@dataclass(frozen=True, slots=True)
class OwnershipConflict:
    """One field that another manager owns: the manager's name, as kube-apiserver prints it, and the path."""

    manager: str
    path: tuple[str, ...]

    @property
    def field(self) -> str:
        """Write the path as the Status does: `.spec.containers[name="c"].image`."""
        return path_text(self.path)

    @property
    def message(self) -> str:
        """Return the message of the cause in a Status."""
        return f"conflict with {self.manager}"


class ApplyConflicts(KubewrightError):
    """Fields of an unforced apply that other managers own; the text is the Status message."""

    def __init__(self, conflicts: list[OwnershipConflict]) -> None:
        super().__init__(_message(conflicts))
        self.conflicts = conflicts


def _message(conflicts: list[OwnershipConflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: {conflicts[0].message}: {conflicts[0].field}"
    lines: list[str] = []
    for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {conflict.field}" for conflict in conflicts if conflict.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
