"""Lint: the table of the page on Events lists each Event that the runtime itself publishes, with its type."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kubewright"
# These publish what Kubernetes' own components do, on a cluster for development.
DEVELOPMENT = ("devcluster", "devserver", "processpods", "testing")
ROW = re.compile(r"^\| `(?P<reason>\w+)` \| (?P<type>Normal|Warning) \| ", re.MULTILINE)


def published(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield reason and type of each Event with a literal reason: `event`, `warn`, `publish_event` and `record`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        texts = [
            it.value
            for it in node.args
            if isinstance(it, ast.Constant) and isinstance(it.value, str) and it.value
        ]
        match node.func.attr, texts:
            case "event", [reason, *_]:
                yield reason, "Normal"
            case "warn", [reason, *_]:
                yield reason, "Warning"
            case "publish_event" | "record", ["Normal" | "Warning" as type_, reason, *_]:
                yield reason, type_
            case _:
                pass


def test_the_table_lists_the_events_of_the_runtime() -> None:
    found = {
        event
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in DEVELOPMENT
        for event in published(ast.parse(path.read_text()))
    }
    assert ("FinalizerFailed", "Warning") in found
    assert ("LeaderElection", "Normal") in found
    page = (ROOT / "docs" / "how-to" / "events.md").read_text()
    assert {(row["reason"], row["type"]) for row in ROW.finditer(page)} == found
