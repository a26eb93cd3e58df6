from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import RawObject, raw_object
from kubewright.cache import Selection
from kubewright.cache.trimming import Trimmer, keep_managers

NAMES = st.sampled_from(["mine", "other", 'quo"ted', "managedFields"])
PARTS = st.dictionaries(st.sampled_from(["f:spec", "f:metadata", "f:status"]), st.just({"f:a": {}}))
ENTRIES = st.lists(
    st.fixed_dictionaries({"manager": NAMES, "operation": st.just("Apply"), "fieldsV1": PARTS}),
    min_size=1,
    max_size=3,
)
PLACES = st.sampled_from(["first", "middle", "last", "only"])


def document(
    entries: list[dict[str, Any]], place: str, body: dict[str, Any], body_first: bool
) -> dict[str, Any]:
    fields = {"managedFields": entries}
    before = {"name": "a"} if place in ("middle", "last") else {}
    after = {"uid": "u"} if place in ("first", "middle") else {}
    metadata = {"metadata": {**before, **fields, **after}}
    return (
        {"apiVersion": "v1", **body, **metadata} if body_first else {"apiVersion": "v1", **metadata, **body}
    )


@given(ENTRIES, PLACES, st.frozensets(NAMES), st.booleans(), st.booleans(), st.booleans())
def test_cutting_bytes_equals_decoding_filtering_and_encoding(
    entries: list[dict[str, Any]],
    place: str,
    keep: frozenset[str],
    copies: bool,
    spaces: bool,
    body_first: bool,
) -> None:
    body = {"data": {"managedFields": entries}} if copies else {"data": {"text": '"managedFields":[{}]'}}
    wire = document(entries, place, body, body_first)
    data = msgspec.json.encode(wire)
    kept = keep_managers(raw_object(msgspec.json.format(data) if spaces else data), keep)
    listed = {
        step == "f:status" for entry in entries if entry["manager"] in keep for step in entry["fieldsV1"]
    }
    own = [
        entry
        for entry in entries
        if entry["manager"] in keep or any((step == "f:status") in listed for step in entry["fieldsV1"])
    ]
    expected = {**wire, "metadata": {**wire["metadata"], "managedFields": own}}
    if not own:
        del expected["metadata"]["managedFields"]
    assert msgspec.json.decode(kept.raw) == expected
    assert msgspec.json.decode(bytes(kept.meta.managed_fields) or b"[]") == own


def test_an_object_without_managed_fields_is_kept_as_it_is() -> None:
    obj = raw_object(b'{"metadata":{"name":"a"}}')
    assert keep_managers(obj, frozenset()) is obj


@pytest.fixture
def whole() -> RawObject:
    return raw_object(
        b'{"kind":"X","metadata":{"name":"a","managedFields":[{"manager":"m"}]},"spec":{"big":"x"}}'
    )


def test_metadata_only_selections_trim_the_rest(make: Any, whole: RawObject) -> None:
    kept = Trimmer(Selection(make.kind, metadata_only=True)).trim(whole)
    assert kept.raw == b'{"metadata":{"name":"a"}}'


def test_a_transform_decides_what_is_kept(make: Any, whole: RawObject) -> None:
    def without_spec(wire: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {**wire["metadata"], "labels": {"seen": "yes"}}}

    kept = Trimmer(Selection(make.kind, transform=without_spec)).trim(whole)
    assert kept.raw == b'{"metadata":{"name":"a","labels":{"seen":"yes"}}}'
    assert kept.meta.labels == {"seen": "yes"}


def test_a_transform_that_drops_identifying_metadata_is_refused(make: Any) -> None:
    def forgetful(wire: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": wire["metadata"]["name"]}}

    with pytest.raises(ValueError, match="must keep metadata"):
        Trimmer(Selection(make.kind, transform=forgetful)).trim(make.object("a", 3))
