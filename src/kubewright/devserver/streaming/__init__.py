"""Containers behind the API: logs, exec and attach, carried between the client and whoever runs the containers.

`containers` is the face of who runs them, `logs` and `commands` are the subresources, `session` and `frames` the
WebSocket between client and command.
"""

from .commands import command_endpoints
from .containers import CommandRequest, Containers, LogRequest, OutputStream, Run, Size, Terminal
from .logs import log_endpoint

__all__ = [
    "CommandRequest",
    "Containers",
    "LogRequest",
    "OutputStream",
    "Run",
    "Size",
    "Terminal",
    "command_endpoints",
    "log_endpoint",
]
