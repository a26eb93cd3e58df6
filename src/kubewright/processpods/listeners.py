"""Which process listens on a port of this machine: one of a Pod, or another program on all addresses."""

import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kubewright.processpods.orphans import MARK

_PROCESSES = Path("/proc")
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"
_MAPPED = "0000000000000000FFFF0000"
"""How IPv4 addresses begin in the table of IPv6."""


def may_listen(address: str, port: int, mark: str) -> bool:
    """Return True if only processes of a Pod listen on a port of its address, or on that port of all addresses.

    Return True if nothing listens: connecting fails then. Blocks. Without /proc nothing is known: return True.
    """
    tables = [Path(_PROCESSES, "net", name) for name in _TABLES]
    if not any(table.is_file() for table in tables):
        return True
    own = _hexadecimal(address)
    strangers: set[str] = set()
    for where, number in _listening(tables, port):
        if where in (own, f"{_MAPPED}{own}"):
            return True
        if not where.strip("0"):
            strangers.add(number)
    return not strangers or any(number in strangers for number in _sockets(mark))


def _hexadecimal(address: str) -> str:
    """Write an IPv4 address as the tables do: a number in the byte order of the machine."""
    packed = ipaddress.IPv4Address(address).packed
    return (packed[::-1] if sys.byteorder == "little" else packed).hex().upper()


def _listening(tables: list[Path], port: int) -> Iterator[tuple[str, str]]:
    """Return the addresses with a listener on a port, and the inode of each socket."""
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            where, _, number = fields[1].partition(":")
            if fields[3] == _LISTENS and int(number, 16) == port:
                yield where, fields[9]


def _sockets(mark: str) -> Iterator[str]:
    """Return the inodes of the sockets of processes whose mark starts with a text."""
    beginning = f"{MARK}={mark}".encode()
    for number in filter(str.isdecimal, os.listdir(_PROCESSES)):
        process = _PROCESSES / number
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            if not any(item.startswith(beginning) for item in variables):
                continue
            links = [os.readlink(process / "fd" / name) for name in os.listdir(process / "fd")]
        except OSError:
            # It has ended, or is not ours to look into.
            continue
        yield from (link[8:-1] for link in links if link.startswith("socket:["))
