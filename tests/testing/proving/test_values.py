"""Values that a schema allows: they are valid, the same for the same seed, and cover bounds and empties."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.schema import ABSENT, validate
from kubewright.testing.proving.sequences import (
    ApplySpec,
    DeleteChild,
    EditChild,
    SpecSequence,
    SpecTarget,
    differing,
    drawn_sequence,
    sequence_from_json,
    sequence_to_json,
    smaller_sequences,
)
from kubewright.testing.proving.values import SpecField, SpecRules, changed, draw, other_values, smallest

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "port": {"type": "integer"},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "name": {"type": "string", "pattern": "^[a-z]{2,4}(-[0-9]+)?$"},
        "title": {"type": "string", "minLength": 2, "maxLength": 5},
        "mode": {"type": "string", "enum": ["fast", "slow"]},
        "when": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "nullable": True},
        "target": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "flags": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "maxItems": 3,
            "items": {"type": "string"},
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["number"],
            "items": {
                "type": "object",
                "required": ["number"],
                "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 65535}},
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "on": {"type": "boolean", "default": True},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.port) || self.port >= self.size", "message": "too small"}
    ],
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": SPEC,
        "status": {"type": "object"},
    },
}
SAMPLE: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Jar",
    "metadata": {"name": "honey"},
    "spec": {"size": 3, "port": 80, "labels": {"a": "b"}, "flags": ["x"]},
}
TARGET = SpecTarget(0, SAMPLE, SCHEMA)


def field(name: str, value: Any = ABSENT) -> SpecField:
    return SpecField(("spec", name), SPEC["properties"][name], value, optional=name != "size")


@given(st.integers(0, 10**6))
def test_a_drawn_value_matches_each_keyword_of_its_schema(seed: int) -> None:
    rng = random.Random(seed)
    for name, schema in SPEC["properties"].items():
        value = draw(schema, rng, name)
        assert validate(schema, value) == [], (name, value)


@pytest.mark.parametrize("name", SPEC["properties"])
def test_other_values_of_a_field_are_valid_and_differ(name: str) -> None:
    found = other_values(field(name))
    assert found
    present = [value for value in found if value is not ABSENT]
    assert all(validate(SPEC["properties"][name], value) == [] for value in present)
    assert len({repr(value) for value in found}) == len(found)


def test_other_values_have_bounds_empties_texts_in_unicode_and_the_removed_field() -> None:
    assert {1, 9, 2, 4} <= set(other_values(field("size", 3)))
    assert ABSENT in other_values(field("labels", {"a": "b"}))
    assert ABSENT not in other_values(field("size", 3))
    assert {} in other_values(field("labels", {"a": "b"}))
    assert [] in other_values(field("flags", ["x"]))
    assert None in other_values(field("note", "text"))
    assert {"", "🙂"} <= {value for value in other_values(field("note", "text")) if isinstance(value, str)}
    assert max(value for value in other_values(field("port", 80)) if value is not ABSENT) >= 65536


PATTERNS = (
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    r"^([a-z]{1,20}/)?[a-z]{2,30}$",
    r"^(x|yy|z+)$",
    r"^v[0-9]+(\.[0-9]+){2}$",
    r"^(a?b?)*$",
)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("most", [None, 30, 100])
def test_texts_with_a_pattern_are_tried_as_long_as_they_may_be(pattern: str, most: int | None) -> None:
    schema = {"type": "string", "pattern": pattern} | ({} if most is None else {"maxLength": most})
    found = other_values(SpecField(("spec", "name"), schema, "a", optional=False))
    # What the third pattern matches has at most 51 characters.
    longest = min(most or 254, 51 if "{2,30}" in pattern else 254)
    assert max(map(len, found)) == longest
    if longest > 64:
        assert 64 in map(len, found)
    assert all(validate(schema, value) == [] for value in found)


def test_texts_with_a_pattern_are_drawn_long_now_and_then() -> None:
    schema = {"type": "string", "pattern": PATTERNS[0]}
    lengths = [len(draw(schema, random.Random(seed))) for seed in range(200)]
    assert 64 in lengths
    assert 254 in lengths
    assert sum(length < 20 for length in lengths) > 100


def test_a_scale_stays_small() -> None:
    schema = {"type": "integer", "minimum": 0}
    found = other_values(SpecField(("spec", "replicas"), schema, 3, optional=True))
    assert 0 in found
    assert max(value for value in found if value is not ABSENT) <= 5


def test_the_smallest_value_has_only_what_is_required() -> None:
    assert smallest(SPEC) == {"size": 1}


def test_sequences_follow_from_their_seed_alone() -> None:
    before = [drawn_sequence(seed, [TARGET]) for seed in range(30)]
    random.seed(7)
    assert [drawn_sequence(seed, [TARGET]) for seed in range(30)] == before
    assert len(set(before)) > 25


@given(st.integers(0, 10**6))
def test_every_spec_of_a_sequence_is_one_that_the_schema_and_its_rules_allow(seed: int) -> None:
    rules = SpecRules(SCHEMA, SAMPLE)
    sequence = drawn_sequence(seed, [TARGET])
    assert isinstance(sequence.steps[0], ApplySpec)
    assert all(rules.accepts(step.value) for step in sequence.specs)
    assert sequence_from_json(sequence_to_json(sequence)) == sequence


@pytest.mark.parametrize("seed", range(12))
def test_smaller_sequences_are_valid_and_different(seed: int) -> None:
    sequence = drawn_sequence(seed, [TARGET])
    for smaller in smaller_sequences(sequence, TARGET):
        assert isinstance(smaller.steps[0], ApplySpec)
        assert len(smaller.steps) <= len(sequence.steps)
        assert smaller != sequence
        assert all(TARGET.rules.accepts(step.value) for step in smaller.specs)


def test_single_changes_change_one_field_each_and_touch_all_fields() -> None:
    paths: set[tuple[str | int, ...]] = set()
    for sequence in TARGET.single_changes():
        if len(sequence.specs) == 2:
            [path] = differing(sequence.specs[0].value, sequence.specs[1].value)
            paths.add(path[:2])
    assert {("spec", name) for name in SPEC["properties"]} <= paths


def test_children_are_edited_and_deleted_by_hand_in_sequences() -> None:
    steps = [step for seed in range(60) for step in drawn_sequence(seed, [TARGET]).steps]
    assert any(isinstance(step, EditChild) for step in steps)
    assert any(isinstance(step, DeleteChild) for step in steps)


def test_a_rule_of_the_schema_is_respected() -> None:
    assert not TARGET.rules.accepts(changed(TARGET.fields, ("spec", "port"), 2))
    assert all(
        step.value["spec"].get("port", 9) >= step.value["spec"]["size"]
        for seed in range(40)
        for step in drawn_sequence(seed, [TARGET]).specs
    )


def test_the_last_spec_alone_is_the_end_of_a_sequence() -> None:
    first, last = ApplySpec('{"spec":{"size":1}}'), ApplySpec('{"spec":{"size":2}}')
    sequence = SpecSequence(0, (first, last, DeleteChild(0)))
    assert sequence.alone() == SpecSequence(0, (last,))
