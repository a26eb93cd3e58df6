"""Sizes and costs that are known only as a least and a greatest value."""

import math
from typing import NamedTuple

UNBOUNDED = 2**64 - 1


class Range(NamedTuple):
    """A size or a cost between a least and a greatest value."""

    low: int = 0
    high: int = 0

    def plus(self, other: "Range") -> "Range":
        """Add two ranges."""
        return Range(capped(self.low + other.low), capped(self.high + other.high))

    def times(self, other: "Range") -> "Range":
        """Multiply two ranges."""
        return Range(capped(self.low * other.low), capped(self.high * other.high))

    def scaled(self, factor: float) -> "Range":
        """Multiply by a factor, rounding up."""
        return Range(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: "Range") -> "Range":
        """Return a range that covers both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def capped(number: int) -> int:
    """Keep a number within 64 bits."""
    return min(number, UNBOUNDED)


def _scaled(number: int, factor: float) -> int:
    if number > 0 and factor > 0 and float(number) > UNBOUNDED / factor:
        return UNBOUNDED
    return capped(math.ceil(float(number) * factor))


UNKNOWN = Range(0, UNBOUNDED)
ONE = Range(1, 1)
