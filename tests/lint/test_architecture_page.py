"""Lint: each function that the architecture page names is in the file that it names beside it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURES = "\n".join(re.findall(r"```\n(.*?)```", PAGE, re.DOTALL)[1:])
FILE = re.compile(r"\b[a-z_]+(?:/[a-z_]+)*\.py\b")
FUNCTION = re.compile(r"\b(?:[A-Z]\w+\.)?_?[a-z]\w*\b")


def claims() -> list[tuple[str, str]]:
    """Return (names, files) of every line that draws a function and its file."""
    found: list[tuple[str, str]] = []
    for line in PICTURES.splitlines():
        files = FILE.findall(line)
        if files:
            drawn = line[: line.index(files[0])]
            found.append(
                (
                    re.sub(r"^\s*(?:\d+|==)?\s*(?:the one hand-off:|subscriber of)?", "", drawn),
                    " ".join(files),
                )
            )
    return found


@pytest.mark.parametrize(("drawn", "files"), claims())
def test_each_function_is_in_the_file_drawn_beside_it(drawn: str, files: str) -> None:
    text = "\n".join((ROOT / "src" / "kubewright" / name).read_text() for name in files.split())
    for name in FUNCTION.findall(drawn):
        cls, _, function = name.rpartition(".")
        assert re.search(rf"\bdef {function}\b", text), f"{name} is not in {files}"
        assert not cls or re.search(rf"\bclass {cls}\b", text), f"{cls} is not in {files}"


def test_every_file_that_the_page_names_exists() -> None:
    names = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", PAGE))
    assert len(names) > 10
    for name in names:
        places = [ROOT, ROOT / "src" / "kubewright", ROOT / "src" / "kubewright" / "controller"]
        assert any((place / name).exists() for place in places), name


def test_every_name_with_a_file_in_parentheses_is_defined_in_that_file() -> None:
    claimed = re.findall(r"`(\w+)(?:\.(\w+))?`[^`\n().]{0,12}\(`([a-z_/]+\.py)`", PAGE)
    assert len(claimed) > 10
    for name, method, file in claimed:
        text = (ROOT / "src" / "kubewright" / file).read_text()
        assert re.search(rf"\b(?:class|def) {name}\b", text), f"{name} is not in {file}"
        assert not method or re.search(rf"\bdef {method}\b", text), f"{name}.{method} is not in {file}"


def test_every_method_that_the_prose_names_exists() -> None:
    sources = [path.read_text() for path in (ROOT / "src" / "kubewright").rglob("*.py")]
    methods = sorted(set(re.findall(r"`([A-Z]\w+)\.(\w+)`", PAGE)))
    assert len(methods) > 10
    for cls, method in methods:
        assert any(
            re.search(rf"\bclass {cls}\b", source) and re.search(rf"\bdef {method}\b", source)
            for source in sources
        ), f"{cls}.{method}"
