"""A kind with fields of all types that policies read, and functions that use them: each becomes a policy."""

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Literal

import kubewright as kw
from kubewright.admission import (
    AdmissionRequest,
    Problem,
    denied,
    duplicate,
    forbidden,
    invalid,
    mutating_webhook,
    not_supported,
    required,
    validating_webhook,
    warning,
)

MOST = 20
ZONES = ("north", "south")


class Level(Enum):
    """How much is logged."""

    LOW = "low"
    HIGH = "high"


class Port(kw.Model):
    """A port with defaults."""

    name: Annotated[str, kw.Field(max_length=20)]
    number: int = 80
    public: bool = False


class Limits(kw.Model):
    """A part without defaults: the JSON may not have it."""

    soft: int | None = None
    hard: Annotated[int, kw.Field(int64=True)] | None = None
    note: str = ""


class PoolSpec(kw.Model):
    """All types."""

    size: Annotated[int, kw.Field(ge=0, le=50)] = 1
    step: Annotated[int, kw.Field(ge=1, le=9)] = 3
    zone: str
    lead: str | None = None
    note: str = ""
    level: Level = Level.LOW
    mode: Literal["a", "b"] = "a"
    big: Annotated[int, kw.Field(int64=True)] | None = None
    enabled: bool = True
    frozen: bool = False
    tags: Annotated[list[Annotated[str, kw.Field(max_length=20)]], kw.Field(max_items=6)] = []
    numbers: Annotated[list[int], kw.Field(max_items=6)] = [4]
    ports: Annotated[list[Port], kw.Field(max_items=5)] = []
    weights: Annotated[dict[str, int], kw.Field(max_properties=5)] = {}
    limits: Limits = Limits()
    extra: Limits | None = None
    word: Annotated[str | None, kw.Field(name="longWord")] = None


class PoolStatus(kw.Model):
    """A status without defaults in the schema."""

    ready: int = 2


class Pool(kw.Resource[PoolSpec, PoolStatus], group="policies.example.com", version="v1"):
    """A pool."""


@validating_webhook(Pool, object_selector="case=check-numbers")
def check_numbers(pool: Pool) -> Iterator[Problem]:
    """Use comparisons and arithmetic."""
    spec = pool.spec
    doubled = spec.size * 2
    if doubled + spec.step > 60 or spec.size % spec.step == 2:
        yield invalid("spec.size", spec.size, f"does not fit {spec.step}")
    elif 5 <= spec.size // spec.step < 9:
        yield invalid("spec.step", -spec.step, "is too small")
    if spec.big is not None and spec.big > spec.size:
        yield invalid("spec.big", spec.big, "is too big")


@validating_webhook(Pool, object_selector="case=check-texts")
def check_texts(pool: Pool) -> Iterator[Problem]:
    """Use texts, optional fields and constants."""
    if pool.spec.zone not in ZONES:
        yield not_supported("spec.zone", pool.spec.zone, ZONES)
    if pool.spec.lead and pool.spec.lead.startswith("x"):
        yield invalid("spec.lead", pool.spec.lead, "begins with x")
        return
    if pool.spec.lead == pool.spec.zone or len(pool.spec.note) > 3:
        yield forbidden("spec.note", "is not allowed here")
    if pool.spec.word is not None and "q" in pool.spec.word and pool.spec.word.endswith("e"):
        yield duplicate("spec.longWord", pool.spec.word)
    if not pool.spec.note and pool.spec.mode == "b":
        yield required("spec.note")
    if pool.spec.level == Level.HIGH and pool.metadata.name != "a":
        yield denied(f"{pool.metadata.name} in {pool.metadata.namespace} may not log that much")


@validating_webhook(Pool, object_selector="case=check-lists")
def check_lists(pool: Pool) -> list[Problem] | None:
    """Use lists and maps."""
    if any(tag == "bad" or tag.startswith("no") for tag in pool.spec.tags if len(tag) > 1):
        return [invalid("spec.tags", len(pool.spec.tags), "has a bad tag"), denied("bad tags")]
    if not all(port.number < 1000 or port.public for port in pool.spec.ports):
        return [forbidden("spec.ports", "high ports must be public")]
    if any(weight > 5 and name in pool.spec.tags for name, weight in pool.spec.weights.items()):
        return [forbidden("spec.weights", "is too heavy")]
    if pool.spec.weights.get("a", 1) > 3 or pool.metadata.labels.get("b") == "c":
        return [denied("no")]
    if (
        pool.spec.numbers == [4]
        and 4 in pool.spec.numbers
        and "b" in pool.spec.weights
        and pool.spec.weights["b"] == 2
    ):
        return [denied("no numbers")]
    return [denied("no weights")] if any(value == 7 for value in pool.spec.weights.values()) else []


@validating_webhook(Pool, object_selector="case=check-nested")
def check_nested(pool: Pool) -> Iterator[Problem]:
    """Use loops in loops, whose variables in CEL must differ."""
    weights = pool.spec.weights
    if any(any(other > weight for other in weights.values()) for weight in weights.values()):
        yield denied("weights differ")
    if any(any(key in ("a", "no") and weight > 1 for key in pool.spec.tags) for weight in weights.values()):
        yield denied("weights and tags")
    if pool.spec.size == 29:
        yield denied("29")


@validating_webhook(Pool, object_selector="case=check-parts")
def check_parts(pool: Pool) -> Iterator[Problem]:
    """Use parts that may be absent, and a status whose defaults the server does not set."""
    if pool.spec.extra is None:
        if pool.spec.limits.soft is not None and pool.spec.limits.soft > 10:
            yield invalid("spec.limits.soft", pool.spec.limits.soft, "needs extra")
        return
    hard = pool.spec.extra.hard
    if hard is not None and hard < 0:
        yield invalid("spec.extra.hard", hard, "is negative")
    if pool.spec.extra.note != pool.spec.limits.note and not pool.spec.frozen:
        yield forbidden("spec.extra.note", "differs")
    if pool.status.ready == 3:
        yield denied("three")


@validating_webhook(Pool, object_selector="case=check-change")
def check_change(pool: Pool, old: Pool | None, request: AdmissionRequest) -> Iterator[Problem]:
    """Use the old object and the request."""
    if old is None:
        if request.operation != "create" or request.name != pool.metadata.name:
            yield denied("cannot happen")
        return
    if pool.spec.size < old.spec.size:
        yield invalid("spec.size", pool.spec.size, f"may not shrink from {old.spec.size}")
    if pool.spec.lead != old.spec.lead:
        yield forbidden("spec.lead", "is immutable")
    if old.spec.frozen and (pool.spec.tags != old.spec.tags or pool.spec.weights != old.spec.weights):
        yield forbidden("spec", "is frozen")
    if request.operation in ("update", "delete") and not request.dry_run:
        yield denied("only dry runs")


@validating_webhook(Pool, object_selector="case=warn-of-size")
def warn_of_size(pool: Pool) -> Iterator[Problem]:
    """Warn only."""
    if pool.spec.size > MOST:
        yield warning("a large pool")


@validating_webhook(Pool, object_selector="case=protect", on=["delete"])
def protect(pool: Pool) -> Iterator[Problem]:
    """Refuse to delete."""
    if pool.spec.frozen:
        yield denied(f"{pool.metadata.name} is frozen")


@mutating_webhook(Pool, object_selector="case=set-defaults")
def set_defaults(pool: Pool) -> None:
    """Set what is absent."""
    if pool.spec.lead is None:
        pool.spec.lead = pool.metadata.name
        pool.spec.size = 7
    elif pool.spec.lead == "x":
        pool.spec.lead = "y"
    if not pool.spec.note:
        pool.spec.note = "none"
    if pool.spec.big is None and pool.spec.step > 2:
        pool.spec.big = pool.spec.step * 100
    pool.metadata.labels.setdefault("zone", pool.spec.mode)
    if pool.spec.frozen:
        pool.metadata.annotations["example.com/frozen"] = "yes"
    pool.spec.weights.setdefault("a", 1)


@mutating_webhook(Pool, object_selector="case=set-parts")
def set_parts(pool: Pool) -> None:
    """Set fields of parts that may be absent."""
    if pool.spec.limits.soft is None:
        pool.spec.limits.soft = pool.spec.size
    if pool.spec.extra is not None and pool.spec.extra.hard is None:
        pool.spec.extra.hard = pool.spec.size + 1
    pool.spec.frozen = pool.spec.enabled and pool.spec.size > 10


@kw.controller(Pool)
async def pools(pool: Pool, ctx: kw.Context) -> None:
    """Do nothing."""


VALIDATING = [check_numbers, check_texts, check_lists, check_nested, check_parts, check_change]
OPERATOR = kw.Operator(pools, webhooks=[*VALIDATING, warn_of_size, protect, set_defaults])
SECOND = kw.Operator(pools, name="second", webhooks=[set_parts])
