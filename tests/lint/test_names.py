"""Lint: the name of a test is a sentence that begins with its subject, or with what the subject does."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in ("tests", "examples")
    for path in sorted((ROOT / folder).rglob("test_*.py"))
    # Projects as users have them.
    if not {"golden", "kopf_project"} & set(path.parts)
]
INVERTED = re.compile(
    r"test_(what|whatever|who|whose|where|when|how|if|of|in|at|on|with|without|after|before|nothing)_"
)
"""The beginnings of names whose subject comes late or not at all."""
SHORTEST = 2
"""Words that a sentence has at least."""


def is_sentence(name: str) -> bool:
    return INVERTED.match(name) is None and len(name.split("_")) > SHORTEST


def names_in(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_")]


def test_names_of_tests_are_sentences() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in FILES
        for name in names_in(path)
        if not is_sentence(name)
    ]
    assert found == [], "name the subject first: test_<subject>_<does what>[_when/if/without ...]"


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("test_requeues_when_reconcile_fails", True),
        ("test_a_watch_resumes", True),
        ("test_without_metrics_no_number_is_desired", False),
        ("test_what_is_sent_is_read_back", False),
        ("test_prune", False),
    ],
)
def test_sentences_are_recognized(name: str, good: bool) -> None:
    assert is_sentence(name) is good
