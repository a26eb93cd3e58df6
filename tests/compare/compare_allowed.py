"""The differences that we choose, from `allowed.yaml`: which of them a difference found by comparison is."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from compare_difference import Difference, general_path, show_request

FILE = Path(__file__).parent / "allowed.yaml"
MATCHER = {"method", "path", "request", "status", "real", "embedded", "changes"}


@dataclass(frozen=True)
class Matcher:
    """Conditions that a difference must fulfil, all of them.

    Texts are regular expressions that must be found: in the request's path, in the requests of the case, in the
    responses as JSON. `status` has the two statuses, and each changed path must match one of `changes` whole.
    """

    method: str = ""
    path: str = ""
    request: str = ""
    status: tuple[int, ...] = ()
    real: str = ""
    embedded: str = ""
    changes: tuple[str, ...] = ()

    def matches(self, difference: Difference) -> bool:
        """Return True if the difference fulfils all conditions."""
        # Entries are recognized by messages, also where these are not compared.
        pairing, step = difference.pairing.worded or difference.pairing, difference.step
        requests = "\n".join(map(show_request, difference.case.steps))
        return (
            self.method in ("", step.method)
            and self.status in ((), difference.statuses)
            and re.search(self.path, step.path) is not None
            and re.search(self.request, requests) is not None
            and re.search(self.real, _text(pairing.real)) is not None
            and re.search(self.embedded, _text(pairing.embedded)) is not None
            and (not self.changes or all(map(self._is_allowed_change, difference.changes)))
        )

    def _is_allowed_change(self, change: tuple[tuple[str | int, ...], str]) -> bool:
        path = general_path(change[0])
        return any(re.fullmatch(pattern, path) for pattern in self.changes)


def _text(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)


@dataclass(frozen=True)
class AllowedDifference:
    """An entry of the allow-list, as `docs/devserver-differences.md` shows it."""

    id: str
    section: str
    areas: tuple[str, ...]
    feature: str
    kubernetes: str
    embedded: str
    reason: str
    matchers: tuple[Matcher, ...] = field(default=())

    def matches(self, difference: Difference) -> bool:
        """Return True if a difference is this one."""
        area = difference.case.area
        return (not self.areas or area in self.areas) and any(
            matcher.matches(difference) for matcher in self.matchers
        )


class AllowList:
    """All differences that we choose."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file

    @cached_property
    def entries(self) -> list[AllowedDifference]:
        """Return the entries, in the order of the file."""
        return [_entry(item) for item in yaml.safe_load(self._file.read_text())]

    def find(self, difference: Difference) -> str | None:
        """Return the id of the entry that allows a difference."""
        return next((entry.id for entry in self.entries if entry.matches(difference)), None)


def _entry(item: Mapping[str, Any]) -> AllowedDifference:
    matchers = tuple(
        Matcher(
            **{**made, "status": tuple(made.get("status", ())), "changes": tuple(made.get("changes", ()))}
        )
        for made in item.get("match", ())
    )
    texts = {name: item[name] for name in ("id", "section", "feature", "kubernetes", "embedded", "reason")}
    return AllowedDifference(**texts, areas=tuple(item.get("areas", ())), matchers=matchers)
