"""Lint: each how-to page is linked from the README and from the start page of the documentation."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.name for path in (ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_the_readme_and_the_start_page_link_each_how_to(page: str) -> None:
    assert f"(docs/how-to/{page})" in (ROOT / "README.md").read_text()
    assert f"(how-to/{page})" in (ROOT / "docs" / "index.md").read_text()
