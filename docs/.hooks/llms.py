"""Write llms.txt, llms-full.txt and the Markdown of each page into the site, for programs that read documentation.

llms.txt is an index in the form of https://llmstxt.org: a title, a summary, and for each section of the navigation a list of
links with descriptions. llms-full.txt contains all pages in the order of the navigation.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUMMARY_LENGTH = 240
_HEADING = re.compile(r"^#+ .*\n", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_SENTENCE = re.compile(r"(?<=[a-z0-9)`])[.:](?=\s|$)")


@dataclass(frozen=True)
class Page:
    """One page of the navigation."""

    section: str
    title: str
    path: str
    text: str


def pages_of(nav: Sequence[Mapping[str, Any]], folder: Path, section: str = "Start") -> Iterator[Page]:
    """Yield the pages of a navigation in order."""
    for entry in nav:
        for title, target in entry.items():
            if isinstance(target, str):
                yield Page(section, title, target, (folder / target).read_text())
            else:
                yield from pages_of(target, folder, title)


def summary_of(text: str) -> str:
    """Return the first sentence of a page, without links."""
    for paragraph in _HEADING.sub("", text).split("\n\n"):
        if paragraph.strip() and not paragraph.lstrip().startswith(("```", "|", "!", "-", "<")):
            plain = _LINK.sub(r"\1", " ".join(paragraph.split()))
            return _SENTENCE.split(plain)[0][:SUMMARY_LENGTH]
    return ""


def index_of(name: str, description: str, pages: Sequence[Page]) -> str:
    """Return llms.txt."""
    lines = [
        f"# {name}",
        "",
        f"> {description}",
        "",
        "All pages in one file: [llms-full.txt](llms-full.txt).",
    ]
    section = ""
    for page in pages:
        if page.section != section:
            section = page.section
            lines += ["", f"## {section}", ""]
        summary = summary_of(page.text)
        lines.append(f"- [{page.title}]({page.path})" + (f": {summary}" if summary else ""))
    return "\n".join(lines) + "\n"


def full_of(name: str, description: str, pages: Sequence[Page]) -> str:
    """Return llms-full.txt."""
    parts = [f"# {name}\n\n> {description}\n"]
    parts += [f"<!-- {page.path} -->\n\n{page.text.strip()}\n" for page in pages]
    return "\n".join(parts)


def on_post_build(config: Any) -> None:
    """Write the files; MkDocs calls it after it built the site."""
    pages = list(pages_of(config.nav, Path(config.docs_dir)))
    site = Path(config.site_dir)
    name, description = config.site_name, config.site_description
    (site / "llms.txt").write_text(index_of(name, description, pages))
    (site / "llms-full.txt").write_text(full_of(name, description, pages))
    for page in pages:
        (site / page.path).parent.mkdir(parents=True, exist_ok=True)
        (site / page.path).write_text(page.text)
