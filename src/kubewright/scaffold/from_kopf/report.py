"""Decisions and reviews that remain after the conversion, and MIGRATION.md, which lists them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_START = """\
# Migration from kopf

`kubewright create from-kopf` wrote this project from {files}. The functions of the original are in place; `{package}/controllers.py` calls them.

{summary}
"""
_STEPS = """
## Before the first start

1. The CRDs are in `crds/`, unchanged: the classes in `{package}/kinds` are generated from them and marked `external=True`, so kubewright does not install
   them. After a change of a CRD: `kubewright create types -f crds --output-dir {package}/kinds`.
2. Stop the kopf operator. Two operators that write the same objects work against each other.
3. Remove kopf's finalizer and its annotations from the existing objects: `{finalizer}` and `kopf.zalando.org/*`, unless `settings.persistence` names others. Objects that keep the finalizer
   cannot be deleted.
4. Run `kubewright plan {package} -f OBJECT.yaml` with an unchanged object: it shows what this operator would change. It runs the handlers, so an operator with a
   finalizer needs `planning=`: `docs/how-to/external-systems.md`.

kubewright's documentation explains each of these in `docs/how-to/from-kopf.md`.
"""


class MigrationItem(NamedTuple):
    """One entry of MIGRATION.md."""

    number: int
    path: str
    line: int
    subject: str
    reason: str
    page: str

    @property
    def label(self) -> str:
        """Return the text by which TODO comments name a decision."""
        return f"kopf-{self.number}"


@dataclass
class MigrationReport:
    """Collects what the conversion could not decide and what it left in place."""

    decisions: list[MigrationItem] = field(default_factory=list[MigrationItem])
    reviews: list[MigrationItem] = field(default_factory=list[MigrationItem])
    client_calls: list[MigrationItem] = field(default_factory=list[MigrationItem])

    def decide(self, path: str, line: int, subject: str, reason: str, page: str) -> MigrationItem:
        """Add a decision; the function that needs it raises NotImplementedError until the user has made it."""
        item = MigrationItem(len(self.decisions) + 1, path, line, subject, reason, page)
        self.decisions.append(item)
        return item

    def review(self, path: str, line: int, subject: str, reason: str, page: str) -> None:
        """Add something that works, but differs from kopf."""
        item = MigrationItem(len(self.reviews) + 1, path, line, subject, reason, page)
        if not any(each[1:] == item[1:] for each in self.reviews):
            self.reviews.append(item)

    def client_call(self, path: str, line: int, text: str) -> None:
        """Add a call of a client library that was left as it is."""
        self.client_calls.append(MigrationItem(len(self.client_calls) + 1, path, line, text, "", ""))

    def text(self, package: str, files: Sequence[str], finalizer: str) -> str:
        """Return MIGRATION.md."""
        count = len(self.decisions)
        summary = f"**{count} to decide**, {len(self.reviews)} to review, {len(self.client_calls)} calls of client libraries."
        parts = [
            _START.format(files=", ".join(f"`{each}`" for each in files), package=package, summary=summary)
        ]
        parts.append(
            "\n## Decide\n\nEach of these functions raises `NotImplementedError` under a `TODO` with the same label. "
            "Make the decision, then delete the `TODO` and the `raise`.\n"
        )
        parts.append(_table(self.decisions, labels=True))
        parts.append("\n## Review\n\nThis works, but not in the same way as with kopf.\n")
        parts.append(_table(self.reviews, labels=False))
        parts.append(
            "\n## Calls of client libraries\n\nThey are left as they are, and need the client library. "
            "Replace them by `ctx.get`, `ctx.list`, `ctx.apply`, `ctx.patch` and `ctx.delete` "
            "(how-to/apply-create-update.md) when you change the function anyway.\n"
        )
        parts.append(
            "\n".join(
                ["", *(f"- `{each.path}:{each.line}` `{each.subject}`" for each in self.client_calls), ""]
            )
            if self.client_calls
            else "\nNone.\n"
        )
        parts.append(_STEPS.format(package=package, finalizer=finalizer))
        return "".join(parts)


def _table(items: Sequence[MigrationItem], *, labels: bool) -> str:
    if not items:
        return "\nNone.\n"
    head = (
        "| label | original | what | why | page of the documentation |"
        if labels
        else "| original | what | why | page of the documentation |"
    )
    lines = ["", head, "|---" * (head.count("|") - 1) + "|"]
    for item in items:
        cells = [f"`{item.path}:{item.line}`", item.subject, item.reason, f"`docs/{item.page}`"]
        if labels:
            cells.insert(0, item.label)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])
