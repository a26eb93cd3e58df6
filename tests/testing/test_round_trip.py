from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings

import kubewright as kw
from kubewright.api import Duration, IntOrString, MicroTime, to_wire
from kubewright.schema import structural, validate
from kubewright.testing.round_trip import check_round_trips, objects


class Leaf(kw.Model):
    key: str
    weight: Annotated[float, kw.Field(ge=0, lt=1)] = 0.5


class RichSpec(kw.Model):
    small: Annotated[int, kw.Field(gt=0, le=10)]
    even: Annotated[int, kw.Field(multiple_of=2)] = 0
    huge: Annotated[int, kw.Field(int64=True)] = 0
    word: Annotated[str, kw.Field(min_length=2, max_length=5)] = "ab"
    shape: Annotated[str, kw.Field(pattern="^[a-z]{3}$")] = "abc"
    mode: Literal["a", "b"] = "a"
    port: IntOrString = 80
    memory: kw.Quantity = kw.Quantity("1Gi")
    every: Duration | None = None
    at: datetime | None = None
    exact: MicroTime | None = None
    data: bytes = b""
    flags: Annotated[list[str], kw.Field(list_type="set", min_items=1)] = ["x"]
    leaves: Annotated[list[Leaf], kw.Field(list_type="map", list_keys=("key",), max_items=2)] = []
    limits: dict[str, int] = {}
    anything: Annotated[dict[str, Any], kw.Field(preserve_unknown_fields=True)] = {}


class RichStatus(kw.Model):
    ready: bool = False


class Rich(kw.Resource[RichSpec, RichStatus], group="rich.example.com", version="v1", stored=True):
    """A kind with everything."""


class Poor(kw.Object, kind="Rich", group="rich.example.com", version="v1alpha1"):
    """A kind with nearly nothing."""

    small: Annotated[int, kw.Field(ge=1, le=10)] = 1


SCHEMA = structural(Rich)


@given(objects(Rich))
@settings(max_examples=100)
def test_objects_are_what_their_schema_allows(rich: Rich) -> None:
    assert [str(error) for error in validate(SCHEMA, to_wire(rich))] == []


def up(poor: Poor) -> Rich:
    return Rich(poor.metadata, spec=RichSpec(small=poor.small))


def down(rich: Rich) -> Poor:
    return Poor(rich.metadata, small=rich.spec.small)


def test_a_conversion_that_keeps_everything_passes() -> None:
    check_round_trips(kw.Conversion(Rich, Poor, up=up, down=down), from_hub=False)


class Plain(kw.Object, kind="Plain", group="rich.example.com", version="v1"):
    small: int = 1
    large: bool = False


class PlainOld(kw.Object, kind="Plain", group="rich.example.com", version="v1alpha1"):
    small: int = 1


def test_a_conversion_that_loses_data_is_reported_with_the_object() -> None:
    lossy = kw.Conversion(
        Plain,
        PlainOld,
        up=lambda plain: Plain(plain.metadata, small=plain.small),
        down=lambda plain: PlainOld(plain.metadata, small=plain.small),
    )
    check_round_trips(lossy, from_hub=False)
    with pytest.raises(AssertionError, match="Plain came back changed from PlainOld"):
        check_round_trips(lossy)


def test_a_conversion_that_touches_metadata_is_named() -> None:
    def renamed(poor: Poor) -> Rich:
        return Rich(kw.Meta("other"), spec=RichSpec(small=poor.small))

    with pytest.raises(AssertionError, match=r"the conversion changes metadata\.name"):
        check_round_trips(kw.Conversion(Rich, Poor, up=renamed, down=down), from_hub=False)
