"""The capability level of an operator (as on operatorhub.io), derived from its declarations and tests."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kubewright.api import Object, kind_of
from kubewright.controller import Controller, Operator
from kubewright.schema import structural

Capability = Literal["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"]
LEVELS: tuple[Capability, ...] = get_args(Capability)
_STATE_FIELD = re.compile(r"(?i)conditions|ready|phase|state")
_CHOOSES = re.compile(r"(?i)image|version|release")


@dataclass(frozen=True, slots=True)
class Criterion:
    """A requirement of a capability level, whether it is met, and what to do if it is not."""

    level: int
    requirement: str
    met: bool
    way: str


def criteria(operator: Operator, tested: Collection[str]) -> list[Criterion]:
    """Check an operator; `tested` are the kinds with tests on a cluster."""
    return [*_install(operator, tested), *_upgrades(operator), *_lifecycle(operator), *_insights(operator), *_pilot(operator)]  # fmt: skip


def level_of(found: Collection[Criterion]) -> int:
    """Return the highest level whose requirements are all met, including lower levels; 0 if the first is not met."""
    missing = {criterion.level for criterion in found if not criterion.met}
    return next((level for level in range(len(LEVELS)) if level + 1 in missing), len(LEVELS))


def _install(operator: Operator, tested: Collection[str]) -> Iterator[Criterion]:
    silent = [kind_of(each.kind).kind for each in operator.controllers if not _reports_state(each)]
    yield Criterion(1, "objects are reconciled", bool(operator.controllers), "declare a controller")
    yield Criterion(
        1,
        "status reports the state of an object",
        not silent,
        f"give {', '.join(silent)} conditions in the status",
    )
    untested = sorted({kind_of(each.kind).kind for each in operator.controllers} - set(tested))
    yield Criterion(
        1,
        "tests show it on a cluster",
        not untested,
        f"test {', '.join(untested)} with the fixture `cluster`",
    )


def _upgrades(operator: Operator) -> Iterator[Criterion]:
    names = {name for each in operator.controllers for name in _fields(each.kind, "spec")}
    yield Criterion(
        2,
        "what it makes follows its declaration",
        bool(_owned(operator)),
        "declare what is made with owns=[...] and ctx.apply it whole: an upgrade then rolls out",
    )
    yield Criterion(
        2,
        "users choose what runs",
        any(map(_CHOOSES.search, names)),
        "let the spec name an image or a version",
    )
    apart = _unconverted(operator)
    yield Criterion(
        2,
        "old versions are still understood",
        not apart,
        f"convert the versions of {', '.join(apart)}: `kubewright create webhook --conversion`",
    )


def _lifecycle(operator: Operator) -> Iterator[Criterion]:
    kinds = {kind_of(declared).kind for declared in operator.kinds}
    saved = any(kind.endswith(("Backup", "Restore", "Snapshot")) for kind in kinds)
    yield Criterion(
        3,
        "backs up and restores data",
        saved or _owns(operator, "VolumeSnapshot", "CronJob", "Job"),
        "add a kind for backups and one for restores, or own Jobs that create and restore backups",
    )
    yield Criterion(
        3,
        "cleans up external resources",
        any(each.finalizer_name for each in operator.controllers),
        "declare a finalizer",
    )
    yield Criterion(
        3,
        "disruptions are survived",
        _owns(operator, "PodDisruptionBudget"),
        "make a PodDisruptionBudget for what runs",
    )


def _insights(operator: Operator) -> Iterator[Criterion]:
    yield Criterion(
        4,
        "what runs is measured",
        _owns(operator, "ServiceMonitor", "PodMonitor"),
        "make a ServiceMonitor for what runs",
    )
    yield Criterion(
        4, "failures raise alerts", _owns(operator, "PrometheusRule"), "make a PrometheusRule with alerts"
    )


def _pilot(operator: Operator) -> Iterator[Criterion]:
    yield Criterion(
        5,
        "scales automatically",
        _owns(operator, "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ScaledObject"),
        "make a HorizontalPodAutoscaler for what runs",
    )
    watched = any(each.sources for each in operator.controllers)
    yield Criterion(
        5, "it acts on what it measures", watched, "watch measurements with kw.source and act on them"
    )


def _owns(operator: Operator, *kinds: str) -> bool:
    return not _owned(operator).isdisjoint(kinds)


def _owned(operator: Operator) -> set[str]:
    return {kind_of(child.kind).kind for each in operator.controllers for child in each.owns}


def _reports_state(controller: Controller[Any]) -> bool:
    return any(map(_STATE_FIELD.search, _fields(controller.kind, "status")))


def _fields(declared: Any, part: str) -> set[str]:
    if not (isinstance(declared, type) and issubclass(declared, Object)) or kind_of(declared).builtin:
        return set()
    return set(structural(declared).get("properties", {}).get(part, {}).get("properties", {}))


def _unconverted(operator: Operator) -> list[str]:
    """Return the kinds with several versions and no conversion."""
    versions: dict[tuple[str, str], int] = {}
    for kind in map(kind_of, operator.kinds):
        versions[kind.group, kind.kind] = versions.get((kind.group, kind.kind), 0) + 1
    return [key[1] for key, count in versions.items() if count > 1 and key not in operator.webhooks.versions]
