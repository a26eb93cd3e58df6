"""The properties that `prove` checks in every run, each with a name that reports, tests and docs use."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Property:
    """Something that holds for every correct operator."""

    id: str
    title: str
    summary: str
    """What holds, in one sentence."""

    def __str__(self) -> str:
        return self.title


SETTLES: Final = Property(
    "settles",
    "Settles",
    "After the last change and fault the operator settles: it writes nothing more, not even after a restart.",
)
SAME_FINAL_STATE: Final = Property(
    "same-final-state",
    "Same final state",
    "The final state is the same as without faults; after a sequence of specs, the same as with the last spec alone.",
)
NOTHING_LEFT: Final = Property(
    "nothing-left",
    "Nothing left",
    "Deleting the samples removes everything that was created, and no finalizer stays.",
)
NOTHING_DOUBLED: Final = Property(
    "nothing-doubled",
    "Nothing doubled",
    "An owner never has more children of a kind than in the run without faults.",
)
TRUTHFUL_STATUS: Final = Property(
    "truthful-status",
    "Truthful status",
    "observedGeneration is never ahead of the work that was done, and Ready=True means that nothing is left to do.",
)
WITHIN_RIGHTS: Final = Property(
    "within-rights",
    "Within its rights",
    "The operator requests only what its declarations allow; with shards, a replica writes only for objects of its shards.",
)
HEALTHY: Final = Property(
    "healthy",
    "Healthy",
    "No exception is unhandled, no loop is hot, and the number of tasks does not grow with the number of reconciles.",
)
VALID_SPECS: Final = Property(
    "valid-specs",
    "Valid specs",
    "The operator can carry out each spec that the CRD and the webhooks accept: the API server refuses no object derived from it.",
)
INVARIANTS: Final = Property(
    "invariants",
    "Invariants",
    "The author's own invariants hold after each write.",
)

PROPERTIES: Final = (
    SETTLES,
    SAME_FINAL_STATE,
    NOTHING_LEFT,
    NOTHING_DOUBLED,
    TRUTHFUL_STATUS,
    WITHIN_RIGHTS,
    HEALTHY,
    VALID_SPECS,
    INVARIANTS,
)
"""All of them, in the order of reports."""
BY_ID: Final = {found.id: found for found in PROPERTIES}


_VALUES = re.compile(r"""'[^']*'|"[^"]*"|\d+(\.\d+)?|\b[\w.-]+/[\w.-]+""")


def pattern_of(text: str) -> str:
    """Return the first line of a text, with `*` for quoted texts, numbers and object names, which differ between runs."""
    return _VALUES.sub("*", text.partition("\n")[0])


def about_error(error: str) -> str:
    """Return a short form of an error that is the same in each run: the type of an exception, or the message's pattern."""
    name = error.partition(":")[0]
    return name if name.endswith("Error") else pattern_of(error)


class PropertyFailed(AssertionError):
    """A property does not hold in a run."""

    def __init__(self, failed: Property, message: str, about: str = "") -> None:
        super().__init__(f"{failed.title}: {message}")
        self.property = failed
        self.message = message
        self.about: str = about or pattern_of(message)
        """What is violated, such as a resource and a field. Failures with the same property and `about` are one violation."""
