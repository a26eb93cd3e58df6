"""Draw the results of the benchmarks: a picture of each, and the table in docs/performance.md.

The results are the objects that `scripts/bench NAME --json` prints, in benchmarks/results/NAME.json; `scripts/measure` writes
them. With `--check` nothing is written; the command fails if a picture or the table is out of date.

The table has the spread of our figures only; the pictures have all. A bar is relative to the longest one of its row, because rows have different units. A row's goal, if it has one, is beside its
title, in red if it is missed.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images" / "benchmarks"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results: begin, written by tools/draw_benchmarks.py -->", "<!-- results: end -->"

OURS = "kubewright"
WIDTH, LABELS, BARS = 860, 210, 380
TITLE, BAR, GAP = 24, 18, 10
COLOURS = {OURS: "#2563eb"}
OTHER = "#94a3b8"

Row = Mapping[str, Any]


def figures(row: Row) -> dict[str, float]:
    """Return the median of each contender, ours first."""
    ours = {} if row[OURS] is None else {OURS: row[OURS]}
    return {**ours, **row["peers"]}


def number(value: float) -> str:
    """Write a figure with three digits, and thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def measured(row: Row, name: str) -> str:
    """Write the median of a contender with its unit and its spread."""
    low, high = row["spread"].get(name) or (0, 0)
    spread = f" ({number(low)} to {number(high)})" if high > low else ""
    return f"{number(figures(row)[name])} {row['unit']}{spread}"


def compared_first(row: Row) -> dict[str, float]:
    """Return the medians of the peers, first that of the one that the ratio is about."""
    peers: dict[str, float] = row["peers"]
    return dict(sorted(peers.items(), key=lambda peer: peer[0] != row.get("against")))


def outcome(row: Row) -> str:
    """Write the goal of a row, and whether it is met."""
    if not row["goal"]:
        return ""
    return row["goal"] if row["met"] is not False else f"{row['goal']}: missed"


def picture(result: Mapping[str, Any]) -> str:
    """Return the picture of one benchmark as SVG."""
    parts: list[str] = []
    top = GAP
    for row in result["rows"]:
        goal = outcome(row)
        style = ' class="missed"' if row["met"] is False else ""
        suffix = f"<tspan{style}>, goal: {escape(goal)}</tspan>" if goal else ""
        title = f"{row['work']}: {row['metric']}"
        parts.append(f'<text x="8" y="{top + 14}" class="title">{escape(title)}{suffix}</text>')
        top += TITLE
        found = figures(row)
        longest = max((abs(value) for value in found.values()), default=0) or 1
        for name, value in found.items():
            length = max(1, round(abs(value) / longest * BARS))
            colour = COLOURS.get(name, OTHER)
            parts += [
                f'<text x="{LABELS - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{LABELS}" y="{top + 2}" width="{length}" height="{BAR - 4}" fill="{colour}"/>',
                f'<text x="{LABELS + length + 6}" y="{top + 13}">{escape(measured(row, name))}</text>',
            ]
            top += BAR
        top += GAP
    lines = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" '
        f'role="img" aria-label="{escape(result["bench"])}">\n'
        "<style>text { font: 12px sans-serif; fill: #1e293b } .title { font-weight: bold } "
        ".missed { fill: #b91c1c }</style>\n"
        f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n{lines}\n</svg>\n'
    )


def table(results: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table and the pictures."""
    yield "| benchmark | work | kubewright | compared with | ratio | goal |"
    yield "|---|---|---|---|---|---|"
    for result in results:
        for row in result["rows"]:
            ours = measured(row, OURS) if row[OURS] is not None else ""
            peers = ", ".join(
                f"{name} {number(value)} {row['unit']}" for name, value in compared_first(row).items()
            )
            ratio = "" if row["ratio"] is None else number(row["ratio"])
            goal = outcome(row).replace("missed", "**missed**")
            cells = (f"`{result['bench']}`", f"{row['work']}: {row['metric']}", ours, peers, ratio, goal)
            yield f"| {' | '.join(cells)} |"
    for result in results:
        machine, name = result["machine"], result["bench"]
        yield ""
        yield f"### `scripts/bench {name}`"
        yield ""
        runs = min((row["runs"] for row in result["rows"]), default=0)
        yield (
            f"Medians of {runs} alternating runs on {machine['cpu']}, {machine['cores']} cores, Python "
            f"{machine['python']}, load {machine['load']}." + "".join(f" {note}." for note in result["notes"])
        )
        yield ""
        yield f"![Results of {name}](images/benchmarks/{name}.svg)"


def files() -> dict[Path, str]:
    """Return the text of each file that the results lead to."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    found = {IMAGES / f"{result['bench']}.svg": picture(result) for result in results}
    return {**found, PAGE: f"{before}{BEGIN}\n\n" + "\n".join(table(results)) + f"\n\n{END}{after}"}


def main() -> int:
    written = files()
    if "--check" in sys.argv[1:]:
        stale = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run tools/draw_benchmarks.py", file=sys.stderr)
        return 1 if stale else 0
    IMAGES.mkdir(parents=True, exist_ok=True)
    for path, text in written.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
