"""Ranges of a hash over which objects are divided, with the hash of KEP-5866 (server-side sharded list and watch).

The hash is the 64-bit FNV-1a of a text: an object's uid or namespace. `Shards` divides all hashes into half-open ranges of
the same size, numbered from 0. `shard_selector` writes ranges as the `shardSelector` of a list or watch, with which a
server that has the feature gate ShardedListAndWatch selects by the same hash.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Literal, get_args

import msgspec

from kubewright.api.errors import DeclarationError
from kubewright.api.failures import ConfigError

ShardField = Literal["uid", "namespace"]
"""The field of an object's metadata whose hash chooses its shard."""
HASHES = 2**64
MOST_SHARDS = 256
MOST_RANGES = 32
"""Ranges in one selector: a longer one would not fit into the URL that some proxies accept."""

_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, HASHES - 1
_FIELDS: tuple[ShardField, ...] = get_args(ShardField)


@lru_cache(maxsize=65536)
def shard_hash(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text in UTF-8."""
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value


class HashRange(msgspec.Struct, frozen=True):
    """The hashes from `start` up to, but not including, `end`."""

    start: int
    end: int

    def __contains__(self, value: int) -> bool:
        return self.start <= value < self.end


def joined_ranges(ranges: Iterable[HashRange]) -> list[HashRange]:
    """Return the same hashes in as few ranges as possible, in order."""
    found: list[HashRange] = []
    for one in sorted(ranges, key=lambda one: one.start):
        if found and one.start <= found[-1].end:
            found[-1] = HashRange(found[-1].start, max(found[-1].end, one.end))
        elif one.start < one.end:
            found.append(one)
    return found


def remaining_ranges(ranges: Iterable[HashRange]) -> list[HashRange]:
    """Return the hashes that are in none of the ranges."""
    found: list[HashRange] = []
    start = 0
    for one in joined_ranges(ranges):
        if start < one.start:
            found.append(HashRange(start, one.start))
        start = one.end
    return [*found, HashRange(start, HASHES)] if start < HASHES else found


def covering_ranges(ranges: Iterable[HashRange]) -> list[HashRange]:
    """Return at least these hashes in at most MOST_RANGES ranges: the narrowest gaps are filled."""
    found = joined_ranges(ranges)
    while len(found) > MOST_RANGES:
        pairs = range(len(found) - 1)
        gap = min(pairs, key=lambda index: found[index + 1].start - found[index].end)
        found[gap : gap + 2] = [HashRange(found[gap].start, found[gap + 1].end)]
    return found


def shard_selector(by: ShardField, ranges: Iterable[HashRange]) -> str:
    """Return the `shardSelector` of these ranges; empty if they have all hashes."""
    found = joined_ranges(ranges)
    if found == [HashRange(0, HASHES)]:
        return ""
    return " || ".join(
        f"shardRange(object.metadata.{by}, '0x{one.start:016x}', '0x{one.end:016x}')" for one in found
    )


class Shards(msgspec.Struct, frozen=True):
    """Divide the objects of an operator over its replicas: `Shards(8)`, or `Shards(8, by="namespace")`.

    `count` ranges of the hash of each object's uid or namespace; a replica works on the ranges whose leases it holds. A
    child is in the range of its owner. Choose more ranges than replicas, such as two to four times as many, so that
    each replica gets about the same number. Everything else is in "Run several replicas at once" in the documentation.
    """

    count: int
    by: ShardField = "uid"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int):  # pyright: ignore[reportUnnecessaryIsInstance]  (authors need no type checker)
            raise DeclarationError(f"Shards({self.count!r}): expected a whole number from 1 to {MOST_SHARDS}")
        if not 1 <= self.count <= MOST_SHARDS:
            raise DeclarationError(f"Shards({self.count}): expected a number from 1 to {MOST_SHARDS}")
        if self.by not in _FIELDS:
            raise DeclarationError(
                f"Shards({self.count}, by={self.by!r}): expected {' or '.join(map(repr, _FIELDS))}"
            )

    @property
    def name(self) -> str:
        """Return the name of this division, which is part of the names of its leases: `uid-8`."""
        return f"{self.by}-{self.count}"

    def range_of(self, number: int) -> HashRange:
        """Return the hashes of one shard."""
        return HashRange(-(-number * HASHES // self.count), -(-(number + 1) * HASHES // self.count))

    def ranges_of(self, numbers: Collection[int]) -> list[HashRange]:
        """Return the hashes of some shards in as few ranges as possible."""
        return joined_ranges(self.range_of(number) for number in numbers)

    def number_of(self, text: str) -> int:
        """Return the shard of a uid or namespace."""
        return shard_hash(text) * self.count >> 64

    def __str__(self) -> str:
        return f"{self.count} shards by {self.by}"


def parse_shards(text: str) -> Shards:
    """Read the value of an option: `8` or `8,namespace`; raise ConfigError for anything else."""
    count, _, by = text.partition(",")
    if not re.fullmatch(r"[0-9]{1,4}", count) or by not in ("", *_FIELDS):
        raise ConfigError(f"--shards {text}: expected a number, as in 8 (by uid) or 8,namespace")
    try:
        return Shards(int(count), "namespace" if by == "namespace" else "uid")
    except DeclarationError as error:
        raise ConfigError(f"--shards {text}: {str(error).partition(': ')[2]}") from None
