"""anyOf, oneOf, allOf and not, with the choice of the failure that tells most."""

from collections.abc import Sequence
from typing import Any

from kubewright.api import problems
from kubewright.schema.correlation import Correlation
from kubewright.schema.findings import Check, Finding


def any_of(options: Sequence[Check]) -> Check:
    """Make the check that at least one option passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[Finding]) -> int:
        best: tuple[int, list[Finding]] = (-1, [])
        for option in options:
            inner: list[Finding] = []
            reached = option(value, correlation, path, inner)
            if not inner:
                return reached
            if reached > best[0]:
                best = (reached, inner)
        found.append(_general(path, "must validate at least one schema (anyOf)"))
        found += best[1]
        return best[0]

    return check


def one_of(options: Sequence[Check]) -> Check:
    """Make the check that exactly one option passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[Finding]) -> int:
        best: tuple[int, list[Finding]] = (-1, [])
        passed: list[int] = []
        for option in options:
            inner: list[Finding] = []
            reached = option(value, correlation, path, inner)
            if not inner:
                passed.append(reached)
            elif reached > best[0]:
                best = (reached, inner)
        if len(passed) == 1:
            return passed[0]
        story = f"Found {len(passed)} valid alternatives" if passed else "Found none valid"
        found.append(_general(path, f"must validate one and only one schema (oneOf). {story}"))
        if passed:
            return 0
        found += best[1]
        return best[0]

    return check


def all_of(parts: Sequence[Check]) -> Check:
    """Make the check that every part passes."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[Finding]) -> int:
        reached = passed = 0
        for part in parts:
            inner: list[Finding] = []
            reached += part(value, correlation, path, inner)
            passed += not inner
            found += inner
        if passed != len(parts):
            story = "" if passed else ". None validated"
            found.append(_general(path, f"must validate all the schemas (allOf){story}"))
        return reached

    return check


def none_of(part: Check) -> Check:
    """Make the check that a part does not pass."""

    def check(value: Any, correlation: Correlation | None, path: str, found: list[Finding]) -> int:
        inner: list[Finding] = []
        part(value, correlation, path, inner)
        if not inner:
            found.append(_general(path, "must not validate the schema (not)"))
        return 0

    return check


def _general(path: str, text: str) -> Finding:
    return Finding("general", path, f"{problems.quoted(path)} {text}")
