"""The result of one check: what was checked, its state, and how to fix it."""

from dataclasses import dataclass
from typing import Literal

FindingState = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; a warning or failure has a remedy."""

    check: str
    state: FindingState
    detail: str
    remedy: str = ""


def well(check: str, detail: str) -> Finding:
    """Return a check that passed."""
    return Finding(check, "ok", detail)


def doubtful(check: str, detail: str, remedy: str) -> Finding:
    """Return a warning."""
    return Finding(check, "warning", detail, remedy)


def failed(check: str, detail: str, remedy: str) -> Finding:
    """Return a check that failed."""
    return Finding(check, "failed", detail, remedy)


def skipped(check: str, detail: str) -> Finding:
    """Return a check that was skipped, with the reason."""
    return Finding(check, "skipped", detail)
