"""Sequences of specs: what a user does with one object, as data; drawn from a seed, and shrunk.

A sequence applies specs to one sample, one after the other, and edits and deletes the object's children by hand in between.
Systematic sequences come first: the sample, then the sample with one field changed. `SpecTarget` creates them for one
sample; the values come from `values`.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, cast

import msgspec

from kubewright.api import JsonObject
from kubewright.schema import ABSENT
from kubewright.schema.json_tree import Schema
from kubewright.testing.proving.values import (
    SpecPath,
    SpecRules,
    canonical,
    changed,
    draw,
    equal,
    other_values,
    smallest,
    value_at,
)

_CHILDREN = 1_000_000
_ATTEMPTS = 12
_DELETES = 4
_EDITS = 12
"""Edits of children by hand in one sequence."""
ORDINARY_KEY = "key"
"""A map key that every operator should be able to handle."""
_TOP = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class ApplySpec:
    """Apply the object with these fields, such as `{"spec":{"size":3}}`; the first one creates it."""

    fields: str

    @property
    def value(self) -> JsonObject:
        """Return the fields as an object."""
        return cast("JsonObject", msgspec.json.decode(self.fields))


@dataclass(frozen=True, slots=True)
class EditChild:
    """Edit a field of a child by hand: the edit with the number `choice`, modulo the number of possible edits."""

    choice: int


@dataclass(frozen=True, slots=True)
class DeleteChild:
    """Delete a child by hand: the child with the number `choice`, modulo the number of children."""

    choice: int


SpecStep = ApplySpec | EditChild | DeleteChild
_STEPS: dict[str, type[SpecStep]] = {each.__name__: each for each in (ApplySpec, EditChild, DeleteChild)}


@dataclass(frozen=True, slots=True)
class SpecSequence:
    """What is done with one sample."""

    sample: int
    """The number of the sample."""
    steps: tuple[SpecStep, ...]

    @property
    def specs(self) -> list[ApplySpec]:
        """Return the specs in their order."""
        return [step for step in self.steps if isinstance(step, ApplySpec)]

    def alone(self) -> "SpecSequence":
        """Return the sequence that only creates the object with the last spec."""
        return SpecSequence(self.sample, (self.specs[-1],))


def fields_of(sample: JsonObject) -> JsonObject:
    """Return the fields of an object that a user sets: all but apiVersion, kind, metadata and status."""
    return {name: value for name, value in sample.items() if name not in _TOP}


class SpecTarget:
    """One sample whose specs are explored."""

    def __init__(
        self, number: int, sample: JsonObject, schema: Schema, declared: JsonObject | None = None
    ) -> None:
        self.number = number
        self.fields: JsonObject = fields_of(sample)
        self.rules: SpecRules = SpecRules(schema, sample)
        self._declared = None if declared is None else fields_of(declared)

    def single_changes(self) -> list[SpecSequence]:
        """Return a sequence for each interesting other value of each field: the sample, then the changed sample.

        The first value of each field comes first, then the second value of each, and so on. Before them come a sequence
        in which the children of the sample are deleted by hand, and one in which they are edited.
        """
        first = ApplySpec(canonical(self.fields))
        by_hand = [
            SpecSequence(self.number, (first, *map(DeleteChild, range(_DELETES)))),
            SpecSequence(self.number, (first, *map(EditChild, range(_EDITS)))),
        ]
        rows: list[list[SpecSequence]] = []
        if self._declared is not None:
            rows.append([SpecSequence(self.number, (first, ApplySpec(canonical(self._declared))))])
        for field in self.rules.fields(self.fields):
            found = [changed(self.fields, field.path, value) for value in other_values(field)]
            rows.append(
                [
                    SpecSequence(self.number, (first, ApplySpec(canonical(each))))
                    for each in found
                    if self.rules.accepts(each)
                ]
            )
        found = [each for row in zip_longest(*rows) for each in row if each is not None]
        return list(dict.fromkeys((*by_hand, *found)))

    def drawn(self, rng: random.Random) -> SpecSequence:
        """Return a random sequence."""
        value = self.fields if rng.random() < 0.7 else self._other(self.fields, rng)
        steps: list[SpecStep] = [ApplySpec(canonical(value))]
        earlier = [value]
        for _ in range(rng.randint(1, 5)):
            what = rng.random()
            if what < 0.1:
                steps.append(EditChild(rng.randrange(_CHILDREN)))
                continue
            if what < 0.2:
                steps.append(DeleteChild(rng.randrange(_CHILDREN)))
                continue
            value = rng.choice(earlier) if what < 0.35 else self._other(value, rng)
            if ApplySpec(canonical(value)) != steps[-1]:
                steps.append(ApplySpec(canonical(value)))
            earlier.append(value)
        if rng.random() < 0.4 and steps[-1] != (back := ApplySpec(canonical(self.fields))):
            steps.append(back)
        return SpecSequence(self.number, tuple(steps))

    def _other(self, value: JsonObject, rng: random.Random) -> JsonObject:
        """Return a random other spec that the schema allows; the given one if none is found."""
        for _ in range(_ATTEMPTS):
            found = self._candidate(value, rng)
            if self.rules.accepts(found, value):
                return found
        return value

    def _candidate(self, value: JsonObject, rng: random.Random) -> JsonObject:
        what = rng.random()
        if what < 0.06:
            return {}
        if what < 0.12:
            return smallest(self.rules.schema)
        if what < 0.2:
            return draw(self.rules.schema, rng)
        for _ in range(1 if what < 0.75 else rng.randint(2, 4)):
            fields = self.rules.fields(value)
            if not fields:
                break
            field = rng.choice(fields)
            others = other_values(field)
            if rng.random() < 0.3 or not others:
                others = [draw(field.schema, rng, field.name)]
            value = changed(value, field.path, rng.choice(others))
        return value


def targets(
    samples: Sequence[JsonObject], schemas: Mapping[int, Schema], changes: Mapping[int, JsonObject]
) -> list[SpecTarget]:
    """Return the samples whose specs can be explored: those of kinds with a schema."""
    return [
        SpecTarget(number, samples[number], schema, changes.get(number))
        for number, schema in sorted(schemas.items())
    ]


def drawn_sequence(seed: int, found: Sequence[SpecTarget]) -> SpecSequence:
    """Return a random sequence for one of the samples, drawn from a seed."""
    rng = random.Random(f"specs {seed}")
    return rng.choice(found).drawn(rng)


# Smaller sequences


def smaller_sequences(sequence: SpecSequence, target: SpecTarget) -> Iterator[SpecSequence]:
    """Yield sequences that are a little simpler: fewer steps, then specs that are closer to the sample."""
    steps = sequence.steps
    if len(steps) > 2:
        if not isinstance(steps[-1], ApplySpec):
            yield SpecSequence(sequence.sample, (sequence.specs[-1], steps[-1]))
        yield sequence.alone()
    for number in range(len(steps)):
        left = (*steps[:number], *steps[number + 1 :])
        if left and isinstance(left[0], ApplySpec):
            yield SpecSequence(sequence.sample, left)
    for number, step in enumerate(steps):
        if isinstance(step, ApplySpec):
            for fields in _closer(step.value, target):
                yield SpecSequence(
                    sequence.sample,
                    (*steps[:number], replace(step, fields=canonical(fields)), *steps[number + 1 :]),
                )


def _closer(fields: JsonObject, target: SpecTarget) -> Iterator[JsonObject]:
    base = target.fields
    paths = list(differing(base, fields))
    if not paths:
        return
    yield base
    found = [changed(fields, path, value_at(base, path)) for path in paths]
    for path in paths:
        found += [
            changed(fields, path, value)
            for value in _smaller_values(value_at(fields, path), value_at(base, path))
        ]
    for each in found:
        if target.rules.accepts(each):
            yield each


def _smaller_values(value: Any, base: Any) -> Iterator[Any]:
    """Yield values that are shorter, or closer to the value of the sample."""
    if value is ABSENT and isinstance(base, dict):
        # One missing field is closer to the sample than all of them.
        known = cast(JsonObject, base)
        yield from ({each: inner for each, inner in known.items() if each != name} for name in known)
    if isinstance(value, bool) or value is ABSENT:
        return
    if isinstance(value, int):
        near = base if isinstance(base, int) and not isinstance(base, bool) else 0
        yield from (value - step for step in _halves(value - near))
    elif isinstance(value, str):
        yield from (value[: len(value) - step] for step in _halves(len(value)))
        if len(value) > 1:
            yield value[1:]
    elif isinstance(value, list):
        found = cast("list[Any]", value)
        yield from (found[:number] + found[number + 1 :] for number in range(len(found)))
        for number, item in enumerate(found):
            for smaller in _smaller_values(item, ABSENT):
                yield [*found[:number], smaller, *found[number + 1 :]]
    elif isinstance(value, dict):
        entries = cast(JsonObject, value)
        for name, item in entries.items():
            yield {each: inner for each, inner in entries.items() if each != name}
            if ORDINARY_KEY not in entries and not (isinstance(base, dict) and name in base):
                # If the sequence fails with this key too, the original key is not the cause (see `advice`).
                yield {ORDINARY_KEY if each == name else each: inner for each, inner in entries.items()}
            inner_base: Any = cast(JsonObject, base).get(name, ABSENT) if isinstance(base, dict) else ABSENT
            for smaller in _smaller_values(item, inner_base):
                yield {**entries, name: smaller}


def _halves(distance: int) -> Iterator[int]:
    """Yield the distance, its half, its quarter and so on, up to one step in the same direction."""
    while distance:
        yield distance
        distance = int(distance / 2)


def differing(base: Any, value: Any, path: SpecPath = ()) -> Iterator[SpecPath]:
    """Yield the paths at which two values differ, as deep as possible."""
    if isinstance(base, dict) and isinstance(value, dict):
        old, new = cast(JsonObject, base), cast(JsonObject, value)
        for name in {**old, **new}:
            yield from differing(old.get(name, ABSENT), new.get(name, ABSENT), (*path, name))
        return
    if isinstance(base, list) and isinstance(value, list):
        before, after = cast("list[Any]", base), cast("list[Any]", value)
        if len(before) == len(after):
            for number, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from differing(one, other, (*path, number))
            return
    if not equal(cast(Any, base), cast(Any, value)):
        yield path


def sequence_to_json(sequence: SpecSequence) -> JsonObject:
    """Return a sequence as JSON."""
    return {
        "sample": sequence.sample,
        "steps": [{"do": type(step).__name__, **msgspec.to_builtins(step)} for step in sequence.steps],
    }


def sequence_from_json(wire: JsonObject) -> SpecSequence:
    """Return the sequence that `sequence_to_json` encoded."""
    steps = tuple(
        msgspec.convert({name: value for name, value in each.items() if name != "do"}, _STEPS[each["do"]])
        for each in wire["steps"]
    )
    return SpecSequence(wire["sample"], steps)
