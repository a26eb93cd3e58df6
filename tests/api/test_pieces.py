"""An object that is nested too deeply for the decoder does not hide the other ones."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api import DecodeError, Meta, decode, decode_events, parse, raw_object, split_list
from kubewright.api.pieces import elements, members

DEPTH = 9_000
"""About what an API server takes; the decoder reads as much since Python 3.14."""
TOO_DEEP = 500_000
"""More than the decoder reads in any version of Python."""

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def widget(name: str, *, deep: bool = False, depth: int = DEPTH) -> bytes:
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": {"a,]": 'b"}'}}
    body = msgspec.json.encode({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta})
    if not deep:
        return body
    nested = b'{"a":[' * (depth // 2) + b"1" + b"]}" * (depth // 2)
    # The server notes who manages each of the fields, as deep as they are.
    fields = b',"managedFields":[{"manager":"other","fieldsV1":' + nested + b"}]"
    return body[:-2] + fields + b'},"spec":' + nested + b"}"


@settings(max_examples=40)
@given(st.dictionaries(st.text(), values))
def test_members_returns_the_members_of_an_object(value: dict[str, object]) -> None:
    for spaced in (msgspec.json.encode(value), msgspec.json.format(msgspec.json.encode(value))):
        found = members(spaced)
        assert {name: msgspec.json.decode(piece) for name, piece in found.items()} == value


@settings(max_examples=40)
@given(st.lists(values))
def test_elements_returns_the_elements_of_a_list(value: list[object]) -> None:
    for spaced in (msgspec.json.encode(value), msgspec.json.format(msgspec.json.encode(value))):
        assert [msgspec.json.decode(piece) for piece in elements(spaced)] == value


@pytest.mark.parametrize("text", [b"", b"{", b'{"a"}', b"{1:2}", b'{"a":{"b":1}'])
def test_values_that_are_not_objects_are_refused(text: bytes) -> None:
    with pytest.raises(DecodeError):
        members(text)


def test_the_metadata_of_an_object_is_read_however_deep_the_rest_is() -> None:
    found = raw_object(widget("a", deep=True))
    assert (found.meta.name, found.meta.uid, found.meta.labels) == ("a", "uid-a", {"a,]": 'b"}'})
    assert found.raw == widget("a", deep=True)


def test_a_deep_object_in_a_list_leaves_the_others_readable() -> None:
    page = split_list(
        b'{"metadata":{"resourceVersion":"9","continue":"next"},"items":['
        + b",".join([widget("a"), widget("deep", deep=True), widget("b")])
        + b"]}"
    )
    assert [item.meta.name for item in page.items] == ["a", "deep", "b"]
    assert (page.resource_version, page.continue_) == ("9", "next")
    assert page.items[2].raw == widget("b")


def test_a_deep_object_among_events_leaves_the_others_readable() -> None:
    lines = b"".join(
        b'{"type":"ADDED","object":' + body + b"}\n"
        for body in (widget("a"), widget("deep", deep=True), widget("b"))
    )
    assert [(event.type, event.object.meta.name) for event in decode_events(lines)] == [
        ("ADDED", "a"),
        ("ADDED", "deep"),
        ("ADDED", "b"),
    ]


def test_nesting_that_is_too_deep_is_an_error() -> None:
    with pytest.raises(DecodeError, match="nested too deeply"):
        parse(widget("deep", deep=True, depth=TOO_DEEP))
    with pytest.raises(DecodeError, match="Meta: nested too deeply"):
        decode(Meta, widget("deep", deep=True, depth=TOO_DEEP))
