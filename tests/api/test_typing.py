"""What a strict type checker says to authors."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """The lines that pyright complains about, by file."""
    folder = tmp_path_factory.mktemp("pyright")
    for page in FOLDER.glob("*.py"):
        shutil.copy(page, folder)
    settings = {
        "extraPaths": [str(FOLDER.parents[2] / "src")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--project",
        str(folder),
        "--pythonpath",
        sys.executable,
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    lines: dict[str, set[int]] = {"right.py": set(), "wrong.py": set()}
    for item in json.loads(found.stdout)["generalDiagnostics"]:
        lines[Path(item["file"]).name].add(item["range"]["start"]["line"] + 1)
    return lines


def test_an_authors_page_passes(errors: dict[str, set[int]]) -> None:
    assert errors["right.py"] == set()


def test_wrong_lines_are_caught(errors: dict[str, set[int]]) -> None:
    marked = (FOLDER / "wrong.py").read_text().splitlines()
    assert errors["wrong.py"] == {number for number, line in enumerate(marked, 1) if line.endswith("# error")}
