"""The index and the one-file documentation that the site offers to programs."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\): \S.*$")


@pytest.fixture(scope="module")
def llms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("llms", DOCS / ".hooks" / "llms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules["llms"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def test_the_index_has_the_form_of_llms_txt(llms: ModuleType, config: dict[str, Any]) -> None:
    pages = list(llms.pages_of(config["nav"], DOCS))
    lines = llms.index_of(config["site_name"], config["site_description"], pages).splitlines()
    assert lines[:3] == ["# kubewright", "", f"> {config['site_description']}"]
    links = [LINK.match(line) for line in lines if line.startswith("- ")]
    assert all(links), "a page has no first sentence"
    assert [found["path"] for found in links if found] == [page.path for page in pages]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Start",
        "## Writing objects",
        "## Triggering reconciles",
        "## Kinds and admission",
        "## Testing",
        "## Debugging",
        "## Running and deploying",
        "## Migrating",
        "## Examples",
        "## Concepts",
        "## Reference",
    ]


def test_every_page_is_in_the_one_file_documentation(llms: ModuleType, config: dict[str, Any]) -> None:
    pages = list(llms.pages_of(config["nav"], DOCS))
    full = llms.full_of(config["site_name"], config["site_description"], pages)
    for path in DOCS.rglob("*.md"):
        if path.parent.name != "decisions":
            assert path.read_text().strip() in full, f"{path.relative_to(ROOT)} is not in the navigation"


def test_the_build_writes_the_files_beside_the_pages(
    llms: ModuleType, config: dict[str, Any], tmp_path: Path
) -> None:
    class Config:
        nav = config["nav"]
        docs_dir = str(DOCS)
        site_dir = str(tmp_path)
        site_name = config["site_name"]
        site_description = config["site_description"]

    llms.on_post_build(Config())
    for line in (tmp_path / "llms.txt").read_text().splitlines():
        if found := LINK.match(line):
            assert (tmp_path / found["path"]).read_text() == (DOCS / found["path"]).read_text()
    assert (tmp_path / "llms-full.txt").stat().st_size > 100_000
