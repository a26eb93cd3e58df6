"""One finding of a check-up: what was looked at, how it is, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is; what is not well comes with a remedy."""

    check: str
    state: State
    detail: str
    remedy: str = ""


def well(check: str, detail: str) -> Finding:
    """Find something as it should be."""
    return Finding(check, "ok", detail)


def doubtful(check: str, detail: str, remedy: str) -> Finding:
    """Find something that may do harm."""
    return Finding(check, "warning", detail, remedy)


def failed(check: str, detail: str, remedy: str) -> Finding:
    """Find something that must be mended."""
    return Finding(check, "failed", detail, remedy)


def skipped(check: str, detail: str) -> Finding:
    """Leave something out, and say why."""
    return Finding(check, "skipped", detail)
