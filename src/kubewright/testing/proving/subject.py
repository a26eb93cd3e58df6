"""What is proved: an operator and samples of its kinds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kubewright.api import JsonObject, Kind, KubewrightError, kind_of
from kubewright.controller import Operator
from kubewright.testing.simulation.invariants import Invariant

NAMESPACE = "prove"
"""The namespace of the samples, unless they name one."""
_WORKLOADS = frozenset({"apps", "batch"})


class ProofError(KubewrightError):
    """An operator cannot be proved, for a reason other than a violation, such as a sample that the API server refuses."""


@dataclass(frozen=True)
class Subject:
    """What is proved: an operator, samples of its kinds, and the author's invariants."""

    make: Callable[[], Operator]
    samples: Sequence[JsonObject]
    invariants: Sequence[Invariant] = ()
    keeps: frozenset[str] = frozenset()
    """Resources such as `pods` whose objects may stay when everything is deleted."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ProofError(
                "no samples to create: write at least one object of the operator's kinds into samples/, or pass -f FILE"
            )

    def declared_change(self, number: int) -> JsonObject | None:
        """Return the next sample with the same kind, namespace and name as this one, or None.

        It is applied as the change of this sample.
        """
        identity = _identity(self.samples[number])
        return next((each for each in self.samples[number + 1 :] if _identity(each) == identity), None)

    def is_change(self, number: int) -> bool:
        """Return True if a sample is a change of an earlier one."""
        identity = _identity(self.samples[number])
        return any(_identity(each) == identity for each in self.samples[:number])


def needs_workloads(operator: Operator) -> bool:
    """Return True if an operator uses Pods or workloads, so that the simulated cluster must run Pods."""
    kinds = [
        kind_of(item)
        for controller in operator.controllers
        for item in (
            controller.kind,
            *(owned.kind for owned in controller.owns),
            *(watched.kind for watched in controller.watches),
            *(need.kind for need in controller.needs),
        )
    ]
    return any(kind.builtin and (kind.group in _WORKLOADS or kind.kind == "Pod") for kind in kinds)


def foreign_kinds(operator: Operator) -> list[type[Any]]:
    """Return the custom kinds that the operator uses but whose CRDs it does not install."""
    own = {(kind_of(kind).group, kind_of(kind).kind) for kind in operator.kinds}
    return [
        item.kind
        for controller in operator.controllers
        for item in (*controller.owns, *controller.watches)
        if isinstance(item.kind, type)
        and not kind_of(item.kind).builtin
        and (kind_of(item.kind).group, kind_of(item.kind).kind) not in own
    ]


def placed(sample: JsonObject, kind: Kind) -> JsonObject:
    """Return a sample in the namespace of the run, unless it names one or its kind has none."""
    if not kind.namespaced or sample["metadata"].get("namespace"):
        return sample
    return {**sample, "metadata": {**sample["metadata"], "namespace": NAMESPACE}}


def _identity(sample: JsonObject) -> tuple[str, str, str, str]:
    metadata = sample["metadata"]
    group = sample["apiVersion"].rpartition("/")[0]
    return group, sample["kind"], metadata.get("namespace") or "", metadata["name"]


def name_of(sample: JsonObject) -> str:
    """Return the kind and name of a sample, for messages."""
    return f"{sample['kind']} {sample['metadata']['name']}"
