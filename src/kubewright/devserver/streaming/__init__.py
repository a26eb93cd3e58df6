"""Containers behind the API: logs, exec, attach and ports, carried between the client and whoever runs the containers.

`containers` is the face of who runs them, `logs` and `commands` are the subresources, `session` is the connection
between client and command, `tunnel` (with `spdy`) that between client and ports; both stand on `websocket` and `frames`.
"""

from .commands import command_endpoints
from .containers import CommandRequest, Containers, Dial, LogRequest, OutputStream, Run, Size, Terminal
from .logs import log_endpoint

__all__ = [
    "CommandRequest",
    "Containers",
    "Dial",
    "LogRequest",
    "OutputStream",
    "Run",
    "Size",
    "Terminal",
    "command_endpoints",
    "log_endpoint",
]
