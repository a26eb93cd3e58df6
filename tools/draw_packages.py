"""Draw the packages of kubewright and their imports: `python tools/draw_packages.py` writes docs/images/packages.svg.

With `--check` nothing is written; the command fails if the picture is out of date.

A package is drawn above all that it imports. An arrow that follows from others is left out: if `a` imports `b` and `b`
imports `c`, then `a -> c` is not drawn, whether or not `a` imports `c` itself. The layout is the usual one for layered
graphs: a long arrow gets an invisible node in each row that it passes, and the nodes of a row are sorted by the middle
of their neighbours. Everything is sorted by name first, so the same imports always give the same picture.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "packages.svg"

GROUPS: Mapping[str, Sequence[str]] = {
    "commands and tools": ("cli", "envtest", "generate", "replay", "scaffold", "testing", "ui", "why"),
    "embedded cluster": ("devcluster", "devserver", "processpods"),
    "runtime": (
        *("cache", "client", "controller", "controller.applying", "controller.running", "election", "events"),
        *("journal", "manager", "serving", "webhook", "workqueue"),
    ),
    "public names": (
        "admission",
        "conditions",
        "disruption",
        "errors",
        "hashing",
        "packaging",
        "predicates",
        "program",
        "rates",
        "shards",
        "namespaces",
    ),
    "base": (
        *("api", "backoff", "certificates", "documents", "guards", "http", "metrics", "schema", "tracebacks"),
    ),
}
LIGHT = {
    "commands and tools": ("#ede7f6", "#5e35b1"),
    "embedded cluster": ("#e0f2f1", "#00796b"),
    "runtime": ("#e3f2fd", "#1565c0"),
    "public names": ("#fff3e0", "#ef6c00"),
    "base": ("#f1f3f4", "#5f6368"),
}
DARK = {
    "commands and tools": ("#2f2545", "#b39ddb"),
    "embedded cluster": ("#12332f", "#4db6ac"),
    "runtime": ("#14293d", "#64b5f6"),
    "public names": ("#3b2a14", "#ffb74d"),
    "base": ("#2a2d31", "#9aa0a6"),
}
# Parts of a package that have a box of their own, by module: in `controller` these are the declarations and pure
# functions, the decision whether an apply is sent, and what runs.
PARTS = {
    "controller.applying": "controller.applying",
    "controller.managed_fields": "controller.applying",
    "controller.running": "controller.running",
}
WIDTH, HEIGHT, GAP, ROW = 104, 32, 18, 78
PASSING = 14
"""Width of the place that an arrow takes in a row it passes."""
MARGIN = 24
SWEEPS = 24

Graph = dict[str, set[str]]


class Node(NamedTuple):
    """A package, or the place where the arrow between two packages passes a row."""

    name: str
    row: int
    target: str = ""

    @property
    def width(self) -> int:
        """Return the width that the node takes in its row."""
        return PASSING if self.target else max(WIDTH, 7 * len(self.name) + 20)


def imports() -> Graph:
    """Return which packages each package imports."""
    graph = grimp.build_graph("kubewright", cache_dir=None)
    found: Graph = {}
    for module in sorted(graph.modules):
        package = _package(module)
        if package:
            imported = {_package(name) for name in graph.find_modules_directly_imported_by(module)}
            found.setdefault(package, set()).update(imported - {package, ""})
    return found


def _package(module: str) -> str:
    names = module.split(".")[1:]
    part = PARTS.get(".".join(names[:2]))
    return part or ("" if names[:1] in ([], ["__main__"]) else names[0])


def reduced(graph: Graph) -> Graph:
    """Return the graph without the edges that follow from others."""

    @cache
    def reachable(package: str) -> frozenset[str]:
        below = graph.get(package, set())
        return frozenset(below).union(*(reachable(name) for name in below))

    return {
        package: {name for name in below if not any(name in reachable(other) for other in below)}
        for package, below in graph.items()
    }


def rows_of(graph: Graph) -> dict[str, int]:
    """Return the row of each package, 0 at the top: as low as what imports it allows."""
    height: dict[str, int] = {}

    def height_of(package: str) -> int:
        if package not in height:
            height[package] = 1 + max((height_of(name) for name in graph[package]), default=-1)
        return height[package]

    tallest = max(height_of(package) for package in sorted(graph))
    return {package: tallest - height[package] for package in sorted(graph)}


class Layout:
    """Places of all nodes: rows from top to bottom, each from left to right."""

    def __init__(self, graph: Graph) -> None:
        rows = rows_of(graph)
        self.paths: list[list[Node]] = [
            list(_path(upper, lower, rows)) for upper in sorted(graph) for lower in sorted(graph[upper])
        ]
        nodes = {Node(name, row) for name, row in rows.items()}.union(*self.paths)
        self._rows = [
            sorted(node for node in nodes if node.row == row) for row in range(max(rows.values()) + 1)
        ]
        self._above: dict[Node, list[Node]] = {node: [] for node in nodes}
        self._below: dict[Node, list[Node]] = {node: [] for node in nodes}
        for path in self.paths:
            for upper, lower in pairwise(path):
                self._above[lower].append(upper)
                self._below[upper].append(lower)
        self.centre: dict[Node, float] = {}
        self._place_evenly()
        self._order()
        self._straighten()
        left = min(x - node.width / 2 for node, x in self.centre.items())
        for node in self.centre:
            self.centre[node] += MARGIN - left
        self.width: float = MARGIN + max(x + node.width / 2 for node, x in self.centre.items())
        self.height: float = 2 * MARGIN + (len(self._rows) - 1) * ROW + HEIGHT

    @property
    def packages(self) -> Iterator[Node]:
        """Yield the nodes to draw as boxes, row by row."""
        for row in self._rows:
            yield from (node for node in row if not node.target)

    def _place_evenly(self) -> None:
        for row in self._rows:
            total = sum(node.width + GAP for node in row) - GAP
            x = -total / 2
            for node in row:
                self.centre[node] = x + node.width / 2
                x += node.width + GAP

    def _order(self) -> None:
        """Sort each row by its neighbours above and below in turn, and keep the order with the fewest crossings."""
        best, fewest = [list(row) for row in self._rows], self._crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self._above if down else self._below
            for row in self._rows if down else reversed(self._rows):
                row.sort(key=lambda node: (self._middle(neighbours[node], node), node))
                self._place_evenly()
            if self._crossings() < fewest:
                best, fewest = [list(row) for row in self._rows], self._crossings()
        self._rows = best
        self._place_evenly()

    def _crossings(self) -> int:
        count = 0
        for row in self._rows:
            edges = sorted(
                (self.centre[node], self.centre[below]) for node in row for below in self._below[node]
            )
            count += sum(
                one[0] < other[0] and one[1] > other[1]
                for index, one in enumerate(edges)
                for other in edges[index + 1 :]
            )
        return count

    def _straighten(self) -> None:
        """Move nodes towards their neighbours, without changing the order of a row."""
        for sweep in range(SWEEPS):
            for row in self._rows if sweep % 2 == 0 else reversed(self._rows):
                desired = [self._middle(self._above[node] + self._below[node], node) for node in row]
                self._fit(row, desired)

    def _fit(self, row: Sequence[Node], desired: Sequence[float]) -> None:
        """Place a row as near to the desired centres as the widths allow: the mean of packing from either side."""
        from_left: list[float] = []
        for node, x in zip(row, desired, strict=True):
            least = from_left[-1] + _distance(row[len(from_left) - 1], node) if from_left else x
            from_left.append(max(x, least))
        from_right: list[float] = []
        backwards = list(reversed(row))
        for node, x in zip(backwards, reversed(desired), strict=True):
            most = from_right[-1] - _distance(backwards[len(from_right) - 1], node) if from_right else x
            from_right.append(min(x, most))
        for node, left, right in zip(row, from_left, reversed(from_right), strict=True):
            self.centre[node] = round((left + right) / 2, 1)

    def _middle(self, neighbours: Sequence[Node], node: Node) -> float:
        if not neighbours:
            return self.centre[node]
        return sum(self.centre[each] for each in neighbours) / len(neighbours)


def _distance(one: Node, other: Node) -> float:
    return (one.width + other.width) / 2 + GAP


def _path(upper: str, lower: str, rows: Mapping[str, int]) -> Iterator[Node]:
    yield Node(upper, rows[upper])
    for row in range(rows[upper] + 1, rows[lower]):
        yield Node(upper, row, lower)
    yield Node(lower, rows[lower])


def draw(graph: Graph) -> str:
    """Return the picture as SVG."""
    layout = Layout(reduced(graph))
    legend = layout.height + MARGIN
    size = f"{layout.width + MARGIN:.0f}", f"{legend + MARGIN:.0f}"
    view = f'viewBox="0 0 {" ".join(size)}" width="{size[0]}" height="{size[1]}"'
    marker = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img">',
        "<title>The packages of kubewright: each imports only packages below it</title>",
        f"<style>\n{_style()}</style>",
        f'<marker id="tip" {marker}><path d="M0 0L8 4L0 8z" class="tip"/></marker>',
        '<rect width="100%" height="100%" rx="8" class="page"/>',
    ]
    lines += [f'<path d="{_curve(layout, path)}" class="arrow"/>' for path in layout.paths]
    for node in layout.packages:
        centre, y = layout.centre[node], MARGIN + node.row * ROW
        lines.append(
            f'<g class="{_class(_group(node.name))}">'
            f'<rect x="{centre - node.width / 2:.1f}" y="{y}" width="{node.width}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{centre:.1f}" y="{y + 21}" text-anchor="middle">{escape(node.name)}</text></g>'
        )
    x = MARGIN
    for group in GROUPS:
        lines.append(
            f'<g class="{_class(group)}"><rect x="{x}" y="{legend - 12}" width="16" height="16" rx="4"/>'
            f'<text x="{x + 24}" y="{legend + 1}">{escape(group)}</text></g>'
        )
        x += 48 + 8 * len(group)
    return "\n".join([*lines, "</svg>", ""])


def _curve(layout: Layout, path: Sequence[Node]) -> str:
    """Return a path that leaves and enters boxes vertically, and passes other rows straight down."""
    x, y = layout.centre[path[0]], MARGIN + path[0].row * ROW + HEIGHT
    parts = [f"M{x:.1f} {y}"]
    for node in path[1:]:
        next_x, top = layout.centre[node], MARGIN + node.row * ROW
        bend = (top - y) / 2
        parts.append(f"C{x:.1f} {y + bend:.1f} {next_x:.1f} {top - bend:.1f} {next_x:.1f} {top}")
        x, y = next_x, top
        if node.target:
            y = top + HEIGHT
            parts.append(f"V{y}")
    return "".join(parts)


def _group(package: str) -> str:
    for group, packages in GROUPS.items():
        if package in packages:
            return group
    raise SystemExit(f"tools/draw_packages.py: kubewright.{package} is in no group: add it to GROUPS")


def _class(group: str) -> str:
    return group.replace(" ", "-")


def _style() -> str:
    def colours(palette: Mapping[str, tuple[str, str]], indent: str) -> Iterator[str]:
        for group, (fill, stroke) in palette.items():
            yield f"{indent}.{_class(group)} rect {{ fill: {fill}; stroke: {stroke}; }}\n"

    dark = "  "
    return "".join(
        [
            "text { font: 13px system-ui, sans-serif; fill: #202124; }\n",
            ".page { fill: #ffffff; } .arrow { fill: none; stroke: #9aa0a6; stroke-width: 1.2; marker-end: url(#tip); }\n",
            ".tip { fill: #9aa0a6; } rect { stroke-width: 1.2; }\n",
            *colours(LIGHT, ""),
            "@media (prefers-color-scheme: dark) {\n",
            f"{dark}text {{ fill: #e8eaed; }} .page {{ fill: #16181c; }} .arrow {{ stroke: #80868b; }}\n",
            f"{dark}.tip {{ fill: #80868b; }}\n",
            *colours(DARK, dark),
            "}\n",
        ]
    )


def main() -> None:
    """Write the picture, or with `--check` fail if it is out of date."""
    picture = draw(imports())
    if "--check" in sys.argv[1:]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit(f"{PICTURE.relative_to(ROOT)} is out of date: run python tools/draw_packages.py")
    else:
        PICTURE.write_text(picture)


if __name__ == "__main__":
    main()
