"""Lint: tests wait with `kubewright.testing.eventually` and `Cluster.eventually`, not with loops of their own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in ("tests", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    # Projects as users have them, and operators, whose loops are not those of a test.
    if not {"golden", "kopf_project", "show"} & set(path.parts) and path.name != "vcenter.py"
]
SLEEPS = ("asyncio.sleep", "time.sleep")
KEPT = {
    "tests/cache/test_informer.py": "records what the informer holds in each round of the event loop",
    "tests/compare/compare_servers.py": "waits until two servers agree, and compares them also if they never do",
    "tests/controller/running/test_vanishing_children.py": "deletes an object for a span of virtual time",
    "tests/processpods/test_child.py": "counts what arrives in each round of the event loop",
    "tests/schema/record.py": "a program that records answers of a real server, without an event loop",
    "tests/devserver/merge/record_corpus.py": "a program that records answers of a real server, without an event loop",
}


def polling(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each `while` loop that sleeps until something changes."""
    for loop in ast.walk(tree):
        if not isinstance(loop, ast.While):
            continue
        inner = list(ast.walk(loop))
        endless = isinstance(loop.test, ast.Constant) and not any(
            isinstance(node, ast.Break | ast.Return) for node in inner
        )
        if not endless and any(isinstance(n, ast.Call) and ast.unparse(n.func) in SLEEPS for n in inner):
            yield loop.lineno


def found_in(path: Path) -> list[str]:
    name, text = path.relative_to(ROOT).as_posix(), path.read_text()
    return [f"{name}:{line}" for line in polling(ast.parse(text))] if "sleep(" in text else []


def test_tests_do_not_poll_with_loops_of_their_own() -> None:
    found = [place for path in FILES for place in found_in(path)]
    assert [place for place in found if place.partition(":")[0] not in KEPT] == []


@pytest.mark.parametrize("name", KEPT)
def test_kept_loops_exist(name: str) -> None:
    assert found_in(ROOT / name), f"{name} has no such loop any more: remove it from KEPT"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("while not done():\n    await asyncio.sleep(0.1)", [1]),
        ("while True:\n    if done():\n        break\n    time.sleep(1)", [1]),
        ("while True:\n    send()\n    await asyncio.sleep(1)", []),
        ("while rest:\n    rest = rest[1:]", []),
        ("for _ in range(3):\n    await asyncio.sleep(0)", []),
    ],
)
def test_polling_loops_are_recognized(code: str, lines: list[int]) -> None:
    assert list(polling(ast.parse(code))) == lines
