from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubewright as kw
from kubewright.generate import sample, samples


class Part(kw.Model):
    name: str
    weight: float = 1.5


class Spec(kw.Model):
    size: Annotated[int, kw.Field(ge=3)]
    colour: Literal["red", "blue"]
    code: Annotated[str, kw.Field(pattern="^[A-Z]{3}$", example="ABC")]
    long: Annotated[str, kw.Field(min_length=12, max_length=20)]
    parts: Annotated[list[Part], kw.Field(min_items=2)]
    limit: kw.Quantity
    note: str | None = None
    kind_of_thing: str = "usual"


class Status(kw.Model):
    ready: int = 0


class Thing(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A thing."""


@kw.controller(Thing)
async def things(thing: Thing, ctx: kw.Context) -> None:
    """Do nothing."""


def test_a_sample_has_what_is_required_and_shows_defaults() -> None:
    made = sample(Thing)
    assert made["metadata"] == {"name": "thing-sample"}
    assert made["spec"] == {
        "code": "ABC",
        "colour": "red",
        "kindOfThing": "usual",
        "limit": 1,
        "long": "examplexxxxx",
        "parts": [{"name": "example", "weight": 1.5}] * 2,
        "size": 3,
    }
    assert "status" not in made


def test_handwritten_samples_override_generated_ones() -> None:
    mine = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "mine"}}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    assert samples(kw.Operator(things), [other, mine]) == [mine]


def test_samples_that_cannot_be_generated_name_the_field_to_fill_in() -> None:
    class CodeSpec(kw.Model):
        code: Annotated[str, kw.Field(pattern="^[A-Z]{3}$")]

    class Coded(kw.Resource[CodeSpec, Status], group="example.com", version="v1"):
        """A coded thing."""

    with pytest.raises(
        kw.errors.DeclarationError, match=r"Coded: no sample could be made up .*spec\.code.*example="
    ):
        sample(Coded)


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(1, 7))
def test_sample_numbers_are_within_bounds(least: int, room: int, step: int) -> None:
    class NumberSpec(kw.Model):
        number: Annotated[int, kw.Field(ge=least, le=least + room + step, multiple_of=step)]

    class Numbered(kw.Resource[NumberSpec, Status], group="example.com", version="v1"):
        """A number."""

    number = sample(Numbered)["spec"]["number"]
    assert least <= number <= least + room + step
    assert number % step == 0
