"""Tables as `kubectl get` prints them, truncated to the terminal's width; recent changes are highlighted."""

import time
from typing import Any

from rich.table import Table
from rich.text import Text

LEAST = 4
FRESH = 3.0
"""Seconds for which a change is highlighted."""
JsonObject = dict[str, Any]


class Tables:
    """Draw the server's tables, and highlight cells that changed since the last time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], tuple[str, float]] = {}

    def draw(self, kind: str, rows: JsonObject, width: int) -> Table:
        """Return a table whose first column has the kind as its heading; wide columns are truncated."""
        shown = [(at, it["name"]) for at, it in enumerate(rows["columnDefinitions"]) if not it["priority"]]
        heads = [kind.upper(), *(name.upper() for _, name in shown[1:])]
        cells = [[_cell(row["cells"][at]) for at, _ in shown] for row in rows["rows"]]
        sizes, gap = fitted([heads, *cells], width)
        drawn = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for head, size in zip(heads, sizes, strict=True):
            drawn.add_column(head, no_wrap=True, overflow="ellipsis", width=size)
        for line in cells:
            drawn.add_row(
                *(self._text(kind, line[0], head, it) for head, it in zip(heads, line, strict=True))
            )
        return drawn

    def _text(self, kind: str, name: str, head: str, value: str) -> Text:
        now = time.monotonic()
        before, since = self._seen.get((kind, name, head), (None, now - FRESH))
        if value != before:
            # A new row is not a change, and an age changes all the time.
            since = now if before is not None and head != "AGE" else now - FRESH
            self._seen[kind, name, head] = (value, since)
        return Text(value, style="bold yellow" if now - since < FRESH else "")


def fitted(lines: list[list[str]], width: int) -> tuple[list[int], int]:
    """Return the columns' widths and the gap between them; the widest columns are narrowed first."""
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    gap = 2 if sum(sizes) + 2 * (len(sizes) - 1) <= width else 1
    while sum(sizes) + gap * (len(sizes) - 1) > width and max(sizes) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes, gap


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
