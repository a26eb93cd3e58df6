"""Write docs/devserver-differences.md from tests/compare/allowed.yaml: `python tools/generate_differences.py`.

With `--check` nothing is written; the command fails if the page is out of date.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tests" / "compare" / "allowed.yaml"
PAGE = ROOT / "docs" / "devserver-differences.md"
SECTIONS = {
    "missing": "Features that are missing",
    "message": "Messages that differ",
    "behavior": "Behavior that differs",
}
COLUMNS = ("feature", "kubernetes", "embedded", "reason")
INTRODUCTION = """\
# Where the embedded server differs from a real kube-apiserver

`tests/conformance` sends the same requests (about 1,870) to both servers and compares the responses; \
`conformance_coverage.py` lists which request covers which feature. `scripts/compare` does the same with generated \
requests from any number of seeds. `tests/clients` compares kubectl's output in the same way, and runs the official \
Python client, kopf, lightkube, kr8s and controller-runtime.
A difference that is not listed here is a bug. This page is generated from `tests/compare/allowed.yaml`. It describes the newest \
version; [Test against several Kubernetes versions](how-to/kubernetes-versions.md) describes the earlier ones.
"""


def page(entries: list[dict[str, Any]]) -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for section, title in SECTIONS.items():
        rows = [entry for entry in entries if entry["section"] == section]
        parts.append(f"\n## {title}\n\n| feature | kube-apiserver | embedded | reason |\n|---|---|---|---|\n")
        parts += [f"| {' | '.join(entry[column] for column in COLUMNS)} |\n" for entry in rows]
    return "".join(parts)


def main() -> int:
    """Write the page, or check it."""
    text = page(yaml.safe_load(SOURCE.read_text()))
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() == text:
            return 0
        print(f"{PAGE.relative_to(ROOT)} is out of date: run tools/generate_differences.py", file=sys.stderr)
        return 1
    if sys.argv[1:]:
        print("tools/generate_differences.py takes only --check", file=sys.stderr)
        return 2
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
