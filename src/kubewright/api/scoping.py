"""Which part of a cluster an operator works on: namespaces by label, and objects by label."""

import re

import msgspec

from kubewright.api.errors import DeclarationError, SelectorError
from kubewright.api.selectors.labels import Requirement, SelectorOperator, parse_labels
from kubewright.api.sharding import shard_hash

_SLUG_LENGTH = 24
_HASH_MASK = 2**32 - 1
_MAX_NAME = 200
"""Shorter than the longest name of a Lease, because shards add to it."""
_EQUIVALENT: dict[SelectorOperator, SelectorOperator] = {"==": "=", "in": "=", "notin": "!="}


class NamespaceSelector(msgspec.Struct, frozen=True):
    """Work in the namespaces with these labels, and follow changes of the labels: `NamespaceSelector("team=a")`.

    `labels` has kubectl's syntax. A namespace that gets the labels is watched from then on; one that loses them is left as
    it is: nothing in it is deleted, and no finalizer runs. Cluster-scoped kinds are not affected.
    """

    labels: str

    def __post_init__(self) -> None:
        try:
            matcher = parse_labels(self.labels)
        except SelectorError as error:
            raise DeclarationError(f"NamespaceSelector({self.labels!r}): {error}") from None
        if not matcher:
            raise DeclarationError(
                "NamespaceSelector(''): an empty selector matches all namespaces, which is the default"
            )

    def example(self) -> dict[str, str]:
        """Return labels that match, for a namespace of a simulation."""
        found: dict[str, str] = {}
        for requirement in parse_labels(self.labels).requirements:
            match requirement.operator:
                case "=" | "==" | "in":
                    found[requirement.key] = requirement.values[0]
                case "exists":
                    found.setdefault(requirement.key, "true")
                case "gt" | "lt":
                    step = 1 if requirement.operator == "gt" else -1
                    found[requirement.key] = str(int(requirement.values[0]) + step)
                case "notin" | "!=" | "!":
                    pass
        return found

    def __str__(self) -> str:
        return self.labels


def normal_selector(labels: str) -> str:
    """Return a label selector in a form that selectors of the same requirements share; raise SelectorError."""
    return ",".join(sorted({str(_normal(requirement)) for requirement in parse_labels(labels).requirements}))


def combined_selector(*selectors: str) -> str:
    """Return the label selector that matches what all of these match."""
    return ",".join(filter(None, selectors))


def lease_name(operator: str, selector: str) -> str:
    """Return the name of the Lease of an operator, or of the part of it that works on the objects of a label selector.

    It is derived from the requirements alone, so that `track=canary` and `track in (canary)` never work side by side.
    """
    if not selector:
        return operator
    normal = normal_selector(selector)
    words = normal.replace("!=", "-not-").replace("!", "not-")
    slug = re.sub("[^a-z0-9]+", "-", words.lower()).strip("-")[:_SLUG_LENGTH].strip("-")
    suffix = f"-{slug}-{shard_hash(normal) & _HASH_MASK:08x}"
    return operator[: _MAX_NAME - len(suffix)].rstrip("-.") + suffix


def _normal(requirement: Requirement) -> Requirement:
    values = tuple(sorted(set(requirement.values)))
    operator = requirement.operator
    if len(values) == 1:
        operator = _EQUIVALENT.get(operator, operator)
    return Requirement(requirement.key, operator, values)
