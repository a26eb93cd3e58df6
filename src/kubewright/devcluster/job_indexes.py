"""Completion indexes of a Job as its status writes them: `0-2,5`."""

from collections.abc import Iterable, Iterator


def parse_indexes(text: str, below: int) -> set[int]:
    """Read the indexes of a Job that has so many; those it does not have, and what nobody can read, count as none."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first) + 1, below)))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Write indexes, runs of three or more as ranges."""
    return ",".join(
        f"{first}-{last}" if last > first + 1 else ",".join(map(str, range(first, last + 1)))
        for first, last in _runs(sorted(set(indexes)))
    )


def _runs(ordered: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = None
    for index in ordered:
        if start is None or previous is None:
            start = previous = index
        elif index == previous + 1:
            previous = index
        else:
            yield start, previous
            start = previous = index
    if start is not None and previous is not None:
        yield start, previous
