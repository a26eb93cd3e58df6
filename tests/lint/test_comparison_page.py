"""Lint: each claim in the README's comparison links to evidence."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)]+)\)")
THEIRS = (
    "https://docs.kopf.dev/",
    "https://github.com/cloudcoil/cloudcoil/",
    "https://pkg.go.dev/sigs.k8s.io/controller-runtime",
    "https://book.kubebuilder.io/",
    "https://github.com/operator-framework/java-operator-sdk/",
)


def rows() -> list[list[str]]:
    section = (ROOT / "README.md").read_text().partition("## Compared with ")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_every_claim_has_a_link() -> None:
    found = rows()
    assert len(found) > 5
    for row in found:
        assert len(row) == 6, row
        for cell in row[1:]:
            assert LINK.search(cell), f"{row[0]}: {cell} has no link to evidence"


def test_ours_lead_to_files_and_theirs_to_their_documentation() -> None:
    for _, ours, *theirs in rows():
        for target in LINK.findall(ours):
            assert (ROOT / target.partition("#")[0]).is_file(), target
        for target in (link for cell in theirs for link in LINK.findall(cell)):
            assert target.startswith(THEIRS), target
