"""Write the complete sources of examples into the pages that show them; `--check` only compares.

A page shows a file of the repository in a block with `title="examples/..."` below the heading "Complete source". Blocks above
that heading are excerpts, which tests/docs/test_blocks.py compares.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPLETE = "## Complete source"
BLOCK = re.compile(r'^```python title="(?P<title>examples/[^"]+)"\n.*?^```$', re.MULTILINE | re.DOTALL)


def filled(page: Path) -> str:
    """Return the text of a page with the current sources."""
    text = page.read_text()
    above, heading, below = text.partition(COMPLETE)
    return above + heading + BLOCK.sub(lambda found: block(found["title"], ROOT / found["title"]), below)


def block(title: str, source: Path) -> str:
    """Return a code block with a whole file."""
    return f'```python title="{title}"\n{source.read_text()}```'


def program() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    pages = sorted((ROOT / "docs" / "guides").glob("*.md"))
    stale = [(page, text) for page in pages if (text := filled(page)) != page.read_text()]
    for page, text in stale:
        if check:
            print(
                f"{page.relative_to(ROOT)} is stale: run python tools/{Path(__file__).name}", file=sys.stderr
            )
        else:
            page.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(program())
