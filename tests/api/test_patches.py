"""Differences that become patches, and back."""

import copy
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import (
    Field,
    Meta,
    Model,
    Object,
    PatchError,
    from_wire,
    json_diff,
    json_patch,
    merge_diff,
    merge_patch,
    to_wire,
    typed_diff,
)
from kubewright.api.builtin import apps_v1
from kubewright.api.patches import same

keys = st.sampled_from(["a", "b", "c~", "d/"])
scalars = st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "y", ""])


def values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=12,
    )


documents = st.dictionaries(keys, values(scalars | st.none()), max_size=4)
plain_documents = st.dictionaries(keys, values(scalars), max_size=4)


@given(documents, documents)
def test_a_json_patch_turns_one_object_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    kept = copy.deepcopy(before)
    assert same(json_patch(before, json_diff(before, after)), after)
    assert before == kept


@given(plain_documents, plain_documents)
def test_a_merge_patch_turns_one_object_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert same(merge_patch(before, merge_diff(before, after)), after)


@given(documents)
def test_equal_objects_give_an_empty_patch(document: dict[str, Any]) -> None:
    assert json_diff(document, copy.deepcopy(document)) == []
    assert merge_diff(document, copy.deepcopy(document)) == {}


def test_json_patches_are_small() -> None:
    before = {"items": [{"n": "a"}, {"n": "b"}, {"n": "c"}], "x": 1}
    assert json_diff(before, {"items": [{"n": "a"}, {"n": "c"}], "x": 2}) == [
        {"op": "remove", "path": "/items/1"},
        {"op": "replace", "path": "/x", "value": 2},
    ]
    assert json_diff([1, 2, 3], [0, 1, 2, 3]) == [{"op": "add", "path": "/0", "value": 0}]
    assert json_diff([{"a": 1, "b": 2}], [{"a": 1, "b": 3}]) == [
        {"op": "replace", "path": "/0/b", "value": 3}
    ]
    assert json_diff({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]


@given(
    documents,
    st.lists(st.dictionaries(st.sampled_from(["op", "path", "from", "value"]), values(scalars)), max_size=3),
)
def test_any_patch_applies_or_is_refused(document: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    try:
        json_patch(document, operations)
    except PatchError:
        pass


class Part(Model):
    name: str
    value: str = ""


class Inner(Model):
    text: str = ""
    count: int = 0


class Thing(Object, group="example.com", version="v1"):
    parts: Annotated[list[Part], Field(list_type="map", list_keys=["name"])] = []
    loose: list[Part] = []
    inner: Inner = Inner()
    note: str = ""


def edited(raw: dict[str, Any], change: Any) -> dict[str, Any]:
    before, after = from_wire(Thing, raw), from_wire(Thing, raw)
    change(after)
    return json_patch(raw, typed_diff(before, after, raw))


def test_unknown_fields_survive_an_edit() -> None:
    raw = {
        "metadata": {"name": "a", "later": 1},
        "parts": [{"name": "x", "new": 1}, {"name": "y", "new": 2}],
        "loose": [{"name": "p", "new": 3}],
        "inner": {"text": "t", "new": 4},
        "extra": {"deep": [1]},
    }

    def change(thing: Thing) -> None:
        thing.metadata.labels["l"] = "m"
        thing.parts[1].value = "changed"
        thing.parts.reverse()
        thing.loose[0].value = "v"
        thing.inner = Inner()

    assert edited(raw, change) == {
        "metadata": {"name": "a", "later": 1, "labels": {"l": "m"}},
        "parts": [{"name": "y", "new": 2, "value": "changed"}, {"name": "x", "new": 1}],
        "loose": [{"name": "p", "new": 3, "value": "v"}],
        "inner": {"new": 4},
        "extra": {"deep": [1]},
    }


def test_removing_a_list_element_keeps_unknown_fields_of_the_others() -> None:
    raw = {"metadata": {}, "parts": [{"name": "x", "new": 1}, {"name": "y", "new": 2}]}
    assert edited(raw, lambda thing: thing.parts.pop(0))["parts"] == [{"name": "y", "new": 2}]


def test_defaults_that_are_not_on_the_wire_are_no_change() -> None:
    raw = {"metadata": {"name": "a", "labels": None}, "note": ""}
    assert edited(raw, lambda thing: None) == raw
    assert edited(raw, lambda thing: setattr(thing.inner, "count", 2))["inner"] == {"count": 2}
    assert edited(raw, lambda thing: thing.metadata.labels.update(a="b"))["metadata"]["labels"] == {"a": "b"}
    assert edited(raw, lambda thing: setattr(thing, "note", "n"))["note"] == "n"


def test_edits_built_in_kinds_by_their_list_keys() -> None:
    raw: dict[str, Any] = {
        "spec": {
            "selector": {},
            "template": {"spec": {"containers": [{"name": "a", "future": 1}, {"name": "b", "image": "i"}]}},
        }
    }
    before, after = from_wire(apps_v1.Deployment, raw), from_wire(apps_v1.Deployment, raw)
    after.spec.template.spec.containers[0].image = "new"
    del after.spec.template.spec.containers[1]
    after.spec.replicas = 0
    assert json_patch(raw, typed_diff(before, after, raw)) == {
        "spec": {
            "replicas": 0,
            "selector": {},
            "template": {"spec": {"containers": [{"name": "a", "future": 1, "image": "new"}]}},
        }
    }


part = st.builds(Part, name=st.sampled_from("abc"), value=st.sampled_from(["", "1", "2"]))
thing = st.builds(
    Thing,
    metadata=st.builds(
        Meta, st.just("a"), labels=st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"))
    ),
    parts=st.lists(part, max_size=3, unique_by=lambda each: each.name),
    loose=st.lists(part, max_size=3),
    inner=st.builds(Inner, text=st.sampled_from(["", "t"]), count=st.integers(0, 1)),
)


@given(thing, thing)
def test_a_typed_difference_gives_the_edited_object(before: Thing, after: Thing) -> None:
    raw = {**to_wire(before), "unknown": 1}
    for element in raw.get("parts", []):
        element["secret"] = element["name"]
    patched = json_patch(raw, typed_diff(before, after, raw))
    assert from_wire(Thing, patched) == after
    assert patched["unknown"] == 1
    kept = {part.name for part in before.parts}
    for element in patched.get("parts", []):
        assert element.get("secret") == (element["name"] if element["name"] in kept else None)


def test_a_patch_that_copies_without_end_is_refused() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/n{number}"} for number in range(40)]
    with pytest.raises(
        PatchError, match=r"accumulated size increase of copy is \d+, exceeding the limit 3145728"
    ):
        json_patch({"data": {"text": "x" * 100}}, doubling)


def test_a_patch_may_copy_up_to_the_bound() -> None:
    text = "x" * (3 * 1024 * 1024 - 2)
    assert json_patch({"a": text}, [{"op": "copy", "from": "/a", "path": "/b"}])["b"] == text
    with pytest.raises(PatchError, match="exceeding the limit"):
        json_patch({"a": text + "x"}, [{"op": "copy", "from": "/a", "path": "/b"}])


def test_a_json_patch_sorts_the_maps_that_it_reaches_into() -> None:
    document = {"z": {"y": 1, "x": {"b": 1, "a": 2}}, "list": [{"d": 1, "c": 2}, {"f": 1, "e": 2}]}
    patched = json_patch(
        document,
        [
            {"op": "add", "path": "/list/1/g", "value": {"k": 1, "j": 2}},
            {"op": "copy", "from": "/list/1", "path": "/list/0"},
            {"op": "remove", "path": "/z/y"},
        ],
    )
    assert list(patched) == ["list", "z"]
    assert [list(item) for item in patched["list"]] == [["e", "f", "g"], ["d", "c"], ["e", "f", "g"]]
    assert list(patched["list"][0]["g"]) == ["k", "j"]
    assert list(patched["z"]["x"]) == ["b", "a"]
