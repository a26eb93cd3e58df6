"""Tables as `kubectl get` prints them, cut to the width of a terminal."""

from typing import Any

from rich.table import Table

GAP = 2
LEAST = 4
Wire = dict[str, Any]


def table(title: str, rows: Wire, width: int) -> Table:
    """Draw the server's own table; where it is too wide, the widest columns are cut."""
    shown = [
        (number, column) for number, column in enumerate(rows["columnDefinitions"]) if not column["priority"]
    ]
    heads = [column["name"].upper() for _, column in shown]
    cells = [[_cell(row["cells"][number]) for number, _ in shown] for row in rows["rows"]]
    drawn = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for head, size in zip(heads, fitted([heads, *cells], width), strict=True):
        drawn.add_column(head, no_wrap=True, overflow="ellipsis", width=size)
    for line in cells:
        drawn.add_row(*line)
    return drawn


def fitted(lines: list[list[str]], width: int) -> list[int]:
    """Choose the columns' widths: as wide as their cells, less from the widest until all fit."""
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    while sum(sizes) + GAP * len(sizes) > width and max(sizes) > LEAST:
        sizes[sizes.index(max(sizes))] -= 1
    return sizes


def _cell(value: Any) -> str:
    return "<none>" if value is None else str(value)
