"""Write `kubewright/api/builtin` from facts about Kubernetes' built-in kinds.

    tools/generate_builtin.py            write the modules from the committed facts
    tools/generate_builtin.py --check    fail if they are not what the facts give
    tools/generate_builtin.py --refresh  read the facts from the Go sources of the release in bundle.json first

The facts are OpenAPI v3, discovery, and which fields are pointers in Go. Descriptions are never kept.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from builtin_facts import Facts, refresh
from builtin_modules import render
from go_sources import Sources

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "kubewright" / "api" / "builtin"
FACTS = Path(__file__).resolve().parent / "data" / "builtin.json.xz"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--refresh", action="store_true", help="read the facts again first")
    arguments = parser.parse_args()
    if arguments.refresh:
        sources = Sources()
        if not sources.present():
            print(
                f"needs the Go modules of Kubernetes {sources.version}: run `scripts/kubernetes --only version`"
            )
            return 1
        refresh(sources).save(FACTS)
    modules = {name: formatted(text) for name, text in render(Facts.load(FACTS)).items()}
    if arguments.check:
        return check(modules)
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in modules.items():
        (TARGET / name).parent.mkdir(exist_ok=True)
        (TARGET / name).write_text(text)
    return 0


def check(modules: dict[str, str]) -> int:
    found = {str(path.relative_to(TARGET)): path.read_text() for path in TARGET.rglob("*.py")}
    stale = sorted(name for name in found.keys() | modules.keys() if found.get(name) != modules.get(name))
    for name in stale:
        print(f"{(TARGET / name).relative_to(ROOT)} is stale: run tools/generate_builtin.py", file=sys.stderr)
    return 1 if stale else 0


def formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "110", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
