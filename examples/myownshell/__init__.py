"""MyOwnShell: an owned Deployment, kept as the resource says, with finalizers on both."""

from myownshell.controller import operator
from myownshell.kinds import MyOwnShell, ShellSpec, ShellStatus

__all__ = ["MyOwnShell", "ShellSpec", "ShellStatus", "operator"]
