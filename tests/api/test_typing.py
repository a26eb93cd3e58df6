"""Strict type checkers accept what authors write, and report what they get wrong."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
SOURCE = FOLDER.parents[2] / "src"
Errors = dict[str, set[int]]


def pyright(folder: Path) -> Iterator[tuple[str, int]]:
    settings = {"extraPaths": [str(SOURCE)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    found = run("pyright", "--outputjson", "--project", str(folder), "--pythonpath", sys.executable)
    for item in json.loads(found)["generalDiagnostics"]:
        yield item["file"], item["range"]["start"]["line"] + 1


def mypy(folder: Path) -> Iterator[tuple[str, int]]:
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = true\npython_version = 3.11\nmypy_path = {SOURCE}\n")
    pages = map(str, folder.glob("*.py"))
    return located(run("mypy", f"--config-file={config}", f"--cache-dir={folder / 'cache'}", *pages))


def ty(folder: Path) -> Iterator[tuple[str, int]]:
    options = ("--output-format=concise", "--python-version=3.11", f"--extra-search-path={SOURCE}")
    return located(run("ty", "check", *options, f"--python={sys.prefix}", f"--project={folder}"))


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


def located(lines: str) -> Iterator[tuple[str, int]]:
    for found in re.finditer(r"^(\S+\.py):(\d+):.* error", lines, re.MULTILINE):
        yield found[1], int(found[2])


@pytest.fixture(scope="module", params=[pyright, mypy, ty])
def checker(request: pytest.FixtureRequest) -> Callable[[Path], Iterator[tuple[str, int]]]:
    return request.param


@pytest.fixture(scope="module")
def errors(
    checker: Callable[[Path], Iterator[tuple[str, int]]], tmp_path_factory: pytest.TempPathFactory
) -> Errors:
    """Return the lines that the checker reports, by file."""
    folder = tmp_path_factory.mktemp("typing")
    for page in FOLDER.glob("*.py"):
        shutil.copy(page, folder)
    lines: Errors = {"right.py": set(), "wrong.py": set()}
    for file, line in checker(folder):
        lines[Path(file).name].add(line)
    return lines


def test_a_correct_operator_passes_the_type_checkers(errors: Errors) -> None:
    assert errors["right.py"] == set()


def test_type_errors_are_reported_on_their_lines(
    errors: Errors, checker: Callable[[Path], Iterator[tuple[str, int]]]
) -> None:
    marked = {
        number: line.partition("  # error except ")[2].split()
        for number, line in enumerate((FOLDER / "wrong.py").read_text().splitlines(), 1)
        if "  # error" in line
    }
    assert errors["wrong.py"] == {
        number for number, exceptions in marked.items() if checker.__name__ not in exceptions
    }
