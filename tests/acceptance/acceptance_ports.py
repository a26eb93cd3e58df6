"""Ports that are listened at, left and listened at again."""

import contextlib
import random
import socket


def lasting_port() -> int:
    """Find a port that nobody takes while it is left: outgoing connections are given those above, and no other."""
    for port in random.sample(range(20000, 30000), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
