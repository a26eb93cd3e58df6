"""Containers behind the API: logs, exec, attach and ports, carried between the client and whoever runs the containers.

`containers` is the face of who runs them, `logs` and `commands` are the subresources, `session` is the connection
between client and command, `tunnel` (with `spdy`) that between client and ports; both stand on `websocket` and `frames`.
"""

from kubewright.devserver.streaming.commands import command_endpoints
from kubewright.devserver.streaming.containers import (
    CommandRequest,
    Containers,
    Dial,
    LogRequest,
    OutputStream,
    Run,
    Size,
    Terminal,
)
from kubewright.devserver.streaming.logs import log_endpoint

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
