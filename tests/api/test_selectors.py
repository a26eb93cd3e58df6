"""Label and field selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import SelectorError, label_selector, parse_fields, parse_labels
from kubewright.api.builtin.meta_v1 import LabelSelector, LabelSelectorRequirement


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (b,c),d", {"a": "c", "d": "x"}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a notin (b)", {}, True),
        ("a>3", {"a": "4"}, True),
        ("a<3", {"a": "x"}, False),
        ("a>3", {}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_selects_by_labels(text: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_labels(text).matches(labels) is selected


def test_reads_the_structured_form() -> None:
    wire = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
    }
    typed = LabelSelector(
        match_labels={"a": "b"},
        match_expressions=[LabelSelectorRequirement(key="c", operator="NotIn", values=["d"])],
    )
    for selector in (label_selector(wire), label_selector(typed)):
        assert str(selector) == "a=b,c notin (d)"
        assert selector.matches({"a": "b"})


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector(None).matches({})
    assert label_selector({}).matches({"a": "b"})


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            '"Near" is not a valid label selector operator',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
    ],
)
def test_refuses_structures_as_the_server_does(wire: dict[str, object], message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(wire)
    assert str(caught.value) == message


def test_selects_by_fields() -> None:
    selector = parse_fields("metadata.name=a,spec.x!=b")
    assert selector.matches(lambda field: {"metadata.name": "a"}.get(field, ""))
    assert not selector.matches(lambda field: {"metadata.name": "a", "spec.x": "b"}.get(field, ""))
    assert selector.exact("metadata.name") == "a"
    assert selector.exact("spec.x") is None


label = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
terms = st.one_of(
    st.builds("{}={}".format, label, label),
    st.builds("{}!={}".format, label, label),
    st.builds("{} in ({},{})".format, label, label, label),
    st.builds("{} notin ({})".format, label, label),
    label,
    label.map("!{}".format),
)


@given(st.lists(terms, max_size=4).map(",".join), st.dictionaries(label, label, max_size=3))
def test_formatted_selectors_select_the_same_objects(text: str, labels: dict[str, str]) -> None:
    selector = parse_labels(text)
    assert parse_labels(str(selector)) == selector
    assert parse_labels(str(selector)).matches(labels) == selector.matches(labels)


@given(st.text(alphabet="ab=!(),<> in\\", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_labels, parse_fields):
        try:
            read(str(read(text)))
        except SelectorError:
            pass


@given(st.text(max_size=6))
def test_field_values_survive_escaping(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    selector = parse_fields(f"a={escaped}")
    assert selector.exact("a") == value
    assert parse_fields(str(selector)) == selector
