"""Properties of pruning, defaulting and validation for arbitrary schemas and values."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.schema import apply_defaults, prune, validate

_NAMES = st.sampled_from(["a", "b", "c"])
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.text("ab", max_size=3)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=8,
)
_LEAVES = st.sampled_from(
    [
        {"type": "string", "maxLength": 2},
        {"type": "string", "default": "a"},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "default": 3},
        {"type": "number"},
        {"type": "boolean", "nullable": True},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-preserve-unknown-fields": True},
    ]
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(_NAMES, inner, max_size=3)
    return st.one_of(
        st.builds(
            lambda p, r: {"type": "object", "properties": p, "required": r},
            fields,
            st.lists(_NAMES, max_size=1),
        ),
        st.builds(lambda i: {"type": "array", "items": i, "maxItems": 2}, inner),
        st.builds(lambda i: {"type": "array", "items": i, "x-kubernetes-list-type": "set"}, inner),
        st.builds(lambda i: {"type": "object", "additionalProperties": i}, inner),
    )


_SCHEMAS = st.recursive(_LEAVES, _objects, max_leaves=6)


@given(_SCHEMAS, _VALUES)
def test_pruning_twice_drops_nothing_more(schema: Any, value: Any) -> None:
    prune(schema, value, resource=False)
    before = deepcopy(value)
    assert prune(schema, value, resource=False) == []
    assert value == before


@given(_SCHEMAS, _VALUES)
def test_defaulting_twice_changes_nothing_more(schema: Any, value: Any) -> None:
    apply_defaults(schema, value)
    before = deepcopy(value)
    apply_defaults(schema, value)
    assert value == before


@given(_SCHEMAS, _VALUES)
def test_validation_does_not_change_the_value_and_every_error_has_a_message(schema: Any, value: Any) -> None:
    before = deepcopy(value)
    errors = validate(schema, value)
    assert value == before
    assert all(str(error) for error in errors)


@given(_SCHEMAS, _VALUES)
def test_keywords_never_reject_an_unchanged_value(schema: Any, value: Any) -> None:
    schema, whole = {"type": "object", "properties": {"a": schema}}, {"a": value}
    prune(schema, whole, resource=False)
    assert validate(schema, whole, old=deepcopy(whole)) == []


@given(_SCHEMAS, _VALUES, _VALUES)
def test_an_update_never_has_more_errors_than_a_create(schema: Any, new: Any, old: Any) -> None:
    assert set(map(str, validate(schema, new, old=old))) <= set(map(str, validate(schema, new)))


def test_an_unchanged_part_that_fails_one_option_counts_as_valid_in_a_change() -> None:
    number = {"type": "integer"}
    schema = {
        "type": "object",
        "properties": {"a": number, "b": number, "c": number},
        "oneOf": [{"properties": {"a": {"minimum": 5}}}, {"properties": {"b": {"minimum": 5}}}],
    }
    old, new = {"a": 1, "b": 7, "c": 1}, {"a": 1, "b": 7, "c": 2}
    assert validate(schema, new) == []
    # `a` is less than 5 as before, which an update ignores: both options match then, and only one may.
    (error,) = validate(schema, new, old=old)
    assert "Found 2 valid alternatives" in str(error)
