"""Objects as caches keep them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import DecodeError, ObjectKey, PartialMeta, decode_event, encode, raw_object, split_list


def item(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Foo",
        "metadata": {"name": name, "namespace": "n", **metadata},
        "spec": {"text": "x" * 10},
    }


def test_splits_a_list_into_bytes_and_metadata() -> None:
    items = [item("a", uid="1", labels={"x": "y"}), item("b", creationTimestamp="2024-01-02T03:04:05Z")]
    page = {"metadata": {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}, "items": items}
    found = split_list(json.dumps(page).encode())
    assert (found.resource_version, found.continue_, found.remaining) == ("7", "more", 3)
    assert [json.loads(each.raw) for each in found.items] == items
    assert [each.key for each in found.items] == [ObjectKey("n", "a"), ObjectKey("n", "b")]
    assert found.items[0].meta.labels == {"x": "y"}
    assert found.items[1].meta.creation_timestamp == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert type(found.items[0].raw) is bytes


def test_reads_lists_with_nulls() -> None:
    assert split_list(b'{"metadata":{},"items":null}').items == []
    page = b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","labels":null,"finalizers":null}}]}'
    assert split_list(page).items[0].meta == PartialMeta(name="a")


def test_keeps_owners_and_unread_managed_fields() -> None:
    owner = {"apiVersion": "v1", "kind": "Foo", "name": "f", "uid": "u", "controller": True}
    raw = json.dumps(item("a", ownerReferences=[owner], managedFields=[{"manager": "m"}])).encode()
    found = raw_object(raw)
    assert found.raw is raw
    assert found.meta.owner_references[0].controller is True
    assert json.loads(bytes(found.meta.managed_fields)) == [{"manager": "m"}]


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_reads_events(kind: str) -> None:
    event = decode_event(json.dumps({"type": kind, "object": item("a", resourceVersion="9")}).encode())
    assert (event.type, event.object.meta.resource_version, event.status) == (kind, "9", None)
    assert json.loads(event.object.raw) == item("a", resourceVersion="9")


def test_reads_the_status_of_an_error_event() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"message":"too old","reason":"Expired","code":410}}'
    status = decode_event(line).status
    assert status is not None
    assert (status.reason, status.code, status.message) == ("Expired", 410, "too old")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"type":"LATER","object":{}}', b'{"type":"ADDED"}', b"<html>"]
)
def test_refuses_documents_that_are_not_events(line: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_event(line)


@pytest.mark.parametrize("page", [b"", b"{}", b'{"metadata":{},"items":{}}', b'{"metadata":{},"items":[{}]}'])
def test_refuses_documents_that_are_not_lists(page: bytes) -> None:
    with pytest.raises(DecodeError):
        split_list(page)


names_of_members = st.sampled_from(["apiVersion", "items", "kind", "metadata", 'a"},{', "}]", "x"])
bodies = st.dictionaries(
    names_of_members,
    st.recursive(
        st.none() | st.integers(0, 9) | st.sampled_from(['},{"metadata":{"name":"', '"items":[{', "}]", "é"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names_of_members, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


@given(st.lists(bodies, max_size=5), st.booleans(), st.booleans())
def test_a_page_is_split_at_the_ends_of_its_objects(
    parts: list[dict[str, Any]], typed: bool, meta_first: bool
) -> None:
    kind = {} if typed else {"apiVersion": "example.com/v1", "kind": "Widget"}
    objects = [
        {
            **kind,
            "metadata": {"name": f"n{number}"},
            "spec": part,
            "nested": [{**kind, "metadata": {"name": "x"}}] * 2,
        }
        for number, part in enumerate(parts)
    ]
    listed, meta = {"items": objects}, {"metadata": {"resourceVersion": "7", "continue": "c"}}
    page = split_list(encode({**meta, **listed} if meta_first else {**listed, "kind": "WidgetList", **meta}))
    assert [item.raw for item in page.items] == [encode(obj) for obj in objects]
    assert [item.meta.name for item in page.items] == [f"n{number}" for number in range(len(parts))]
    assert (page.resource_version, page.continue_) == ("7", "c")


@pytest.mark.parametrize(
    "page",
    [
        b'{"metadata":{"items":[{"metadata":{}}]},"items":[]}',
        b'{"items":[],"metadata":{"items":[{"metadata":{}}]}}',
        b'{"metadata":{},"items":null}',
    ],
)
def test_nested_lists_do_not_count_as_items(page: bytes) -> None:
    assert split_list(page).items == []


def test_objects_of_a_page_can_be_kept_without_it() -> None:
    page = split_list(b'{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}')
    first, second = page.items
    assert (first.raw, second.raw) == (b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}')
    assert first.owned() == first
    assert first.owned().data == first.raw
    assert first.owned().owned().data is not first.data
    assert first != second


def test_objects_with_many_managers_still_share_their_page() -> None:
    entries = [{"apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "manager": name} for name in "ab"]
    objects = [
        {"apiVersion": "example.com/v1", "kind": "W", "metadata": {"managedFields": entries, "name": name}}
        for name in "xyz"
    ]
    data = encode({"apiVersion": "example.com/v1", "items": objects, "kind": "WList", "metadata": {}})
    page = split_list(data)
    assert [item.raw for item in page.items] == [encode(obj) for obj in objects]
    assert all(item.data is data for item in page.items)


def test_labels_and_annotations_are_read_when_asked_for() -> None:
    page = split_list(encode({"metadata": {}, "items": [item("a", labels={"x": "y"}, annotations=None)] * 2}))
    for found in (page.items[0], page.items[0].owned(), raw_object(page.items[1].raw)):
        assert (found.meta.labels, found.meta.annotations) == ({"x": "y"}, {})
    with pytest.raises(DecodeError, match="labels and annotations are texts"):
        _ = raw_object(b'{"metadata":{"labels":{"a":1}}}').meta.labels
