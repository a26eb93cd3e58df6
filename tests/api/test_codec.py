"""Objects to the wire and back."""

from datetime import date, datetime, timedelta, timezone
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import (
    DecodeError,
    Duration,
    Field,
    Meta,
    MicroTime,
    Model,
    Object,
    Quantity,
    Resource,
    Status,
    decode,
    decode_as,
    encode,
    from_wire,
    kind_of,
    parse,
    status_wire,
    to_wire,
    with_string_data_encoded,
    zero,
)
from kubewright.api.builtin import core_v1


class Nested(Model):
    note: str = ""
    names: list[str] = []


class Counted(Model):
    count: int = 0


class Spec(Model):
    size: int
    text: str = ""
    weight: float = 0.5
    active: bool = False
    limit: int | None = None
    names: list[str] = []
    labels: dict[str, str] = {}
    nested: Nested = Nested()
    counted: Counted = Counted()
    pointer: Nested | None = None
    free: Any = None
    items: list[Nested] = []
    table: dict[str, Nested] = {}
    must: Annotated[str, Field(optional=False)] = ""


class State(Model):
    ready: int = 0


class Thing(Resource[Spec, State], group="example.com", version="v1"): ...


class Bare(Object, group="example.com", version="v1"):
    names: list[str]


def test_encoded_objects_begin_with_api_version_and_kind() -> None:
    assert list(to_wire(Thing(Meta("a"), spec=Spec(size=1)))) == [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
    ]


def test_zero_and_false_are_sent_and_empty_values_are_left_out() -> None:
    assert to_wire(Spec(size=0)) == {
        "size": 0,
        "weight": 0.5,
        "active": False,
        "counted": {"count": 0},
        "must": "",
    }


def test_empty_values_are_sent_if_they_are_not_the_default() -> None:
    class Loud(Model):
        text: str = "x"
        names: list[str] = ["a"]
        needed: list[str]

    assert to_wire(Loud(text="", names=[], needed=[])) == {"text": "", "names": [], "needed": []}
    assert to_wire(Spec(size=1, pointer=Nested()))["pointer"] == {}


def test_none_is_not_sent_except_in_free_form_maps() -> None:
    wire = to_wire(Spec(size=1, limit=None, free={"a": None, "b": [None, {"c": ""}]}))
    assert "limit" not in wire
    assert wire["free"] == {"a": None, "b": [None, {"c": ""}]}


def test_encodes_an_object_without_its_status_or_the_status_alone() -> None:
    thing = Thing(Meta("a", namespace="n", labels={"x": "y"}), spec=Spec(size=1), status=State(ready=2))
    assert "status" not in to_wire(thing, without_status=True)
    assert status_wire(thing) == {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "n"},
        "status": {"ready": 2},
    }


class Shade(Enum):
    DARK = "dark"


class Values(Model):
    at: datetime | None = None
    precise: MicroTime | None = None
    day: date | None = None
    data: bytes = b""
    shade: Shade = Shade.DARK
    who: UUID | None = None
    amount: Quantity | None = None
    wait: Duration | None = None
    port: int | str | None = None


def test_encodes_values_as_the_api_does() -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=2)))
    values = Values(
        at=moment,
        precise=MicroTime.of(moment),
        day=date(2024, 5, 6),
        data=b"hi",
        who=UUID(int=1),
        amount=Quantity("1500m"),
        wait=Duration(minutes=90),
        port="http",
    )
    wire = to_wire(values)
    assert wire == {
        "at": "2024-05-06T05:08:09Z",
        "precise": "2024-05-06T05:08:09.123456Z",
        "day": "2024-05-06",
        "data": "aGk=",
        "shade": "dark",
        "who": "00000000-0000-0000-0000-000000000001",
        "amount": "1500m",
        "wait": "1h30m0s",
        "port": "http",
    }
    values.at = moment.replace(microsecond=0)
    assert from_wire(Values, wire) == decode(Values, encode(values)) == values


def test_refuses_a_time_without_a_zone() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        to_wire(Values(at=datetime(2024, 1, 1)))  # noqa: DTZ001


def test_reads_null_as_absent() -> None:
    data = (
        b'{"metadata":{"name":"a","labels":null,"creationTimestamp":null},"status":null,'
        b'"spec":{"size":1,"names":null,"labels":null,"nested":null,"weight":null,"items":[null,{"names":null}],'
        b'"table":{"x":null},"unknown":null}}'
    )
    assert decode(Thing, data) == Thing(
        Meta("a"), spec=Spec(size=1, items=[Nested(), Nested()], table={"x": Nested()})
    )
    assert decode(Bare, b'{"names":null}') == Bare(names=[])


def test_unknown_fields_are_ignored() -> None:
    assert decode(Counted, b'{"count":1,"later":{"a":[1]}}') == Counted(count=1)


def test_does_not_check_bounds() -> None:
    class Bounded(Model):
        cpu: Annotated[int, Field(le=4)] = 1

    assert decode(Bounded, b'{"cpu":9}').cpu == 9


@pytest.mark.parametrize(
    ("data", "message", "path"),
    [
        (b'{"spec":{"size":"x"}}', "Thing: spec.size: expected int, got str", "spec.size"),
        (b'{"spec":{}}', "Thing: spec.size: is required", "spec.size"),
        (b'{"spec":null}', "Thing: spec.size: is required", "spec.size"),
        (b"{}", "Thing: spec: is required", "spec"),
        (b'{"spec":{"size":null}}', "Thing: spec.size: expected int, got null", "spec.size"),
        (
            b'{"spec":{"size":1,"items":[{"names":[1]}]}}',
            "Thing: spec.items[0].names[0]: expected str, got int",
            None,
        ),
        (b"[]", "Thing: object: expected object, got array", ""),
        (b'{"spec":', "Thing: not JSON: Input data was truncated", ""),
        (b"<html>", "Thing: not JSON: JSON is malformed: invalid character (byte 0)", ""),
        (b"", "Thing: not JSON: Input data was truncated", ""),
    ],
)
def test_decode_errors_name_the_field(data: bytes, message: str, path: str | None) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Thing, data)
    assert str(caught.value) == message
    assert path is None or caught.value.path == path


def test_decode_errors_explain_invalid_quantities() -> None:
    with pytest.raises(DecodeError, match="Values: amount: quantities must match the regular expression"):
        decode(Values, b'{"amount":"lots"}')


def test_deep_and_malformed_documents_are_decode_errors() -> None:
    for data in (
        b'{"a":' * 100_000,
        b'{"spec":{"size":1,"free":' + b"[" * 100_000,
        b'{"metadata":{"name":"\xff"}}',
    ):
        with pytest.raises(DecodeError):
            decode(Thing, data)
    with pytest.raises(DecodeError, match="not JSON"):
        parse(b"{'a'}")


def test_missing_fields_of_built_in_structs_have_the_zero_values_of_go() -> None:
    assert to_wire(Meta()) == {}
    assert decode(Status, b'{"details":null,"code":404}') == Status(code=404)
    assert zero(Bare) == Bare(names=[])


names = st.text(max_size=5)
nesteds = st.builds(Nested, note=names, names=st.lists(names, max_size=3))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
specs = st.builds(
    Spec,
    size=st.integers(-(2**63), 2**63 - 1),
    text=names,
    weight=st.floats(allow_nan=False, allow_infinity=False),
    active=st.booleans(),
    limit=st.none() | st.integers(0, 9),
    names=st.lists(names, max_size=3),
    labels=st.dictionaries(names, names, max_size=3),
    nested=nesteds,
    counted=st.builds(Counted, count=st.integers(0, 3)),
    pointer=st.none() | nesteds,
    free=json_values,
    items=st.lists(nesteds, max_size=3),
    table=st.dictionaries(names, nesteds, max_size=3),
)


@given(specs)
def test_encoded_objects_decode_to_equal_objects(spec: Spec) -> None:
    thing = Thing(Meta("a"), spec=spec)
    assert decode(Thing, encode(thing)) == from_wire(Thing, to_wire(thing)) == thing


@given(json_values)
def test_any_json_is_read_or_refused_clearly(value: Any) -> None:
    try:
        decode(Spec, encode(value) if isinstance(value, dict) else encode({"size": value, "nested": value}))
    except DecodeError:
        pass


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        decode(Spec, data)
    except DecodeError:
        pass


def test_decodes_to_the_class_or_without_one_to_a_json_object() -> None:
    raw = encode(core_v1.ConfigMap(Meta("one"), data={"a": "1"}))
    assert decode_as(core_v1.ConfigMap, raw).data == {"a": "1"}
    assert decode_as(kind_of(core_v1.ConfigMap), raw) == parse(raw)


def test_a_secrets_string_data_is_encoded_into_its_data() -> None:
    written = {"data": {"a": "eA=="}, "stringData": {"b": "y", "a": "z"}, "type": "Opaque"}
    assert with_string_data_encoded(written) == {"data": {"a": "eg==", "b": "eQ=="}, "type": "Opaque"}
    assert with_string_data_encoded({"data": None}) == {"data": None}
