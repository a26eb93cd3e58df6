"""What a server takes from its clients before it says no, and how long it waits for them."""

from msgspec import Struct

KIB = 1024
MIB = 1024 * KIB


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds in bytes, counts and seconds; the body of a request is bounded by its handler."""

    head: int = 64 * KIB
    """Bytes of a request line with its fields; a field counts for 32 more, so that many small ones are many."""
    pipelined: int = 16
    """Requests of one connection that wait for their turn before no more is read."""
    discarded: int = 64 * MIB
    """Bytes of a refused request that are read and thrown away before the connection is cut."""
    held: int = 256 * MIB
    """Bytes of bodies that all connections hold together."""
    connections: int = 256
    """Connections at once: asyncio keeps a quarter of a megabyte for each that speaks TLS."""
    newcomer_seconds: float = 1.0
    """How long a connection that never asked for anything may be silent before it makes room for one that waits."""
    idle_seconds: float = 90.0
    """How long a connection may be silent between two requests."""
    receive_seconds: float = 30.0
    """How long a request may take to come in, and a new connection to send its first one."""
    blocked_seconds: float = 30.0
    """How long a client may leave what it was sent unread."""
    linger_seconds: float = 5.0
    """How long a refused client may go on sending: closing on unread bytes could destroy the answer."""
