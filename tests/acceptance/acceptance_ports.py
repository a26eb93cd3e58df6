"""Ports for servers that stop and listen again at the same port."""

import contextlib
import random
import socket


def lasting_port() -> int:
    """Return a port that stays free while its server is away: outgoing connections are given higher ones.

    The choice is the system's own: pytest-randomly seeds `random` alike in each worker, and all would choose alike.
    """
    for port in random.SystemRandom().sample(range(20000, 30000), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
