"""How much a server accepts from its clients, and how long it waits for them."""

from msgspec import Struct

KIB = 1024
MIB = 1024 * KIB


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds in bytes, counts and seconds; the body of a request is bounded by its handler."""

    head: int = 64 * KIB
    """Bytes of a request line and its header fields; each field counts 32 more, so that many small ones add up."""
    pipelined: int = 16
    """Requests of one connection that wait to be answered before no more bytes are read from it."""
    discarded: int = 64 * MIB
    """Bytes of a refused request that are read and dropped before the connection is aborted."""
    held: int = 256 * MIB
    """Bytes of request bodies of all connections together."""
    connections: int = 256
    """Open connections: asyncio keeps a quarter of a megabyte for each one with TLS."""
    eviction_seconds: float = 1.0
    """Age at which an unfinished request, handshake or response may be evicted for a new connection."""
    idle_seconds: float = 90.0
    """How long a connection may be idle between two requests."""
    receive_seconds: float = 30.0
    """How long a request may take to arrive, and a new connection to send its first one."""
    blocked_seconds: float = 30.0
    """How long a client may leave a response unread."""
    linger_seconds: float = 5.0
    """How long a refused client may go on sending: closing on unread bytes could destroy the response."""
    half_closed_seconds: float = 30.0
    """How long responses are still prepared for a client that has closed its sending side: it may be gone."""
