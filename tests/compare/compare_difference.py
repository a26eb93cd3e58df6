"""Differences between two responses: their class, by which one cause is shown once, and their text."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compare_case import Case
from compare_servers import Pairing
from conformance_exchange import Step

# Parts of messages and paths that depend on the drawn values.
_DRAWN = (
    (re.compile(r'"(?:[^"\\]|\\.)*"'), '""'),
    (re.compile(r"\[[^\]]*\]"), "[]"),
    (re.compile(r"'[^']*'"), "''"),
    (re.compile(r"\([^()]*\)"), "()"),
    (re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?"), "N"),
)
# Names of kinds and resources, and how often the same error is reported.
_NAMES = (
    (
        re.compile(r'\S+ in version "" cannot be handled as an? \w+'),
        'KIND in version "" cannot be handled as KIND',
    ),
    (re.compile(r'\S+ "" (not found|already exists|is forbidden)'), r'RESOURCE "" \1'),
    (re.compile(r"\n \| [^\n]*"), ""),
    (re.compile(r'(\b(?:unknown|duplicate) field ""|line N: key "" already set in map)(?:,?\s+\1)+'), r"\1"),
    (re.compile(r'(no kind "" is registered for version "") in scheme ""'), r"\1"),
)
_DRAWN_KEYS = {"data", "binaryData", "stringData", "labels", "annotations", "matchLabels", "nodeSelector"}
_LAST_FIELDS = 2
_FIELD = re.compile(r"\b[a-z]\w*(?:\[\]|\.\w+)+")


@dataclass(frozen=True)
class Difference:
    """The first step of a case to which the servers responded differently."""

    case: Case
    pairing: Pairing

    @property
    def step(self) -> Step:
        return self.pairing.step

    @property
    def key(self) -> tuple[str, ...]:
        """Return what this difference has in common with others of the same cause."""
        real, embedded = _outcome(self.pairing.real), _outcome(self.pairing.embedded)
        if real[:2] != embedded[:2]:
            return (*real, "<>", *embedded)
        if real != embedded:
            # Of several errors, only those count that one server reports and the other does not.
            only_real = [said for said in real[2:] if said not in embedded[2:]]
            only_embedded = [said for said in embedded[2:] if said not in real[2:]]
            return (*real[:2], *only_real, "<>", *only_embedded)
        return tuple(sorted({f"{kind} {general_path(path)}" for path, kind in self.changes}))

    @property
    def changes(self) -> list[tuple[tuple[str | int, ...], str]]:
        """Return the paths where the responses differ, each with "only real", "only embedded" or "differs"."""
        return list(_changes(dict(self.pairing.real), dict(self.pairing.embedded), ()))

    @property
    def statuses(self) -> tuple[int, int]:
        """Return the status of the real and of the embedded server."""
        return self.pairing.real["status"], self.pairing.embedded["status"]


def first_difference(case: Case, pairings: list[Pairing]) -> Difference | None:
    """Return the first difference of a case: those after it may only follow from it."""
    return next((Difference(case, pairing) for pairing in pairings if not pairing.equal), None)


def general(text: str) -> str:
    """Return a message without the drawn values, and with only the last names of each field's path."""
    for pattern, replacement in _DRAWN:
        text = pattern.sub(replacement, text)
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    return _FIELD.sub(lambda found: ".".join(found[0].split(".")[-_LAST_FIELDS:]), text)


def general_path(path: tuple[str | int, ...]) -> str:
    """Return a path without indexes and drawn keys."""
    parts: list[str] = []
    for key in path:
        if isinstance(key, int):
            parts.append("[]")
        elif key[:2] in ("f:", "k:", "v:", "i:") or (parts and parts[-1] in _DRAWN_KEYS):
            parts.append("*")
        else:
            parts.append(key)
    return ".".join(parts)


def _failed(answer: Mapping[str, Any]) -> bool:
    return not 200 <= answer["status"] < 300


def _outcome(answer: Mapping[str, Any]) -> tuple[str, ...]:
    body = answer["body"]
    if not _failed(answer):
        return (str(answer["status"]),)
    if not isinstance(body, dict):
        return (str(answer["status"]), general(str(body)))
    causes = body.get("details", {}).get("causes", ())
    if causes:
        said = {general(f"{cause.get('field', '')}: {cause.get('message', '')}") for cause in causes}
    else:
        said = {general(body.get("message", ""))}
    return (str(answer["status"]), body.get("reason", ""), *sorted(said))


def _changes(
    real: Any, embedded: Any, at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(real, dict) and isinstance(embedded, dict):
        for key in [*real, *(key for key in embedded if key not in real)]:
            if key not in embedded:
                yield (*at, key), "only real"
            elif key not in real:
                yield (*at, key), "only embedded"
            else:
                yield from _changes(real[key], embedded[key], (*at, key))
    elif isinstance(real, list) and isinstance(embedded, list):
        if at[-1:] == ("causes",):
            # Other values in messages must not change which causes are compared.
            real, embedded = (
                sorted(causes, key=lambda cause: (cause.get("field", ""), cause.get("reason", "")))
                for causes in (real, embedded)
            )
        for index in range(max(len(real), len(embedded))):
            if index >= len(embedded):
                yield (*at, index), "only real"
            elif index >= len(real):
                yield (*at, index), "only embedded"
            else:
                yield from _changes(real[index], embedded[index], (*at, index))
    elif real != embedded:
        yield at, "differs"


def show_request(step: Step) -> str:
    """Return a request as text."""
    headers = "".join(f"\n    {name}: {value}" for name, value in step.headers.items())
    body = step.body
    if body is not None and not isinstance(body, str | bytes):
        body = json.dumps(body, ensure_ascii=False)
    text = f"    {step.method} {step.path}{headers}" + ("" if body is None else f"\n    {body}")
    during = "".join(f"\n  while it is open:\n{show_request(other)}" for other in step.during)
    return text + during


def show(difference: Difference) -> str:
    """Return the requests, both statuses and a diff of the responses."""
    lines = [show_request(step) for step in difference.case.steps]
    real, embedded = difference.pairing.real, difference.pairing.embedded
    lines.append(f"  real: {real['status']}, embedded: {embedded['status']}")
    lines += [f"    {line}" for line in _diff(real, embedded)]
    return "\n".join(lines)


def _diff(real: Mapping[str, Any], embedded: Mapping[str, Any]) -> Iterator[str]:
    texts = [
        json.dumps(
            {"headers": answer["headers"], "body": answer["body"]}, indent=1, ensure_ascii=False
        ).split("\n")
        for answer in (real, embedded)
    ]
    return difflib.unified_diff(*texts, "real", "embedded", lineterm="", n=2)
